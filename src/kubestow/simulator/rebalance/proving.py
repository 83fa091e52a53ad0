"""Whether the rest of a plan still holds on the cluster as it is now.

The steps are done once more on what was just read. So a change elsewhere in the cluster does no
harm as long as every replacement still goes to the node of the plan, and the figure still gets
better.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod_info import PodInfo
from kubestow.cluster.documents import as_object, objects_in
from kubestow.simulator.rebalance.goals.goal import TOLERANCE
from kubestow.simulator.rebalance.plan import PlanStep, ScaledOwner, units_of
from kubestow.simulator.rebalance.planning import Planner

_CLOSED: Final = "unschedulable"
_CLOSED_TAINT: Final = "node.kubernetes.io/unschedulable"

# Makes a planner for a cluster that was just read.
MakePlanner = Callable[[Sequence[Document]], Planner]


def opened(documents: Sequence[Document], names: Collection[str]) -> list[Document]:
    """The documents as if these nodes were open."""
    return [
        Document(_open_node(one.raw), one.source)
        if one.raw["kind"] == "Node" and one.raw["metadata"]["name"] in names
        else one
        for one in documents
    ]


def _open_node(node: JsonObject) -> JsonObject:
    spec = {key: value for key, value in as_object(node.get("spec")).items() if key != _CLOSED}
    taints = [one for one in objects_in(spec.get("taints")) if one.get("key") != _CLOSED_TAINT]
    return {**node, "spec": {**spec, "taints": taints}}


def versions_of(documents: Iterable[Document]) -> dict[str, str]:
    """Resource versions, by UID."""
    found = (as_object(one.raw["metadata"]) for one in documents)
    return {each.get("uid", ""): each.get("resourceVersion", "") for each in found}


def difference(planner: Planner, steps: Sequence[PlanStep], *, closed: Iterable[str] = ()) -> str:
    """What keeps the steps from being done as planned; empty if nothing does.

    `closed` are nodes that the steps before have closed.
    """
    board = planner.board
    mark, before = board.mark(), board.goal.cost()
    for name in closed:
        if board.cluster.objects.nodes.get(name) is not None:
            board.close(name)
    if steps:
        board.start_index = steps[0].search_start
    try:
        for unit in units_of(steps):
            if problem := _problem(planner, unit):
                return problem
        evictions = [step for step in steps if step.pod is not None]
        if evictions and board.goal.cost() >= before - TOLERANCE:
            return "the rest of the plan no longer makes the figure better"
        return ""
    finally:
        board.undo(mark)


def _problem(planner: Planner, unit: Sequence[PlanStep]) -> str:
    board = planner.board
    infos: list[PodInfo] = []
    for step in unit:
        if board.cluster.objects.nodes.get(step.node) is None:
            return f'node "{step.node}" is gone'
        if step.pod is None:
            (board.close if step.action == "cordon" else board.open)(step.node)
            return ""
        found = board.cluster.objects.pods.get(step.pod.namespace, step.pod.name)
        if found is None or found.metadata.uid != step.pod.uid:
            return f"pod {step.pod.key} is gone"
        if found.spec.node_name != step.node:
            where = found.spec.node_name or "no node"
            return f"pod {step.pod.key} is on {where}, not on {step.node}"
        infos.append(board.cluster.scheduler.cache.pod(found))
    return _eviction_problem(planner, unit, infos)


def _eviction_problem(planner: Planner, unit: Sequence[PlanStep], infos: Sequence[PodInfo]) -> str:
    first = infos[0]
    if reason := planner.candidates.reason(first):
        return f"pod {first.key} must stay now: {reason}"
    evicted = planner.board.evict(first)
    if evicted.obstacle:
        return f"pod {first.key} must stay now: {evicted.obstacle}"
    if {move.pod.uid for move in evicted.moves} != {info.uid for info in infos}:
        return f"the gang {unit[0].gang or evicted.gang} has other members now"
    if evicted.scaled != unit[0].scaled:
        return f"pod {first.key} would be {_how(evicted.scaled)} now, not {_how(unit[0].scaled)}"
    if Counter(move.node for move in evicted.moves) == Counter(step.to_node for step in unit):
        return ""
    now = ", ".join(sorted(move.node for move in evicted.moves))
    planned = ", ".join(sorted(step.to_node for step in unit))
    return f"the replacement of {first.key} would go to {now} now, not to {planned}"


def _how(scaled: ScaledOwner | None) -> str:
    if scaled is None:
        return "evicted"
    return f"replaced by a surge of {scaled.kind}/{scaled.name} from {scaled.replicas} replicas"
