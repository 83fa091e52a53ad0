"""Delete pods, so that there is room: which ones, on which node.

Of the nodes on which deleting pods helps, the one with the fewest and least important victims is
suggested: the highest priority among them decides, then their number. Not deleted are pods more
important than the waiting one, pods that a disruption budget protects, pods that are being deleted
already, and pods that come back at once on the same node (of DaemonSets, static pods).

On nodes where only resources are short the victims are computed (`room`). On others pods are taken
away in a simulation, on a few nodes.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.explain.suggestions.case import Attempt, Case
from kubestow.explain.suggestions.change import DELETE_PODS, POD_STEP, Change, make_change
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.room import PODS_EXACT, VICTIMS_MAX, Rules, Victims, make_room
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
# Victims that are named in a text.
NAMES_MAX: Final = 3
# Victims in other places of a topology that are looked for together.
VICTIMS_ELSEWHERE_MAX: Final = 3


def delete_pods(case: Case) -> Iterator[Change]:
    """The best victims on any node."""
    if case.rejected_early:
        return
    rules = Rules(case)
    rows = case.blockers.rows_within(_EVICTABLE.keys()).tolist()
    rows = [row for row in rows if _may_help(case, row)]
    of_resources = set(case.blockers.rows_within((FIT,)).tolist())
    computed = make_room(case, rules, [row for row in rows if row in of_resources])
    simulated = _simulated(case, rules, [row for row in rows if row not in of_resources])
    for victims in sorted((*computed, *simulated), key=lambda found: found.rank):
        removed = tuple(pod.pod for pod in victims.pods)
        if case.fits_with(removed=removed):
            yield make_change(
                DELETE_PODS,
                f"delete {_names(victims.pods)} on {case.snapshot.names[victims.row]}",
                case.pod,
                removed=removed,
                amount=POD_STEP * len(removed),
            )
            return


def _names(pods: Sequence[PodInfo]) -> str:
    names = [pod.key for pod in pods[:NAMES_MAX]]
    if len(pods) > NAMES_MAX:
        names.append(f"{len(pods) - NAMES_MAX} more")
    noun = "the pod" if len(pods) == 1 else "the pods"
    return f"{noun} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _may_help(case: Case, row: int) -> bool:
    if case.blockers.code(FIT, row) & UNRESOLVABLE:
        return False
    return all(
        never is None or case.blockers.code(plugin, row) != never
        for plugin, never in _EVICTABLE.items()
    )


# --- Where other things are taken -----------------------------------------------------------------


def _simulated(case: Case, rules: Rules, rows: Sequence[int]) -> Iterator[Victims]:
    for row in rows[:NODES_SIMULATED]:
        pods = rules.deletable(case.snapshot.node_infos[row].pods)[:PODS_SIMULATED]
        found = _by_removal(case.attempt, rules, row, pods)
        if found is not None:
            yield Victims(row, found)
    yield from _elsewhere(case, rules, rows)


def _by_removal(
    attempt: Attempt, rules: Rules, row: int, pods: Sequence[PodInfo]
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


def _elsewhere(case: Case, rules: Rules, rows: Sequence[int]) -> Iterator[Victims]:
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
