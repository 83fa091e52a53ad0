"""What an explanation says of an attempt equals what kube-scheduler v1.36 was recorded to do.

A sixteenth of the scenarios of each file is taken, with HYPOTHESIS_PROFILE=thorough all of them.
"""

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.engine.decision import Decision
from kubestow.explain.attempt import explain_attempt
from kubestow.explain.explanation import Explanation, NodeExplanation, NodeFilterAnswer
from kubestow.explain.one_node import filter_answers
from kubestow.explain.reason_codes import reason_code
from kubestow.simulator.conformance import Recording, Report, load_recording
from kubestow.simulator.conformance.devices import (
    bind_devices,
    compare_given_up,
    take_recorded_devices,
)
from kubestow.simulator.conformance.replay import advance
from kubestow.simulator.conformance.runs import replay_run
from kubestow.simulator.conformance.runs.observed import Observed
from kubestow.simulator.conformance.world import World
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

RECORDINGS = Path(__file__).parents[2] / "conformance"
DECISIONS = sorted(RECORDINGS.glob("*.json.gz"))
RUNS = sorted((RECORDINGS / "runs").glob("*.json.gz"))
STEP = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 16


def family(path: Path) -> str:
    return path.name.partition(".")[0]


def sampled(path: Path) -> Recording:
    recording = load_recording(path)
    return msgspec.structs.replace(recording, scenarios=recording.scenarios[STEP // 2 :: STEP])


# --- single decisions ---


def compare_all(recording: Recording) -> None:
    loop = VirtualTimeLoop()
    asyncio.set_event_loop(loop)
    try:
        for scenario in recording.scenarios:
            replay(scenario, VirtualClock(loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def replay(scenario: JsonObject, clock: VirtualClock) -> None:
    world = World(scenario, clock=clock)
    for expected in scenario["expected"]:
        pod = world.incoming[expected["pod"]]
        world.snapshot.refresh(world.cache)
        world.decider.next_start_index = expected["startNodeIndex"]
        decision = world.decider.decide(world.profile_of(pod), pod)
        explanation = explain_attempt(decision.freeze())
        where = f"{scenario['name']} {expected['pod']} {expected['attempt']}"
        if scenario["family"] == "sampling":
            chosen = expected.get("result", {}).get("node", "")
            got = sampled_verdicts(explanation, chosen)
            assert got == recorded_sample(scenario, expected), where
        else:
            assert verdicts(explanation) == recorded_verdicts(scenario, expected, explanation), (
                where
            )
            compare_scores(expected, explanation, where)
            compare_filters(scenario, expected, world, where)
        compare_outcome(expected, explanation, where)
        compare_reasons(explanation, where)
        go_on(scenario, expected, world, decision)


def go_on(scenario: JsonObject, expected: JsonObject, world: World, decision: Decision) -> None:
    """Bring the cluster into the state in which the next pod was tried."""
    comparer = Report().comparer(scenario["family"], scenario["name"])
    has_devices = scenario["family"] == "dra"
    if has_devices:
        compare_given_up(comparer, expected, world, decision)
    world.run_spawned()
    advance(scenario, expected, world, decision)
    if has_devices:
        take_recorded_devices(expected, world, decision)
        bind_devices(comparer, expected, world, decision)


def compare_outcome(expected: JsonObject, explanation: Explanation, where: str) -> None:
    assert explanation.message == expected.get("message", ""), where
    result = expected.get("result")
    if result is not None:
        assert explanation.outcome == "Scheduled", where
        nodes = [result["node"]]
        if not result.get("orderFixed", True):
            nodes = result.get("topNodes", nodes)
        assert explanation.node in nodes, where
        return
    assert explanation.outcome == ("Error" if "error" in expected else "Unschedulable"), where
    recorded = expected.get("postFilter") or {}
    best = recorded.get("bestNodes", [])
    if len(best) > 1:
        # Upstream takes one of them at random.
        assert explanation.nominated_node in best, where
        return
    assert explanation.nominated_node == (recorded.get("nominatedNode") or ""), where
    victims = [f"{victim.namespace}/{victim.name}" for victim in explanation.victims]
    assert victims == recorded.get("victims", []), where


def verdicts(explanation: Explanation) -> dict[str, JsonObject]:
    """Nodes that were looked at and do not fit, and those that PreFilter left out."""
    return {
        node.name: as_status(node)
        for node in explanation.nodes
        if node.verdict in ("Rejected", "Error") or node.reasons
    }


def as_status(node: NodeExplanation) -> JsonObject:
    parts: JsonObject = {"code": node.code, "plugin": node.plugin, "reasons": list(node.reasons)}
    if node.verdict == "NotLookedAt":
        del parts["plugin"]  # The recording names it elsewhere.
    return {key: value for key, value in parts.items() if value}


def recorded_verdicts(
    scenario: JsonObject, expected: JsonObject, explanation: Explanation
) -> dict[str, JsonObject]:
    """As far as the attempt got: upstream's other verdicts were recorded besides."""
    pre_filter = expected["preFilter"]
    if pre_filter["code"] not in ("Success", "Error"):
        keys = ("code", "plugin", "reasons")
        status = {key: pre_filter[key] for key in keys if key in pre_filter}
        return dict.fromkeys(scenario["nodeOrder"], status)
    unseen = {
        node.name
        for node in explanation.nodes
        if node.verdict == "NotLookedAt" and not node.reasons
    }
    if expected.get("result", {}).get("viaNominatedNode") or "error" in expected:
        return {n: s for n, s in expected.get("nodes", {}).items() if n not in unseen}
    assert not unseen
    return expected.get("nodes", {})


def compare_scores(expected: JsonObject, explanation: Explanation, where: str) -> None:
    recorded = expected.get("scores", {})
    scored = [node for node in explanation.nodes if node.scores]
    if not scored:
        assert "result" not in expected or expected["result"]["feasibleNodes"] == 1, where
        return
    assert {node.name for node in scored} == set(recorded["nodes"]), where
    for node in scored:
        position = recorded["nodes"].index(node.name)
        assert node.total == recorded["total"][position], where
        for plugin, lists in recorded["plugins"].items():
            part = msgspec.to_builtins(node.scores[plugin])
            got = {kind: part[kind] for kind in lists}
            assert got == {kind: values[position] for kind, values in lists.items()}, where


def compare_filters(scenario: JsonObject, expected: JsonObject, world: World, where: str) -> None:
    """Every filter by itself on one of the nodes, another one each time."""
    order = scenario["nodeOrder"]
    name = order[len(where) % len(order)] if order else ""
    if not name:
        return
    pod = world.incoming[expected["pod"]]
    answers = filter_answers(world.profile_of(pod), world.snapshot, pod, name)
    got = {answer.plugin: alone(answer) for answer in answers if answer.verdict != "Passed"}
    recorded: dict[str, JsonObject] = {}
    for plugin, parts in expected["plugins"].items():
        status = parts.get("preFilter", {"code": "Success"})
        names = status.get("nodeNames")
        if names is not None and name not in names:
            recorded[plugin] = {"code": "Left out"}
        elif status["code"] != "Success":
            recorded[plugin] = status
        elif name in parts.get("filter", {}):
            recorded[plugin] = parts["filter"][name]
    assert got == recorded, where


def alone(answer: NodeFilterAnswer) -> JsonObject:
    if answer.verdict == "Skipped":
        return {"code": "Skip"}
    if "RestrictedByPreFilter" in map(cycle_code, answer.reasons):
        return {"code": "Left out"}
    # An error has the words that the cycle puts in front of it; a plugin by itself has not.
    prefix = f'running "{answer.plugin}" filter plugin: '
    return {"code": answer.code, "reasons": [text.removeprefix(prefix) for text in answer.reasons]}


def cycle_code(reason: str) -> str:
    return reason_code("", reason)


def compare_reasons(explanation: Explanation, where: str) -> None:
    """Groups are the verdicts on the nodes, turned round; codes are known for all of them."""
    found: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for node in explanation.nodes:
        if node.verdict == "Rejected" or (explanation.outcome != "Scheduled" and node.code):
            for reason in node.reasons if node.verdict != "Error" else ():
                found[node.plugin, node.code, reason].add(node.name)
    groups = {(each.plugin, each.code, each.reason): each for each in explanation.reasons}
    assert {key: set(each.nodes) for key, each in groups.items()} == found, where
    assert all(each.count == len(each.nodes) for each in explanation.reasons), where
    assert all(each.reason_code != "Other" for each in explanation.reasons), where


# --- large clusters ---


def sampled_verdicts(explanation: Explanation, chosen: str) -> JsonObject:
    return {
        "found": sorted(node.name for node in explanation.nodes if node.verdict == "Feasible"),
        "failed": {
            node.name: as_status(node) for node in explanation.nodes if node.verdict == "Rejected"
        },
        "total": {node.name: node.total for node in explanation.nodes if node.total is not None},
        "scoresOfNode": {
            plugin: score.weighted
            for node in explanation.nodes
            if node.name == chosen
            for plugin, score in node.scores.items()
        },
    }


def recorded_sample(scenario: JsonObject, expected: JsonObject) -> JsonObject:
    order = scenario["nodeOrder"]
    found = names_of(order, expected.get("found", ()))
    failed: dict[str, JsonObject] = {}
    for group in expected.get("failed", ()):
        status = {key: group[key] for key in ("code", "plugin", "reasons") if key in group}
        failed |= dict.fromkeys(names_of(order, group["nodes"]), status)
    pre_filter = expected.get("preFilter", {"code": "Success"})
    if pre_filter["code"] != "Success":
        failed = dict.fromkeys(order, pre_filter)
    return {
        "found": sorted(found),
        "failed": failed,
        "total": dict(zip(found, expected.get("total", ()), strict=False)),
        "scoresOfNode": expected.get("scoresOfNode", {}),
    }


def names_of(order: list[str], runs: Any) -> list[str]:
    return [order[row] for first, last in runs for row in range(first, last + 1)]


@pytest.mark.parametrize("path", DECISIONS, ids=family)
def test_attempts_are_explained_as_recorded(path: Path) -> None:
    compare_all(sampled(path))


# --- whole runs ---


class Explained(Observed):
    """Reports what explanations say of the attempts of a run, in the form of the recording."""

    def add_attempt(self, pod: str, decision: Decision) -> None:
        super().add_attempt(pod, decision)
        shown = self._attempts[-1]
        explanation = explain_attempt(decision.freeze())
        search = explanation.search
        if explanation.outcome == "Scheduled":
            shown["node"] = explanation.node
            shown["evaluatedNodes"] = search.evaluated
            shown["feasibleNodes"] = search.feasible
            if "total" in shown:
                scored = [node for node in explanation.nodes if node.total is not None]
                shown["total"] = {node.name: node.total for node in scored}
        elif explanation.outcome == "Error":
            shown["error"] = explanation.message
        elif "nodes" in shown:
            rejected = [node for node in explanation.nodes if node.verdict == "Rejected"]
            shown["nodes"] = {node.name: as_status(node) for node in rejected}


def compare_runs(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.simulator.conformance.runs.world.Observed", Explained)
    report = Report()
    for scenario in recording.scenarios:
        replay_run(scenario, report)
    assert report.differences == []


@pytest.mark.slow
@pytest.mark.parametrize("path", RUNS, ids=family)
def test_runs_are_explained_as_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_runs(sampled(path), monkeypatch)


def test_every_recording_is_read() -> None:
    assert len(DECISIONS) == 13
    assert len(RUNS) == 4
