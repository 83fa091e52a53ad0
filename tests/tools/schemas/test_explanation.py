"""The data of explanations, their JSON Schema and their reference say the same."""

import re
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from kubestow.explain import explanation
from kubestow.explain.reason_codes import known_codes
from tools.schemas.explanation import SCHEMA_FILE, schema_text

PAGE = (Path(__file__).parents[3] / "docs/reference/explanation.md").read_text()
NAMED = set(re.findall(r"`(\w+)(?:\[\])?`", PAGE))


def structs_of(module: ModuleType) -> list[type[msgspec.Struct]]:
    return [
        value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and name[0] != "_"
    ]


def test_the_schema_file_is_that_of_the_structs() -> None:
    assert SCHEMA_FILE.read_text() == f"{schema_text()}\n", "run make docs"


@pytest.mark.parametrize("struct", structs_of(explanation), ids=lambda struct: struct.__name__)
def test_every_field_is_on_the_page(struct: type[msgspec.Struct]) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(struct)}
    assert fields - NAMED == set()


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(getattr(explanation, name).__args__, id=name)
        for name in (
            "Outcome",
            "Verdict",
            "FilterVerdict",
            "TieBreak",
            "SearchEnd",
            "PreemptionResult",
        )
    ],
)
def test_every_value_is_on_the_page(values: tuple[str, ...]) -> None:
    assert set(values) - NAMED == set()


def test_every_reason_code_is_on_the_page() -> None:
    assert known_codes() - NAMED == set()
