"""Which pods went elsewhere than in the first variant, and why.

A pod is the same in two runs if its namespace and name are; of a Job or ReplicaSet, whose pods have
random names, the first pod of one run is the same as the first of the other, and so on. Why it went
elsewhere is found in the two attempts that placed it: what each scheduler found of both nodes,
`there` of the first variant and `here` of the other. The first of these that holds is the reason:

    Filter    a plugin rejected the other node: here the node of the first variant, or there the
              node that was chosen here
    Node      one of the nodes did not exist in the other run at that time
    Search    the node of the first variant was not looked at here, or the chosen one not there
    Score     a plugin's score: the one whose lead of the chosen node over the other one differs
              most between the two attempts
    Tie       both nodes have equal scores in both attempts

The clusters of the two runs differ as soon as one pod has moved, so a filter or a score may differ
because of pods that moved before, not because the plugin is set differently. The first entry of a
run, in the order of time, is the one that started it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from kubestow.simulator.comparison.task import NodeView, PodChoice
from kubestow.simulator.results import PodRow

Reason = Literal["Filter", "Node", "Search", "Score", "Tie", "Pending", "Placed", "Unknown"]


class ScoreLead(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How much more weighted score of a plugin the node chosen here has than the node of the first
    variant, in both attempts."""

    plugin: str
    here: int
    there: int


class MovedPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod whose node differs; empty if it got none.

    pod      NAMESPACE/NAME in the first variant
    reason   Pending: it has a node in the first variant only. Placed: only here.
    plugin   whose score or filter made the difference; empty where none did
    leads    by plugin, the largest difference first; only for Score
    """

    seed: int
    pod: str
    first_node: str
    node: str
    reason: Reason
    plugin: str = ""
    text: str = ""
    leads: tuple[ScoreLead, ...] = ()


class ReasonCount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many pods moved for a reason, over all seeds."""

    reason: Reason
    plugin: str
    pods: int


class PodPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod of a run went, and why it waits if it does.

    pod   NAMESPACE/NAME in that run
    """

    pod: str
    node: str
    message: str


def placements_of(pods: Iterable[PodRow]) -> dict[str, PodPlacement]:
    """Where each pod went, in the order in which the pods were created.

    The key is what is the same in other runs. Of pods of one name, one after the other, the last
    counts.
    """
    numbers: Counter[tuple[str, str]] = Counter()
    placements: dict[str, PodPlacement] = {}
    for pod in pods:
        name = key = f"{pod.namespace}/{pod.name}"
        if pod.generate_name:
            stem = (pod.namespace, pod.generate_name)
            numbers[stem] += 1
            key = f"{'/'.join(stem)}#{numbers[stem]}"
        placements[key] = PodPlacement(pod=name, node=pod.node, message=pod.message or pod.reason)
    return placements


def different(
    first: Mapping[str, PodPlacement], other: Mapping[str, PodPlacement]
) -> list[tuple[PodPlacement, PodPlacement]]:
    """The pods that both runs have, and that went elsewhere: in the first run, and in the other."""
    return [
        (placement, other[key])
        for key, placement in first.items()
        if key in other and placement.node != other[key].node
    ]


def reason_counts(moved: Iterable[MovedPod]) -> list[ReasonCount]:
    """The most frequent first."""
    counts: Counter[tuple[Reason, str]] = Counter((each.reason, each.plugin) for each in moved)
    return [
        ReasonCount(reason=reason, plugin=plugin, pods=count)
        for (reason, plugin), count in sorted(
            counts.items(), key=lambda entry: (-entry[1], entry[0])
        )
    ]


def moved_pod(
    seed: int,
    first: PodPlacement,
    other: PodPlacement,
    there: PodChoice | None,
    here: PodChoice | None,
    *,
    first_name: str,
) -> MovedPod:
    """A pod that went elsewhere; `first` is where it is in the first variant, `other` here, `there`
    and `here` are the attempts, None if they were not followed."""
    moved = MovedPod(
        seed=seed, pod=first.pod, first_node=first.node, node=other.node, reason="Unknown", text=""
    )
    if not other.node:
        return msgspec.structs.replace(moved, reason="Pending", text=other.message)
    if not first.node:
        return msgspec.structs.replace(moved, reason="Placed", text=first.message)
    if there is None or here is None:
        return moved
    return _explained(moved, there, here, first_name)


def _explained(moved: MovedPod, there: PodChoice, here: PodChoice, first_name: str) -> MovedPod:
    first_node_here = here.views[moved.first_node]
    node_there = there.views[moved.node]
    replace = msgspec.structs.replace
    for name, view, where in (
        (moved.first_node, first_node_here, ""),
        (moved.node, node_there, f" in {first_name}"),
    ):
        match view.verdict:
            case "Rejected":
                text = f"{view.plugin} rejects {name}{where}: {view.reason}"
                return replace(moved, reason="Filter", plugin=view.plugin, text=text)
            case "Absent":
                return replace(moved, reason="Node", text=f"there was no node {name}{where}")
            case "NotLookedAt":
                text = f"{name} was not looked at{where}: {_SEARCH.get(view.reason, view.reason)}"
                return replace(moved, reason="Search", text=text)
            case "Feasible":
                pass
    leads = _leads(
        _lead(here.views[moved.node], first_node_here),
        _lead(node_there, there.views[moved.first_node]),
    )
    # Leads that cancel each other out leave both totals equal.
    if not sum(lead.here - lead.there for lead in leads):
        return replace(moved, reason="Tie", text=_TIE)
    best = leads[0]
    text = f"{best.plugin}: {moved.node} leads by {best.here}, in {first_name} by {best.there}"
    return replace(moved, reason="Score", plugin=best.plugin, text=text, leads=leads)


_TIE = "both nodes score the same; the order of the search decided"
_SEARCH = {
    "EnoughFound": "enough nodes were found before it",
    "Hint": "the pod fits the node that an equal pod before it left as the next best",
    "NominatedNode": "the pod fits the node that it was nominated to",
    "PreFilterRestricted": "a plugin left it out",
}


def _lead(chosen: NodeView, other: NodeView) -> dict[str, int]:
    """How far the chosen node is ahead by each plugin; by one without a name, if only totals are
    known."""
    if not chosen.scores and chosen.total is not None and other.total is not None:
        return {_TOTAL: chosen.total - other.total}
    return {
        plugin: chosen.scores.get(plugin, 0) - other.scores.get(plugin, 0)
        for plugin in chosen.scores.keys() | other.scores.keys()
    }


_TOTAL = "all priorities"


def _leads(here: Mapping[str, int], there: Mapping[str, int]) -> tuple[ScoreLead, ...]:
    """Where the two attempts differ, the largest difference first: it is the one without which the
    choice would most likely have been the other."""
    leads = [
        ScoreLead(plugin=plugin, here=here.get(plugin, 0), there=there.get(plugin, 0))
        for plugin in here.keys() | there.keys()
    ]
    differing = [lead for lead in leads if lead.here != lead.there]
    return tuple(sorted(differing, key=lambda lead: (-(lead.here - lead.there), lead.plugin)))
