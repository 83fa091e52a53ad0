"""Our decisions equal those recorded from kube-scheduler v1.36.

Every recording is replayed; the quick tests take an eighth of the scenarios of each file.
"""

import asyncio
from pathlib import Path

import msgspec
import pytest

from kubestow.simulator.conformance import Recording, Report, load_recording, replay_scenario
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

RECORDINGS = Path(__file__).parents[3] / "conformance"
FILES = sorted(RECORDINGS.glob("*.json.gz"))


def replay(recording: Recording) -> Report:
    report = Report()
    loop = VirtualTimeLoop()
    clock = VirtualClock(loop)
    asyncio.set_event_loop(loop)
    try:
        for scenario in recording.scenarios:
            replay_scenario(scenario, report, clock=clock)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return report


def assert_no_difference(recording: Recording) -> None:
    report = replay(recording)
    assert report.differences == []
    assert report.differing == 0
    attempts = sum(len(scenario["expected"]) for scenario in recording.scenarios)
    assert report.counts(recording.family, "pods").compared == attempts > 0


def test_every_family_is_there() -> None:
    assert len(FILES) == 13


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_sampled_decisions_are_ours(path: Path) -> None:
    recording = load_recording(path)
    assert_no_difference(msgspec.structs.replace(recording, scenarios=recording.scenarios[::8]))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_all_recorded_decisions_are_ours(path: Path) -> None:
    assert_no_difference(load_recording(path))


def test_a_decision_that_is_not_ours_is_found() -> None:
    recording = load_recording(RECORDINGS / "taints.json.gz")
    scenario = recording.scenarios[0]
    for attempt in scenario["expected"]:
        if "result" in attempt:
            attempt["result"]["feasibleNodes"] += 1
    report = replay(msgspec.structs.replace(recording, scenarios=[scenario]))
    assert report.differing > 0
    assert {difference.detail for difference in report.differences} == {"feasibleNodes"}
