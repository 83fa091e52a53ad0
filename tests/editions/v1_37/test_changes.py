"""The list of changes equals the table of the specification (spec 12 §1)."""

import re
from importlib import import_module
from pathlib import Path

from kubestow.editions import edition_named
from kubestow.editions.v1_37.changes import CHANGES

CHAPTER = Path(__file__).parents[3] / "docs" / "spec" / "12-v1.37.md"


def test_every_row_is_listed_with_its_section() -> None:
    rows = re.findall(r"^\| (\d+) \| (\[D\] )?.* \| ([\d.]+) \|$", CHAPTER.read_text(), re.M)
    found = [(int(number), section, bool(mark)) for number, mark, section in rows]
    assert found == [(each.number, each.section, each.is_ordinary) for each in CHANGES]


def test_parts_and_gates_exist() -> None:
    before, now = edition_named("v1.36"), edition_named("v1.37")
    for change in CHANGES:
        for part in change.parts:
            import_module(f"kubestow.editions.v1_37.{part}")
        for gate in change.gates:
            assert now.gates[gate].default
            assert not (gate in before.gates and before.gates[gate].default)
