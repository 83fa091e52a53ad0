"""Decisions recorded from kube-scheduler v1.9.11 are those of compatibility v1.9.

A sample of every family is part of the project; the full folder is replayed where it lies beside
the checkout.
"""

from pathlib import Path

import pytest

from kubestow.simulator.conformance import Recording, Report, load_recording, replay_v1_9

SAMPLE = Path(__file__).parents[2] / "data" / "conformance" / "v1.9"
FULL = Path(__file__).parents[4] / "shared" / "conformance" / "v1.9"

SAMPLE_FILES = sorted(SAMPLE.glob("*.json.gz"))
FULL_FILES = sorted(FULL.glob("*.json.gz"))


def replay(recording: Recording) -> Report:
    report = Report()
    for scenario in recording.scenarios:
        replay_v1_9(scenario, report)
    return report


def assert_no_difference(path: Path) -> None:
    recording = load_recording(path)
    assert recording.is_v1_9
    report = replay(recording)
    assert report.differences == []
    assert report.differing == 0
    attempts = sum(len(scenario["expected"]) for scenario in recording.scenarios)
    assert report.tally(f"v1.9 {recording.family}", "pods").compared == attempts > 0


def test_every_family_has_a_sample() -> None:
    assert len(SAMPLE_FILES) == 11


@pytest.mark.parametrize("path", SAMPLE_FILES, ids=lambda path: path.name.partition(".")[0])
def test_sampled_decisions_of_v1_9_are_ours(path: Path) -> None:
    assert_no_difference(path)


@pytest.mark.slow
@pytest.mark.skipif(not FULL_FILES, reason="no folder shared/conformance/v1.9 beside the checkout")
@pytest.mark.parametrize("path", FULL_FILES, ids=lambda path: path.name.partition(".")[0])
def test_all_recorded_decisions_of_v1_9_are_ours(path: Path) -> None:
    assert_no_difference(path)


def test_a_reason_that_is_not_ours_is_found() -> None:
    recording = load_recording(SAMPLE / "taints.json.gz")
    for attempt in recording.scenarios[0]["expected"]:
        for reasons in attempt["failed"].values():
            reasons.append("SomethingElse")
    report = replay(recording)
    assert {difference.part for difference in report.differences} == {"verdicts"}
    assert {difference.detail.split()[0] for difference in report.differences} == {"all"}


def test_another_turn_among_equals_is_found() -> None:
    recording = load_recording(SAMPLE / "resources.json.gz")
    for scenario in recording.scenarios:
        for attempt in scenario["expected"]:
            attempt["lastNodeIndex"] += 1
    report = replay(recording)
    assert {difference.detail for difference in report.differences} == {"node"}
