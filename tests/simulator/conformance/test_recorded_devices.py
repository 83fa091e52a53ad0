"""A replay goes on with what was recorded about devices, whatever is chosen here."""

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.device import ResourceClaim
from kubestow.index.devices import KnownDevices
from kubestow.simulator.conformance import Report, load_recording, replay, replay_scenario
from kubestow.simulator.conformance.world import World
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

RECORDING = Path(__file__).parents[3] / "conformance" / "dra.json.gz"
SCENARIOS = {each["name"]: each for each in load_recording(RECORDING).scenarios}


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[World]]:
    """The clusters that replays set up."""
    made: list[World] = []

    class Kept(World):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(replay, "World", Kept)
    return made


def replayed(scenario: dict[str, Any]) -> Report:
    report = Report()
    loop = VirtualTimeLoop()
    asyncio.set_event_loop(loop)
    try:
        replay_scenario(scenario, report, clock=VirtualClock(loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return report


def up_to(name: str, pod: str) -> dict[str, Any]:
    """The scenario, ending with the first attempt of a pod."""
    scenario = deepcopy(SCENARIOS[name])
    expected = scenario["expected"]
    last = next(index for index, each in enumerate(expected) if each["pod"] == pod)
    scenario["expected"] = expected[: last + 1]
    return scenario


def claim_of(world: World, name: str) -> ResourceClaim:
    found = world.objects.resource_claims.get("default", name)
    assert found is not None
    return found


@pytest.mark.parametrize("given_up", ["claim-016", "claim-017"])
def test_the_recorded_claim_is_given_up(worlds: list[World], given_up: str) -> None:
    scenario = up_to("dra-0030", "default/in-005")
    post_filter = scenario["expected"][-1]["postFilter"]
    assert post_filter["deallocatable"] == ["default/claim-016", "default/claim-017"]
    post_filter["deallocated"] = f"default/{given_up}"
    assert replayed(scenario).differences == []
    (world,) = worlds
    for name in ("claim-016", "claim-017"):
        assert (claim_of(world, name).status.allocation is None) == (name == given_up)


@pytest.mark.parametrize(
    ("allowed", "details"),
    [
        (["default/claim-017"], ["deallocatable", "deallocated"]),
        (["default/claim-016"], ["deallocatable"]),
    ],
)
def test_other_candidates_are_found(allowed: list[str], details: list[str]) -> None:
    scenario = up_to("dra-0030", "default/in-005")
    scenario["expected"][-1]["postFilter"]["deallocatable"] = allowed
    assert [each.detail for each in replayed(scenario).differences] == details


def test_the_recorded_devices_are_taken(worlds: list[World]) -> None:
    """Also where another device was chosen here, which then stays free."""
    name, index = next(
        (name, index)
        for name, scenario in SCENARIOS.items()
        for index, each in enumerate(scenario["expected"])
        if "afterFit" not in scenario and each.get("allocated")
        if each["allocated"][0]["allocation"]["devices"].get("results")
    )
    scenario = deepcopy(SCENARIOS[name])
    scenario["expected"] = scenario["expected"][: index + 1]
    result = scenario["expected"][-1]["allocated"][0]["allocation"]["devices"]["results"][0]
    chosen = (result["driver"], result["pool"], result["device"])
    result["device"] = "another"
    report = replayed(scenario)
    assert [each.detail for each in report.differences] == ["allocated"]
    (world,) = worlds
    known = KnownDevices.existing(world.objects)
    assert known is not None
    assert known.claims.allocated.is_in_use((*chosen[:2], "another"))
    assert not known.claims.allocated.is_in_use(chosen)
