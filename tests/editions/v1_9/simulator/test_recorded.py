"""Decisions with compatibility v1.9 equal those recorded from kube-scheduler v1.9.11.

Every recording is replayed; the quick tests take an eighth of the scenarios of each file.
"""

from pathlib import Path

import msgspec
import pytest

from kubestow.editions import edition_named
from kubestow.editions.v1_9.simulator.conformance import replay_v1_9
from kubestow.simulator.conformance import Recording, Report, load_recording

RECORDINGS = Path(__file__).parents[4] / "conformance" / "v1.9"
FILES = sorted(RECORDINGS.glob("*.json.gz"))


def replay(recording: Recording) -> Report:
    report = Report()
    for scenario in recording.scenarios:
        replay_v1_9(scenario, report)
    return report


def an_eighth_of(path: Path) -> Recording:
    recording = load_recording(path)
    return msgspec.structs.replace(recording, scenarios=recording.scenarios[::8])


def assert_no_difference(recording: Recording) -> None:
    assert recording.edition is edition_named("v1.9")
    report = replay(recording)
    assert report.differences == []
    assert report.differing == 0
    attempts = sum(len(scenario["expected"]) for scenario in recording.scenarios)
    assert report.counts(f"v1.9 {recording.family}", "pods").compared == attempts > 0


def test_every_family_is_there() -> None:
    assert len(FILES) == 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_sampled_decisions_of_v1_9_are_ours(path: Path) -> None:
    assert_no_difference(an_eighth_of(path))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_all_recorded_decisions_of_v1_9_are_ours(path: Path) -> None:
    assert_no_difference(load_recording(path))


def test_a_reason_that_is_not_ours_is_found() -> None:
    recording = an_eighth_of(RECORDINGS / "taints.json.gz")
    for attempt in recording.scenarios[0]["expected"]:
        for reasons in attempt["failed"].values():
            reasons.append("SomethingElse")
    report = replay(recording)
    assert {difference.part for difference in report.differences} == {"verdicts"}
    assert {difference.detail.split()[0] for difference in report.differences} == {"all"}


def test_another_choice_among_equals_is_found() -> None:
    recording = an_eighth_of(RECORDINGS / "resources.json.gz")
    for scenario in recording.scenarios:
        for attempt in scenario["expected"]:
            attempt["lastNodeIndex"] += 1
    report = replay(recording)
    assert {difference.detail for difference in report.differences} == {"node"}
