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
from kubestow.explain.evidence import facts, score_facts
from kubestow.explain.explanation import Explanation

SCHEMA_FILE: Final = Path(explanation.__file__).with_name("explanation.schema.json")
_ID: Final = "urn:kubestow:explanation:v1"
_MODULES: Final = (explanation, facts, score_facts)


def schema_text() -> str:
    """The content of the file."""
    schema = msgspec.json.schema(Explanation)
    definitions: dict[str, Any] = schema["$defs"]
    for name, definition in definitions.items():
        struct = _struct_named(name)
        # The fields are described in the reference.
        definition["description"] = (inspect.getdoc(struct) or "").partition("\n\n")[0]
        definition["required"] = _written_always(struct)
    return msgspec.json.format(
        msgspec.json.encode(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": _ID, **schema}
        ),
        indent=2,
    ).decode()


def _struct_named(name: str) -> type[msgspec.Struct]:
    return next(getattr(module, name) for module in _MODULES if hasattr(module, name))


def _written_always(struct: type[msgspec.Struct]) -> list[str]:
    tag = struct.__struct_config__.tag_field
    fields = msgspec.structs.fields(struct)
    written = [field.encode_name for field in fields if field.default is not UNSET]
    return [tag, *written] if tag else written
