"""An explanation as kube-scheduler-simulator writes it: annotations of the pod.

Tools for that simulator read them. All annotations of an object together must not exceed 256 KiB,
which the simulator's own do in clusters of some hundred nodes. Here nodes are left out until they
fit: those not looked at, then rejected ones, then those at the end of the ranking.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from kubestow.explain.explanation import Explanation, NodeExplanation

PREFIX: Final = "kube-scheduler-simulator.sigs.k8s.io/"
# The API server's limit on all keys and values together is 256 KiB; half is left to others.
ANNOTATIONS_BYTES_MAX: Final = 128 * 1024
_PASSED: Final = "passed"
_NOMINATED: Final = "preemption victim"


def result_annotations(explanation: Explanation, filters: Sequence[str]) -> dict[str, str]:
    """The annotations by key; `filters` are those that the attempt asked, in their order."""
    nodes: Sequence[NodeExplanation] = explanation.nodes
    while True:
        annotations = _annotations(explanation, nodes, filters)
        length = sum(len(key) + len(value.encode()) for key, value in annotations.items())
        if length <= ANNOTATIONS_BYTES_MAX or not nodes:
            return annotations
        # Nodes are in the order of interest. Those that fit are longer, so one cut is not enough.
        nodes = nodes[: min(len(nodes) * ANNOTATIONS_BYTES_MAX // length, len(nodes) - 1)]


def _annotations(
    explanation: Explanation, nodes: Sequence[NodeExplanation], filters: Sequence[str]
) -> dict[str, str]:
    filtered = [node for node in nodes if node.verdict != "NotLookedAt"]
    values: dict[str, object] = {
        "filter-result": {node.name: _filtered(node, filters) for node in filtered},
        "postfilter-result": _post_filter(explanation),
        "score-result": _scores(nodes, "raw"),
        "finalscore-result": _scores(nodes, "weighted"),
    }
    found = {PREFIX + key: msgspec.json.encode(value).decode() for key, value in values.items()}
    if explanation.node and explanation.outcome == "Scheduled":
        found[f"{PREFIX}selected-node"] = explanation.node
    return found


def _filtered(node: NodeExplanation, filters: Sequence[str]) -> Mapping[str, str]:
    """The filters before the rejecting one passed; those after it were not asked."""
    if node.verdict == "Feasible":
        return dict.fromkeys(filters, _PASSED)
    rejected = {node.plugin: ", ".join(node.reasons)}
    if node.plugin not in filters:
        return rejected
    return dict.fromkeys(filters[: filters.index(node.plugin)], _PASSED) | rejected


def _scores(
    nodes: Sequence[NodeExplanation], part: Literal["raw", "weighted"]
) -> Mapping[str, Mapping[str, str]]:
    return {
        node.name: {
            plugin: str(score.raw if part == "raw" else score.weighted)
            for plugin, score in node.scores.items()
        }
        for node in nodes
        if node.scores
    }


def _post_filter(explanation: Explanation) -> Mapping[str, Mapping[str, str]]:
    if not explanation.victims:
        return {}
    return {explanation.nominated_node: {"DefaultPreemption": _NOMINATED}}
