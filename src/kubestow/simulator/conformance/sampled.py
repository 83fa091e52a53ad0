"""Compares a decision on a large cluster, of which only the search and its result are recorded."""

from kubestow.api.meta import JsonObject
from kubestow.engine.decision import Decision
from kubestow.simulator.conformance.compare import (
    as_json,
    compare_choice,
    compare_failure,
    compare_nominations,
)
from kubestow.simulator.conformance.report import Comparer
from kubestow.simulator.conformance.world import World
from kubestow.simulator.recorded_parts import CHOICES, PRE_FILTER, SCORES, VERDICTS


def compare_sampled_attempt(
    comparer: Comparer, expected: JsonObject, world: World, decision: Decision
) -> None:
    compare_nominations(comparer, expected, world)
    comparer.equal(
        CHOICES,
        "nextStartNodeIndex",
        expected["nextStartNodeIndex"],
        world.decider.next_start_index,
    )
    if not decision.via_nominated_node and decision.pre_filter.status is None:
        comparer.equal(CHOICES, "nodesToFind", expected["nodesToFind"], decision.nodes_to_find)
    _compare_pre_filter(comparer, expected.get("preFilter"), decision)
    found = _rows(expected.get("found", ()))
    comparer.equal(VERDICTS, "found", found, decision.feasible.tolist())
    _compare_failed(comparer, expected, decision)
    _compare_scores(comparer, expected, decision)
    compare_choice(comparer, expected, decision)
    compare_failure(comparer, expected, decision)


def _compare_pre_filter(
    comparer: Comparer, recorded: JsonObject | None, decision: Decision
) -> None:
    outcome = decision.pre_filter
    got = as_json(outcome.status)
    if outcome.node_names is not None:
        got["nodeNames"] = sorted(outcome.node_names)
        got["restrictedBy"] = sorted(outcome.restricting)
    expected: JsonObject = dict(recorded) if recorded is not None else {"code": "Success"}
    if "nodeNames" in expected:
        expected["nodeNames"] = sorted(expected["nodeNames"])
    comparer.equal(PRE_FILTER, "outcome", expected, got)


def _compare_failed(comparer: Comparer, expected: JsonObject, decision: Decision) -> None:
    """Nodes that were evaluated and failed, with their status; order does not matter here."""
    recorded: dict[int, JsonObject] = {}
    for group in expected.get("failed", ()):
        status = {key: group[key] for key in ("code", "plugin", "reasons") if key in group}
        recorded |= dict.fromkeys(_rows(group["nodes"]), status)
    got: dict[int, JsonObject] = {}
    if decision.pre_filter.status is None:
        for status, rows in decision.diagnosis.rows_by_status():
            got |= dict.fromkeys(rows.tolist(), as_json(status))
    for row in sorted(recorded.keys() | got.keys()):
        plugin = recorded.get(row, {}).get("plugin", "all")
        comparer.equal(VERDICTS, f"{plugin} row {row}", recorded.get(row), got.get(row))


def _compare_scores(comparer: Comparer, expected: JsonObject, decision: Decision) -> None:
    scores = decision.scores
    total = scores.total.tolist() if scores is not None else None
    comparer.equal(SCORES, "total", expected.get("total"), total)
    if scores is None or "scoresOfNode" not in expected:
        return
    position = _position_of(decision, expected["result"]["node"])
    got = {part.plugin: int(part.normalized[position]) * part.weight for part in scores.by_plugin}
    for plugin, value in expected["scoresOfNode"].items():
        comparer.equal(SCORES, f"{plugin} weighted", value, got.get(plugin))


def _position_of(decision: Decision, node_name: str) -> int:
    names = [decision.node_names[row] for row in decision.feasible.tolist()]
    return names.index(node_name) if node_name in names else 0


def _rows(runs: list[list[int]] | tuple[()]) -> list[int]:
    return [row for first, last in runs for row in range(first, last + 1)]
