"""Runs with pod groups go as those recorded from kube-scheduler v1.36 with its alpha gates on.

The quick tests take every sixth run.
"""

import copy
import logging
from pathlib import Path

import pytest

from kubestow.api.meta import JsonObject
from kubestow.simulator.conformance import Report, load_recording
from kubestow.simulator.conformance.runs import replay_run

RECORDING = Path(__file__).parents[4] / "conformance" / "runs" / "podgroups.json.gz"
SCENARIOS = load_recording(RECORDING).scenarios


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Recorded attempts fail in every way; formatting what is logged takes most of the time."""
    caplog.set_level(logging.CRITICAL + 1, "kubestow")


def replay(*scenarios: JsonObject) -> Report:
    report = Report()
    for scenario in scenarios:
        replay_run(scenario, report)
    return report


def rounds_in(scenarios: list[JsonObject]) -> int:
    return sum(len(step.get("cycles", ())) for run in scenarios for step in run["expected"])


def test_a_sample_of_the_runs_is_ours() -> None:
    sample = SCENARIOS[::6]
    report = replay(*sample)
    assert report.differences == []
    assert report.counts("podgroups", "pods").compared == rounds_in(sample) > 200


@pytest.mark.slow
def test_all_runs_are_ours() -> None:
    report = replay(*SCENARIOS)
    assert report.differences == []
    assert report.counts("podgroups", "pods").compared == rounds_in(SCENARIOS) == 1496
    assert len(SCENARIOS) == 225


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("group", "team-a/other", id="group"),
        pytest.param("pods", [], id="order"),
        pytest.param("failures", [], id="failures"),
        pytest.param("state", {}, id="state"),
    ],
)
def test_a_difference_is_found(key: str, value: object) -> None:
    scenario = copy.deepcopy(next(run for run in SCENARIOS if run["kind"] == "fit"))
    step = next(step for step in scenario["expected"] if step.get("cycles"))
    assert step["cycles"][0].get(key) != value
    step["cycles"][0][key] = value
    assert replay(scenario).differing > 0
