"""MatchInterPodAffinity: required affinity and anti-affinity between pods (spec 06 §6.6.1).

The order is opposite to v1.36: first the anti-affinity of running pods, then the affinity of the
pod, then its anti-affinity. Affinity terms are evaluated one by one, so different pods may satisfy
different terms.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from kubestow.api.meta import LabelSelector
from kubestow.api.pod import PodAffinityTerm
from kubestow.api.pod_info import AffinityTerm, PodInfo
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import FITS, code_of
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, PodSet
from kubestow.index.tracked import LabelColumns

_NAME: Final = "MatchInterPodAffinity"
_EXISTING: Final = code_of(_NAME, "ExistingPodsAntiAffinityRulesNotMatch")
_OWN: Final = code_of(_NAME, "PodAffinityRulesNotMatch")
_ANTI: Final = code_of(_NAME, "PodAntiAffinityRulesNotMatch")

# The required anti-affinity terms of one pod, in their order.
_TermList = tuple[AffinityTerm, ...]


class MatchInterPodAffinity(NamedRule):
    reads: ClassVar[Reads] = Reads.CLUSTER

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        pod = attempt.pod
        forbidden = _forbidden_by_existing(attempt, nodes)
        if forbidden is None and not pod.has_affinity:
            return ALL_FIT
        codes = np.zeros(len(nodes), np.int64)
        errors: list[str] = []
        if forbidden is not None:
            codes[forbidden] = _EXISTING
        for position, term in enumerate(pod.required_affinity_terms):
            _check_affinity(attempt, nodes, position, term, codes, errors)
        for term in pod.required_anti_affinity_terms:
            is_near = _is_near(nodes, term) | bool(_ghost_with(attempt, term))
            codes[(codes == FITS) & is_near] = _ANTI
        return Verdicts(codes, errors)


def _check_affinity(
    attempt: Attempt,
    nodes: Nodes,
    position: int,
    term: AffinityTerm,
    codes: IntArray,
    errors: list[str],
) -> None:
    """Enter the verdicts of one term on the nodes that no rule before has rejected."""
    undecided = codes == FITS
    far = undecided & ~_is_near(nodes, term)
    if not far.any():
        return
    ghost = _ghost_with(attempt, term)
    if ghost:
        names = nodes.names
        for index in np.flatnonzero(far).tolist():
            errors.append(_unknown_node_error(attempt, names[index], position, ghost))
            codes[index] = -len(errors)
        return
    pod = attempt.pod
    counts = TopologyCounts.at(nodes.snapshot).pods(InAll((_selected_pods(term),)))
    if counts.rows.total() or not _selected_pods(term).has(pod.pod_class):
        codes[far] = _OWN
    # Otherwise the pod is the first that matches: the term is ignored, even where the node lacks
    # the topology label.


def _is_near(nodes: Nodes, term: AffinityTerm) -> BoolArray:
    """bool[node]: whether a pod that the term selects runs in the node's domain."""
    counts = TopologyCounts.at(nodes.snapshot)
    column = counts.column(term.topology_key)
    sums = counts.pods(InAll((_selected_pods(term),))).sums(column)
    return sums.amounts.array().take(column.ids[nodes.rows]) > 0


def _ghost_with(attempt: Attempt, term: AffinityTerm) -> str:
    """The name of a deleted node that still has a pod that the term selects; empty if none."""
    pods = _selected_pods(term)
    for info in attempt.cluster.ghosts():
        if any(map(pods.has, info.class_counts)):
            return info.name
    return ""


def _selected_pods(term: AffinityTerm) -> PodSet:
    return PodSet(term.namespaces, term.selector)


# --- anti-affinity of running pods ------------------------------------------------


def _forbidden_by_existing(attempt: Attempt, nodes: Nodes) -> BoolArray | None:
    """bool[node]: whether the domain of a running pod with anti-affinity to this one has the node.

    None if no node is excluded.
    """
    snapshot = nodes.snapshot
    holders: IntArray = nodes_of(snapshot).tracked(
        "v1.9 anti-affinity", Depends.PODS, _anti_affinity_sets
    )
    if not holders.any():
        return None
    mask = np.zeros(len(nodes), np.bool_)
    numbers: list[int] = np.unique(holders).tolist()
    for number in numbers:
        keys = {
            # A defect of v1.9 that decisions depend on: whichever term selects the pod, the
            # topology key of the last one is used.
            terms[-1].topology_key
            for terms in _ANTI_AFFINITY_SETS[number]
            if any(_selected_pods(term).has(attempt.pod.pod_class) for term in terms)
        }
        for key in keys:
            mask |= _shares_domain(nodes, snapshot, key, holders == number)
    return mask if mask.any() else None


def _shares_domain(nodes: Nodes, snapshot: Snapshot, key: str, holders: BoolArray) -> BoolArray:
    ids = snapshot.derived(LabelColumns).column(key).ids
    taken = np.unique(ids[holders])
    return np.isin(ids[nodes.rows], taken[taken != 0])


# Which lists of required anti-affinity terms the pods of a node have, as numbers: 0 for none.
_ANTI_AFFINITY_SETS: Final[list[frozenset[_TermList]]] = [frozenset()]
_ANTI_AFFINITY_NUMBERS: Final[dict[frozenset[_TermList], int]] = {frozenset(): 0}


def _anti_affinity_sets(nodes: Nodes) -> IntArray:
    """int64[node]: the number of the set of term lists that the pods on each node have."""
    return np.array(
        [_set_number(info.pods_with_required_anti_affinity) for info in nodes.infos()], np.int64
    )


def _set_number(pods: Sequence[PodInfo]) -> int:
    terms = frozenset(
        pod.required_anti_affinity_terms for pod in pods if pod.required_anti_affinity_terms
    )
    number = _ANTI_AFFINITY_NUMBERS.get(terms)
    if number is None:
        number = _ANTI_AFFINITY_NUMBERS[terms] = len(_ANTI_AFFINITY_SETS)
        _ANTI_AFFINITY_SETS.append(terms)
    return number


# --- texts ------------------------------------------------------------------------------------


def _unknown_node_error(attempt: Attempt, node_name: str, position: int, ghost: str) -> str:
    affinity = attempt.pod.pod.spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    term = _printed_term(affinity.pod_affinity.required[position])
    return (
        f"Cannot schedule pod {attempt.pod.key} onto node {node_name}, "
        f'because of PodAffinityTerm {term}, err: node "{ghost}" not found'
    )


def _printed_term(term: PodAffinityTerm) -> str:
    """The term as Go prints it."""
    namespaces = " ".join(term.namespaces)
    return f"{{{_printed_selector(term.label_selector)} [{namespaces}] {term.topology_key}}}"


def _printed_selector(selector: LabelSelector | None) -> str:
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = " ".join(
        f"{{{entry.key} {entry.operator} [{' '.join(entry.values or ())}]}}"
        for entry in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[{expressions}],}}"
    )
