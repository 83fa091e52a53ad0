"""The JSON Schema of scenarios, made of their structs.

`scenario.schema.json` in the package is its text, for editors. After a change of the structs,
`make docs` writes it again.
"""

from pathlib import Path
from typing import Final

import msgspec

from kubestow.simulator.scenario import document
from kubestow.simulator.scenario.document import ScenarioDocument

SCHEMA_FILE: Final = Path(document.__file__).with_name("scenario.schema.json")
_ID: Final = "urn:kubestow:scenario:v1alpha1"


def schema_text() -> str:
    """The content of the file."""
    return text_of(ScenarioDocument, _ID)


def text_of(document: type[msgspec.Struct], name: str) -> str:
    """The JSON Schema of files that users write."""
    schema = msgspec.json.schema(document)
    return msgspec.json.format(
        msgspec.json.encode(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, **schema}
        ),
        indent=2,
    ).decode()
