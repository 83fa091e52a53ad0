"""The JSON Schema and the files that users begin with fit the structs."""

from pathlib import Path

from kubestow.simulator.scenario.reading import read_scenario
from tools.schemas.scenario import SCHEMA_FILE, schema_text

EXAMPLE = Path(__file__).parents[3] / "examples/day.yaml"


def test_the_schema_file_is_that_of_the_structs() -> None:
    assert SCHEMA_FILE.read_text() == f"{schema_text()}\n", "run make docs"


def test_the_template_is_the_example() -> None:
    template = SCHEMA_FILE.with_name("template.yaml")
    assert template.read_bytes() == EXAMPLE.read_bytes()
    assert read_scenario(template).name == "day"
