"""What users notice equals the table of the specification (spec 12 §1)."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from kubestow.editions import edition_named
from kubestow.editions.v1_37.noticed import NOTICED_V137

CHAPTER = Path(__file__).parents[3] / "docs" / "spec" / "12-v1.37.md"
# The modules of the edition that make a change, and the gates whose defaults do, by its number.
PARTS = {
    1: ("plugins.dynamic_resources", "plugins.default_preemption"),
    3: ("plugins.node_volume_limits",),
    4: ("plugins.dynamic_resources",),
    5: ("engine.factory",),
    6: ("api.requests",),
    7: ("plugins.default_binder",),
    8: ("plugins.image_locality",),
    9: ("plugins.inter_pod_affinity",),
    10: ("api.disruption",),
    11: ("queue.pod_queue",),
    12: ("plugins.inter_pod_affinity",),
    13: ("plugins.default_preemption",),
    15: ("plugins.dynamic_resources",),
    19: ("api.pod_info",),
}
GATES = {
    2: "StorageCapacityScoring",
    3: "VolumeLimitScaling",
    4: "DRADeviceTaintRules",
    17: "PodLevelResourcesFixDefaulting",
}
# Of metrics, of gates that are gone, and of batching.
WITHOUT_PARTS = {14, 16, 18}


def test_every_row_is_listed_with_its_section() -> None:
    rows = re.findall(r"^\| (\d+) \| (\[D\] )?.* \| ([\d.]+) \|$", CHAPTER.read_text(), re.M)
    found = [(int(number), section, bool(mark)) for number, mark, section in rows]
    assert found == [(each.number, each.section, each.is_common) for each in NOTICED_V137.changes]


def test_every_row_is_made_by_a_part_or_a_gate() -> None:
    numbers = {each.number for each in NOTICED_V137.changes}
    assert PARTS.keys() | GATES.keys() | WITHOUT_PARTS == numbers


@pytest.mark.parametrize("part", sorted({part for parts in PARTS.values() for part in parts}))
def test_a_part_is_one_of_the_edition(part: str) -> None:
    import_module(f"kubestow.editions.v1_37.{part}")


@pytest.mark.parametrize("gate", GATES.values())
def test_a_gate_is_on_by_default_only_now(gate: str) -> None:
    before, now = edition_named("v1.36").gates, edition_named("v1.37").gates
    assert now[gate].default
    assert not (gate in before and before[gate].default)
