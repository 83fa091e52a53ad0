"""The JSON Schema of explanations, made of their structs.

`explanation.schema.json` in the package is its text, for programs in other languages. After a
change of the structs, `make docs` writes it again.
"""

import inspect
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from kubestow.explain import explanation
from kubestow.explain.explanation import Explanation

SCHEMA_FILE: Final = Path(explanation.__file__).with_name("explanation.schema.json")
_ID: Final = "urn:kubestow:explanation:v1"


def schema_text() -> str:
    """The content of the file."""
    schema = msgspec.json.schema(Explanation)
    definitions: dict[str, Any] = schema["$defs"]
    for name, definition in definitions.items():
        struct = getattr(explanation, name)
        # The fields are described in the reference.
        definition["description"] = (inspect.getdoc(struct) or "").partition("\n\n")[0]
        definition["required"] = _written_always(struct)
    return msgspec.json.format(
        msgspec.json.encode(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": _ID, **schema}
        ),
        indent=2,
    ).decode()


def _written_always(struct: type[msgspec.Struct]) -> list[str]:
    fields = msgspec.structs.fields(struct)
    return [field.encode_name for field in fields if field.default is not UNSET]
