"""Delete pods, so that there is room: which ones, on which node.

Of the nodes on which deleting pods helps, the one with the fewest and least important victims is
suggested: the highest priority among them decides, then their number. Not deleted are pods more
important than the waiting one, pods that a disruption budget protects, pods that are being deleted
already, and pods that come back at once on the same node (of DaemonSets, static pods).

On nodes where only resources are short the victims are computed from the requests of the pods. On
others pods are taken away in a simulation, on a few nodes.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from kubestow.api.disruption import BudgetTable
from kubestow.api.owners import controller_of
from kubestow.api.pod import is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import amount_of
from kubestow.explain.suggestions.case import Attempt, Case
from kubestow.explain.suggestions.change import DELETE_PODS, POD_STEP, Change, make_change
from kubestow.explain.suggestions.requests import FIT
from kubestow.framework.runner import run_filters_with_nominated, run_remove_pod
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.inter_pod_affinity.filtering import FAR
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import TOO_MANY_PODS, UNRESOLVABLE, Demand
from kubestow.plugins.pod_topology_spread.filtering import UNLABELLED

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
# Filters that deleting pods may satisfy, each with a code that it never does.
_EVICTABLE: Final = {
    FIT: None,
    "InterPodAffinity": FAR,
    "NodePorts": None,
    "NodeVolumeLimits": None,
    "PodTopologySpread": UNLABELLED,
    "VolumeRestrictions": None,
}
# Nodes on which pods are taken away in a simulation, pods of each that are tried one by one and in
# pairs, and nodes whose victims are computed exactly.
NODES_SIMULATED: Final = 12
PODS_SIMULATED: Final = 40
NODES_COMPUTED: Final = 200
# Victims in other places of a topology that are looked for together.
VICTIMS_ELSEWHERE_MAX: Final = 3
# Up to this many pods the fewest victims are found by trying all pairs and triples.
PODS_EXACT: Final = 24
# More victims are not suggested.
VICTIMS_MAX: Final = 8


class Victims(NamedTuple):
    row: int
    pods: tuple[PodInfo, ...]

    @property
    def rank(self) -> tuple[int, int, int, int]:
        priorities = [pod.priority for pod in self.pods]
        return max(priorities), len(priorities), sum(priorities), self.row


def delete_pods(case: Case) -> Iterator[Change]:
    """The best victims on any node."""
    if case.rejected_early:
        return
    rules = _Rules(case)
    rows = case.blockers.rows_within(_EVICTABLE.keys()).tolist()
    rows = [row for row in rows if _may_help(case, row)]
    of_resources = set(case.blockers.rows_within((FIT,)).tolist())
    computed = _computed(case, rules, [row for row in rows if row in of_resources])
    simulated = _simulated(case, rules, [row for row in rows if row not in of_resources])
    for victims in sorted((*computed, *simulated), key=lambda found: found.rank):
        removed = tuple(pod.pod for pod in victims.pods)
        if case.fits_with(removed=removed):
            names = ", ".join(pod.key for pod in victims.pods)
            noun = "pod" if len(removed) == 1 else f"{len(removed)} pods"
            yield make_change(
                DELETE_PODS,
                f"delete the {noun} {names} on {case.snapshot.names[victims.row]}",
                case.pod,
                removed=removed,
                amount=POD_STEP * len(removed),
            )
            return


def _may_help(case: Case, row: int) -> bool:
    if case.blockers.code(FIT, row) & UNRESOLVABLE:
        return False
    return all(
        never is None or case.blockers.code(plugin, row) != never
        for plugin, never in _EVICTABLE.items()
    )


class _Rules:
    """Which pods may be deleted."""

    def __init__(self, case: Case) -> None:
        self._priority = case.attempt.pod.priority
        budgets = case.cluster.objects.pod_disruption_budgets
        self._budgets = BudgetTable(budgets) if len(budgets) else None

    def deletable(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """The least important first."""
        found = [pod for pod in pods if self._is_deletable(pod)]
        return sorted(found, key=lambda pod: pod.priority)

    def allows(self, pods: Sequence[PodInfo]) -> bool:
        """Whether no budget protects one of the pods when all are deleted."""
        return self._budgets is None or not self._budgets.split(pods).violating

    def _is_deletable(self, pod: PodInfo) -> bool:
        owner = controller_of(pod.pod)
        return (
            pod.priority <= self._priority
            and not is_terminating(pod.pod)
            and MIRROR_ANNOTATION not in pod.pod.metadata.annotations
            and (owner is None or owner.kind not in ("DaemonSet", "Node"))
            and self.allows((pod,))
        )


# --- Where resources are short -------------------------------------------------------------------


class _Need(NamedTuple):
    """What must become free on a node: pods, and amounts of resources."""

    count: int
    amounts: tuple[tuple[str, int], ...]

    def gains(self, pod: PodInfo) -> tuple[int, ...]:
        requested = pod.accounted.requested
        return (1, *(amount_of(name, requested) for name, _ in self.amounts))

    @property
    def wanted(self) -> tuple[int, ...]:
        return (self.count, *(missing for _, missing in self.amounts))


def _computed(case: Case, rules: _Rules, rows: Sequence[int]) -> Iterator[Victims]:
    plugin = case.attempt.profile.plugins.get(FIT)
    if not isinstance(plugin, NodeResourcesFit):
        return
    demands = plugin.fit_request(case.attempt.state).demands
    needs = {row: _need(case, demands, row) for row in rows}
    # One victim is the usual result: it is looked for on every node.
    single = [
        Victims(row, (pod,))
        for row, need in needs.items()
        for pod in case.snapshot.node_infos[row].pods
        if _is_enough(need, (pod,)) and rules.deletable((pod,))
    ]
    best = min(single, key=lambda found: found.rank, default=None)
    if best is not None:
        yield best
        if best.pods[0].priority == _lowest_priority(case, needs):
            return
    for row in _closest(needs)[:NODES_COMPUTED]:
        pods = rules.deletable(case.snapshot.node_infos[row].pods)
        found = _fewest(needs[row], pods, rules)
        if found is not None:
            yield Victims(row, found)


def _lowest_priority(case: Case, rows: Iterable[int]) -> int:
    return min(pod.priority for row in rows for pod in case.snapshot.node_infos[row].pods)


def _closest(needs: dict[int, _Need]) -> list[int]:
    """The rows by how many things are missing, then by how much of the first."""
    return sorted(needs, key=lambda row: (sum(map(bool, needs[row].wanted)), needs[row].wanted))


def _need(case: Case, demands: Sequence[Demand], row: int) -> _Need:
    code = case.blockers.code(FIT, row)
    info = case.snapshot.node_infos[row]
    count = 0
    if code & TOO_MANY_PODS:
        count = len(info.pods) - info.allocatable.allowed_pods + 1
    amounts: list[tuple[str, int]] = []
    for demand in demands:
        if code >> demand.bit & 1:
            offered = amount_of(demand.name, info.allocatable)
            used = amount_of(demand.name, info.requested)
            amounts.append((demand.name, demand.amount - (offered - used)))
    return _Need(count, tuple(amounts))


def _is_enough(need: _Need, pods: Iterable[PodInfo]) -> bool:
    gained = [sum(each) for each in zip(*map(need.gains, pods), strict=True)]
    return all(each >= wanted for each, wanted in zip(gained, need.wanted, strict=True))


def _fewest(
    need: _Need, pods: Sequence[PodInfo], rules: _Rules
) -> tuple[PodInfo, ...] | None:
    """The fewest of these pods that are enough, of the lowest priorities that can be."""
    for ceiling in sorted({pod.priority for pod in pods}):
        among = [pod for pod in pods if pod.priority <= ceiling]
        if not _is_enough(need, among):
            continue
        found = _fewest_of(need, among, rules)
        if found is not None:
            return found
    return None


def _fewest_of(
    need: _Need, pods: Sequence[PodInfo], rules: _Rules
) -> tuple[PodInfo, ...] | None:
    if len(pods) <= PODS_EXACT:
        for size in (1, 2, 3):
            for chosen in combinations(pods, size):
                if _is_enough(need, chosen) and rules.allows(chosen):
                    return chosen
    return _greedy(need, pods, rules)


def _greedy(
    need: _Need, pods: Sequence[PodInfo], rules: _Rules
) -> tuple[PodInfo, ...] | None:
    """The pods that free the most of what is missing, until it is enough."""

    def gain(pod: PodInfo) -> float:
        return sum(
            min(each / wanted, 1)
            for each, wanted in zip(need.gains(pod), need.wanted, strict=True)
            if wanted > 0
        )

    chosen: list[PodInfo] = []
    for pod in sorted(pods, key=gain, reverse=True):
        if len(chosen) == VICTIMS_MAX:
            return None
        if rules.allows((*chosen, pod)):
            chosen.append(pod)
            if _is_enough(need, chosen):
                return tuple(chosen)
    return None


# --- Where other things are taken -----------------------------------------------------------------


def _simulated(case: Case, rules: _Rules, rows: Sequence[int]) -> Iterator[Victims]:
    for row in rows[:NODES_SIMULATED]:
        pods = rules.deletable(case.snapshot.node_infos[row].pods)[:PODS_SIMULATED]
        found = _by_removal(case.attempt, rules, row, pods)
        if found is not None:
            yield Victims(row, found)
    yield from _elsewhere(case, rules, rows)


def _by_removal(
    attempt: Attempt, rules: _Rules, row: int, pods: Sequence[PodInfo]
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


def _fits_without(attempt: Attempt, row: int, pods: Iterable[PodInfo]) -> bool:
    node, state = SimulatedNode(attempt.snapshot, row), attempt.state.clone()
    for pod in pods:
        node.remove_pod(pod)
        if run_remove_pod(attempt.profile, state, attempt.pod, pod, row) is not None:
            return False
    return run_filters_with_nominated(attempt.profile, state, attempt.pod, node, ()) is None


def _elsewhere(case: Case, rules: _Rules, rows: Sequence[int]) -> Iterator[Victims]:
    """Pods on other nodes that keep the pod away: by anti-affinity in a whole topology, or by a
    claim that a single pod may use."""
    if not rows:
        return
    found = rules.deletable(_conflicting(case))
    if 0 < len(found) <= VICTIMS_ELSEWHERE_MAX:
        for size in range(1, len(found) + 1):
            for chosen in combinations(found, size):
                if rules.allows(chosen):
                    yield Victims(_row_of(case, chosen[0]), chosen)


def _row_of(case: Case, pod: PodInfo) -> int:
    row = case.snapshot.row_of(pod.pod.spec.node_name)
    assert row is not None
    return row


def _conflicting(case: Case) -> list[PodInfo]:
    """At most one more than are looked for together."""
    found: list[PodInfo] = []
    for info in case.snapshot.node_infos:
        for pod in info.pods:
            if _conflicts(case, pod):
                found.append(pod)
                if len(found) > VICTIMS_ELSEWHERE_MAX:
                    return found
    return found


def _conflicts(case: Case, other: PodInfo) -> bool:
    pod = case.attempt.pod
    if not set(pod.pvc_keys).isdisjoint(other.pvc_keys):
        return True
    return any(
        term.matches(other.namespace, other.pod.metadata.labels, _labels(case, other.namespace))
        for term in pod.required_anti_affinity_terms
    ) or any(
        term.matches(pod.namespace, pod.pod.metadata.labels, _labels(case, pod.namespace))
        for term in other.required_anti_affinity_terms
    )


def _labels(case: Case, namespace: str) -> dict[str, str]:
    found = case.cluster.objects.namespaces.get(namespace)
    return {} if found is None else found.metadata.labels
