"""Decisions recorded from kube-scheduler v1.36 are ours, too.

A sample of every family is part of the project; the full folder is replayed where it lies beside
the checkout.
"""

import asyncio
from pathlib import Path

import pytest

from kubestow.simulator.conformance import Recording, Report, load_recording, replay_scenario
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

SAMPLE = Path(__file__).parents[2] / "data" / "conformance"
FULL = Path(__file__).parents[4] / "shared" / "conformance"

SAMPLE_FILES = sorted(SAMPLE.glob("*.json.gz"))
FULL_FILES = sorted(FULL.glob("*.json.gz"))


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


def assert_no_difference(path: Path) -> None:
    recording = load_recording(path)
    report = replay(recording)
    assert report.differences == []
    assert report.differing == 0
    attempts = sum(len(scenario["expected"]) for scenario in recording.scenarios)
    assert report.tally(recording.family, "pods").compared == attempts > 0


def test_every_family_has_a_sample() -> None:
    assert len(SAMPLE_FILES) == 13


@pytest.mark.parametrize("path", SAMPLE_FILES, ids=lambda path: path.name.partition(".")[0])
def test_sampled_decisions_are_ours(path: Path) -> None:
    assert_no_difference(path)


@pytest.mark.slow
@pytest.mark.skipif(not FULL_FILES, reason="no folder shared/conformance beside the checkout")
@pytest.mark.parametrize("path", FULL_FILES, ids=lambda path: path.name.partition(".")[0])
def test_all_recorded_decisions_are_ours(path: Path) -> None:
    assert_no_difference(path)


def test_a_decision_that_is_not_ours_is_found() -> None:
    recording = load_recording(SAMPLE / "taints.json.gz")
    for attempt in recording.scenarios[0]["expected"]:
        if "result" in attempt:
            attempt["result"]["feasibleNodes"] += 1
    report = replay(recording)
    assert report.differing > 0
    assert {difference.detail for difference in report.differences} == {"feasibleNodes"}
