"""Whole runs go as those recorded from kube-scheduler v1.36: queue, decisions, writes, events.

The quick tests take every fourth run.
"""

import copy
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.api.meta import JsonObject
from kubestow.simulator.conformance import Report, load_recording
from kubestow.simulator.conformance.runs import replay_run

RECORDING = Path(__file__).parents[4] / "conformance" / "runs" / "ordinary.json.gz"
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


def test_a_sample_of_the_runs_is_ours() -> None:
    sample = SCENARIOS[::4]
    report = replay(*sample)
    assert report.differences == []
    assert report.counts("runs", "pods").compared == rounds_in(sample) > 300


@pytest.mark.slow
def test_all_runs_are_ours() -> None:
    assert {scenario["kind"] for scenario in SCENARIOS} == {
        "hints",
        "backoff",
        "preempt",
        "bindfail",
        "inflight",
        "multi",
    }
    report = replay(*SCENARIOS)
    assert report.differences == []
    assert report.counts("runs", "pods").compared == rounds_in(SCENARIOS) == 1615


def rounds_in(scenarios: list[JsonObject]) -> int:
    return sum(len(step.get("cycles", ())) for run in scenarios for step in run["expected"])


def swap_active(cycle: JsonObject) -> None:
    cycle["state"]["active"].reverse()


def later_backoff(cycle: JsonObject) -> None:
    backoff = cycle["state"]["backoff"]
    backoff[next(iter(backoff))] += 1


def other_blame(cycle: JsonObject) -> None:
    parked = cycle["state"]["unschedulable"]
    parked[next(iter(parked))] = ["NodeName"]


def other_note(cycle: JsonObject) -> None:
    cycle["events"][0]["note"] += "?"


def no_write(cycle: JsonObject) -> None:
    cycle["writes"].pop()


def other_message(cycle: JsonObject) -> None:
    cycle["failures"][0]["message"] += "?"


def popped_from_backoff(cycle: JsonObject) -> None:
    cycle["from"] = "backoff"


def other_node(cycle: JsonObject) -> None:
    cycle["attempts"][0]["node"] = "elsewhere"


@pytest.mark.parametrize(
    ("change", "needs", "part"),
    [
        pytest.param(swap_active, "active", "queue", id="order of the active queue"),
        pytest.param(later_backoff, "backoff", "queue", id="end of a backoff"),
        pytest.param(other_blame, "unschedulable", "queue", id="plugins blamed"),
        pytest.param(popped_from_backoff, "active", "queue", id="where the pod came from"),
        pytest.param(other_note, "events", "events", id="text of an event"),
        pytest.param(no_write, "writes", "writes", id="a write too many"),
        pytest.param(other_message, "failures", "messages", id="message of a failure"),
        pytest.param(other_node, "bound", "choices", id="chosen node"),
    ],
)
def test_a_change_in_any_part_is_found(
    change: Callable[[JsonObject], None], needs: str, part: str
) -> None:
    scenario, cycle = copy_with_round(needs)
    change(cycle)
    report = replay(scenario)
    assert {difference.part for difference in report.differences} == {part}
    assert len({difference.pod for difference in report.differences}) == 1


def copy_with_round(needs: str) -> tuple[JsonObject, JsonObject]:
    """A copy of the first run that has a round with that part, and the round."""
    for scenario in SCENARIOS:
        for number, step in enumerate(scenario["expected"]):
            for index, cycle in enumerate(step.get("cycles", ())):
                if has_part(cycle, needs):
                    changed = copy.deepcopy(scenario)
                    return changed, changed["expected"][number]["cycles"][index]
    raise AssertionError(needs)


def has_part(cycle: JsonObject, part: str) -> bool:
    if part == "active":
        return len(cycle["state"].get("active", ())) > 1
    if part == "bound":
        return any("node" in attempt for attempt in cycle.get("attempts", ()))
    return bool(cycle.get(part) or cycle["state"].get(part))


def test_what_the_api_holds_in_the_end_is_compared() -> None:
    scenario = copy.deepcopy(SCENARIOS[0])
    pod = next(iter(scenario["final"]["pods"].values()))
    pod["nominatedNodeName"] = "elsewhere"
    (difference,) = replay(scenario).differences
    assert (difference.pod, difference.part) == ("final", "writes")


def test_a_replay_ends_with_the_first_round_that_differs() -> None:
    scenario = copy.deepcopy(SCENARIOS[0])
    for step in scenario["expected"]:
        for cycle in step.get("cycles", ()):
            cycle["from"] = "nowhere"
    report = replay(scenario)
    assert report.differing == 1
    assert report.counts("runs", "pods").compared == 1
