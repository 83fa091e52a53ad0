"""Move or delete pods, so that the waiting one fits: which ones, on which node.

A pod is moved if a controller makes it again and it then fits on another node: its own one is
cordoned until it is there, else it would often come back.

Of the nodes on which deleting pods helps, the one with the fewest and least important victims is
suggested: the highest priority among them decides, then their number. Not deleted are pods more
important than the waiting one, pods that a disruption budget protects, pods that are being deleted
already, pods that come back at once on the same node (of DaemonSets, static pods), and siblings of
the waiting pod: one of them would wait instead.

On nodes where only resources are short the victims are computed (`full_nodes`). On others pods are
taken away in a simulation, on a few nodes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, combinations, islice
from typing import Final, NamedTuple

import msgspec

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, assign, made_again
from kubestow.api.pod_info import AffinityTerm, PodClass, PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.explain.cluster import StillCluster
from kubestow.explain.suggestions.full_nodes import (
    PODS_EXACT,
    VICTIMS_MAX,
    Deletion,
    DeletionRules,
    FullNodes,
)
from kubestow.explain.suggestions.remedy import (
    DELETE_PODS,
    MOVE_POD,
    POD_STEP,
    WAIT,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.stuck_pod import PreparedPod, StuckPod
from kubestow.framework.runner import run_filters_with_nominated, run_remove_pod
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.inter_pod_affinity.filtering import FAR
from kubestow.plugins.node_resources_fit.shortage import UNRESOLVABLE
from kubestow.plugins.pod_topology_spread.filtering import UNLABELLED

# Filters that deleting pods may satisfy, each with a code that it never does.
_EVICTABLE: Final = {
    FIT: None,
    "InterPodAffinity": FAR,
    "NodePorts": None,
    "NodeVolumeLimits": None,
    "PodTopologySpread": UNLABELLED,
    "VolumeRestrictions": None,
}
# Nodes on which pods are taken away in a simulation, and pods of each that are tried.
NODES_SIMULATED: Final = 12
PODS_SIMULATED: Final = 40
# Pods that are tried to be moved.
MOVES_TRIED: Final = 8
# Victims that are named in a text.
NAMES_MAX: Final = 3


def delete_pods(stuck: StuckPod) -> Iterator[Remedy]:
    """The best victims on any node."""
    if not stuck.rejected_early:
        yield from _Evictions(stuck).deletions()


def move_or_delete_pods(stuck: StuckPod) -> Iterator[Remedy]:
    """A pod that finds another node, and the best victims if these are others."""
    if stuck.rejected_early:
        return
    evictions = _Evictions(stuck)
    moves = [] if stuck.is_member else list(evictions.moves())
    yield from moves
    moved = [each.removed for each in moves]
    yield from (each for each in evictions.deletions() if each.removed not in moved)


class _Evictions:
    """The nodes on which fewer pods help, and which pods."""

    def __init__(self, stuck: StuckPod) -> None:
        self._stuck = stuck
        rules = DeletionRules(stuck)
        numbers: list[int] = stuck.blockers.rows_within(_EVICTABLE.keys()).tolist()
        rows = [row for row in numbers if _may_help(stuck, row)]
        of_resources = set[int](stuck.blockers.rows_within((FIT,)).tolist())
        self._full = FullNodes(stuck, rules, [row for row in rows if row in of_resources])
        others = [row for row in rows if row not in of_resources]
        self._simulated = list(_simulated(stuck, rules, others))

    def deletions(self) -> Iterator[Remedy]:
        """The best victims on any node."""
        stuck = self._stuck
        found = (*self._full.best(), *self._simulated)
        for victims in sorted(found, key=lambda each: each.rank):
            removed = tuple(pod.pod for pod in victims.pods)
            if stuck.fits_with(removed=removed):
                yield make_remedy(
                    DELETE_PODS,
                    f"delete {names_of(victims.pods)}{_where(victims.pods)}{victims.freed}",
                    stuck.pod,
                    removed=removed,
                    amount=POD_STEP * len(removed),
                )
                return

    def moves(self) -> Iterator[Remedy]:
        """The first pod that finds another node."""
        lone = chain(self._full.lone(), (each for each in self._simulated if len(each.pods) == 1))
        owned = (each for each in lone if controller_of(each.pods[0].pod) is not None)
        for each in islice(owned, MOVES_TRIED):
            moved = _moved(self._stuck, each.pods[0].pod)
            if moved is not None:
                there = moved.spec.node_name
                yield make_remedy(
                    MOVE_POD,
                    f"move {names_of(each.pods)}{_from(each.pods)} to {there}{each.freed}",
                    self._stuck.pod,
                    objects=(moved,),
                    removed=(each.pods[0].pod,),
                )
                return


def _moved(stuck: StuckPod, victim: Pod) -> Pod | None:
    """The pod as it is made again, on another node; None if it or the waiting pod finds none."""
    cluster, again = stuck.cluster, made_again(victim)
    node = cluster.objects.nodes.get(victim.spec.node_name)
    if cluster.profile_of(again) is None or node is None:
        return None
    cordoned = msgspec.structs.replace(
        node, spec=msgspec.structs.replace(node.spec, unschedulable=True)
    )
    with cluster.changed(cordoned, again, removed=(victim,)):
        there = cluster.decide(again).node_name
    # A pod may tolerate the cordon.
    if not there or there == node.metadata.name:
        return None
    moved = assign(again, there)
    return moved if stuck.fits_with(moved, removed=(victim,)) else None


def replacements(cluster: StillCluster, change: Remedy, node: str) -> str:
    """What becomes of deleted pods that a controller makes again, once the pod has its node."""
    if change.kind == MOVE_POD:
        return f"{change.removed[0].metadata.name} is deleted, and made again by its controller"
    remade = [each for each in change.removed if isinstance(each, Pod) and controller_of(each)]
    if not remade or change.kind == WAIT:
        return ""
    placed = assign(change.pod, node)
    parts: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(cluster.changed(placed, *change.objects, removed=change.removed))
        for victim in remade[:NAMES_MAX]:
            again = made_again(victim)
            stack.enter_context(cluster.changed(again))
            if cluster.profile_of(again) is None:
                continue
            there = cluster.decide(again).node_name
            where = f"then fits on {there}" if there else "then waits"
            parts.append(f"{victim.metadata.name} is made again and {where}")
            if there:
                stack.enter_context(cluster.changed(assign(again, there)))
    return "; ".join(parts)


def names_of(pods: Sequence[PodInfo]) -> str:
    """Pods in a text: the first ones by name."""
    names = [pod.key for pod in pods[:NAMES_MAX]]
    if len(pods) > NAMES_MAX:
        names.append(f"{len(pods) - NAMES_MAX} more")
    noun = "the pod" if len(pods) == 1 else "the pods"
    return f"{noun} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _from(pods: Sequence[PodInfo]) -> str:
    return f" from {pods[0].pod.spec.node_name}"


def _where(pods: Sequence[PodInfo]) -> str:
    nodes = {pod.pod.spec.node_name for pod in pods}
    return f" on {nodes.pop()}" if len(nodes) == 1 else ""


def _may_help(stuck: StuckPod, row: int) -> bool:
    if stuck.blockers.code(FIT, row) & UNRESOLVABLE:
        return False
    return all(
        never is None or stuck.blockers.code(plugin, row) != never
        for plugin, never in _EVICTABLE.items()
    )


# --- Where other things are taken -----------------------------------------------------------------


def _simulated(stuck: StuckPod, rules: DeletionRules, rows: Sequence[int]) -> Iterator[Deletion]:
    for row in rows[:NODES_SIMULATED]:
        pods = rules.deletable(stuck.snapshot.node_infos[row].pods)[:PODS_SIMULATED]
        found = _by_removal(stuck.attempt, rules, row, pods)
        if found is not None:
            yield Deletion(row, found)
    yield from _elsewhere(stuck, rules, rows)


def _by_removal(
    attempt: PreparedPod, rules: DeletionRules, row: int, pods: Sequence[PodInfo]
) -> tuple[PodInfo, ...] | None:
    """One pod, two pods, or all that have to go once as many as possible were put back."""
    for pod in pods:
        if _fits_without(attempt, row, (pod,)):
            return (pod,)
    if not _fits_without(attempt, row, pods):
        return None
    if len(pods) <= PODS_EXACT:
        for pair in combinations(pods, 2):
            if rules.allows(pair) and _fits_without(attempt, row, pair):
                return pair
    chosen = list(pods)
    for pod in reversed(pods):
        fewer = [each for each in chosen if each is not pod]
        if _fits_without(attempt, row, fewer):
            chosen = fewer
    if len(chosen) > VICTIMS_MAX or not rules.allows(chosen):
        return None
    return tuple(chosen)


def _fits_without(attempt: PreparedPod, row: int, pods: Iterable[PodInfo]) -> bool:
    node, state = SimulatedNode(attempt.snapshot, row), attempt.state.clone()
    for pod in pods:
        node.remove_pod(pod)
        if run_remove_pod(attempt.profile, state, attempt.pod, pod, row) is not None:
            return False
    return run_filters_with_nominated(attempt.profile, state, attempt.pod, node, ()) is None


# --- On other nodes -------------------------------------------------------------------------------


def _elsewhere(stuck: StuckPod, rules: DeletionRules, rows: Sequence[int]) -> Iterator[Deletion]:
    """Pods that keep the pod away from a whole topology, or by a claim that one pod may use.

    All of them have to go: each one is enough to keep it away.
    """
    blocked = stuck.blockers.rejected("InterPodAffinity") | stuck.blockers.rejected(
        "VolumeRestrictions"
    )
    rows = [row for row in rows if blocked[row]][:NODES_SIMULATED]
    if not rows:
        return
    conflicts = _Conflicts(stuck)
    seen = set[frozenset[str]]()
    for row in rows:
        found = conflicts.near(row)
        names = frozenset(pod.key for pod in found)
        if not found or len(found) > VICTIMS_MAX or names in seen:
            continue
        seen.add(names)
        if len(rules.deletable(found)) == len(found) and rules.allows(found):
            yield Deletion(row, tuple(found))


class _Conflict(NamedTuple):
    """A pod, its row, and the topology in which it keeps the other away; "" for everywhere."""

    pod: PodInfo
    row: int
    key: str


class _Conflicts:
    """The pods that keep the pod away from nodes."""

    def __init__(self, stuck: StuckPod) -> None:
        self._snapshot = stuck.snapshot
        self._pod = stuck.attempt.pod
        self._namespaces = stuck.cluster.objects.namespaces
        self._terms: dict[PodClass, tuple[str, ...]] = {}
        self._found = [
            _Conflict(pod, row, key)
            for row, info in enumerate(self._snapshot.node_infos)
            for pod, key in self._of_node(info)
        ]

    def near(self, row: int) -> list[PodInfo]:
        """The pods that keep the pod away from one node, each once."""
        nodes = self._snapshot.nodes
        labels = nodes[row].metadata.labels
        found = {
            conflict.pod.key: conflict.pod
            for conflict in self._found
            if not conflict.key
            or labels.get(conflict.key, 0)
            == nodes[conflict.row].metadata.labels.get(conflict.key, 1)
        }
        return list(found.values())

    def _of_node(self, info: NodeInfo) -> Iterator[tuple[PodInfo, str]]:
        own_claims = self._pod.pvc_keys
        if self._pod.required_anti_affinity_terms:
            for pod in info.pods:
                yield from ((pod, key) for key in self._keys(pod.pod_class))
        for pod in info.pods_with_required_anti_affinity:
            for term in pod.required_anti_affinity_terms:
                if self._selects(term, self._pod.pod_class):
                    yield pod, term.topology_key
        if own_claims and not info.pvc_ref_counts.keys().isdisjoint(own_claims):
            for pod in info.pods:
                if not set(own_claims).isdisjoint(pod.pvc_keys):
                    yield pod, ""

    def _keys(self, pod_class: PodClass) -> tuple[str, ...]:
        """The topology keys of the pod's own terms that select a class of pods."""
        keys = self._terms.get(pod_class)
        if keys is None:
            terms = self._pod.required_anti_affinity_terms
            keys = tuple(term.topology_key for term in terms if self._selects(term, pod_class))
            self._terms[pod_class] = keys
        return keys

    def _selects(self, term: AffinityTerm, pod_class: PodClass) -> bool:
        namespace = self._namespaces.get(pod_class.namespace)
        labels = {} if namespace is None else namespace.metadata.labels
        return term.matches(pod_class.namespace, pod_class.labels, labels)
