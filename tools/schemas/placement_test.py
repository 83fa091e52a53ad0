"""The JSON Schema of placement tests, made of their structs.

`placement_test.schema.json` in the package is its text, for editors. After a change of the structs,
`make docs` writes it again.
"""

from pathlib import Path
from typing import Final

from kubestow.simulator.placement_tests import document
from kubestow.simulator.placement_tests.document import PlacementTestDocument
from tools.schemas.scenario import text_of

SCHEMA_FILE: Final = Path(document.__file__).with_name("placement_test.schema.json")
_ID: Final = "urn:kubestow:placement-test:v1alpha1"


def schema_text() -> str:
    """The content of the file."""
    return text_of(PlacementTestDocument, _ID)
