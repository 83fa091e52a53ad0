"""Changes that may be the first of two: each removes one of two things that are in the way.

The changes are the same as single ones; only what counts as a success differs. `HalfWay` counts
what is in the way of the pod on each node: filters, and within them resources that are short,
taints, expressions and terms. A change helps if one thing is left on a node that had two. The
second change is then found as a single one.

Not all nodes are looked at: a few for each combination of answers of the filters.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.node_selector import RequiredNodeAffinity
from kubestow.api.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
)
from kubestow.api.taints import TolerationTable
from kubestow.arrays import BoolArray, IntArray, IntpArray, pick
from kubestow.explain.cluster import StillCluster
from kubestow.explain.suggestions.devices import PLUGIN as DEVICES
from kubestow.explain.suggestions.devices import with_least_devices
from kubestow.explain.suggestions.node_changes import TAINTS
from kubestow.explain.suggestions.pod_parts import with_spec
from kubestow.explain.suggestions.pod_rules import HARD
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.stuck_pod import (
    Blockers,
    PreparedPod,
    StuckPod,
    prepared,
    untolerated,
)
from kubestow.framework.runner import FilterError, filter_of
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import UNRESOLVABLE, Demand

# Nodes that are looked at: of each combination of answers, and altogether.
ROWS_OF_COMBINATION: Final = 8
ROWS_MAX: Final = 256

_FAR: Final = 1 << 20
_ONE_BY_ONE: Final = ("InterPodAffinity", "NodeAffinity", "PodTopologySpread")


class HalfWay(StuckPod):
    """A pod that does not fit, of which changes are wanted that help with another one."""

    slack: ClassVar[int] = 2

    def __init__(self, cluster: StillCluster, pod: Pod, rows: IntpArray) -> None:
        super().__init__(cluster, pod, rows)
        self._numbers = rows
        self._distance = _distances(cluster, self.attempt, self.blockers, rows)

    def feasible(self, pod: Pod) -> IntpArray:
        """Rows with one thing in the way, fewer than before."""
        attempt = prepared(self.cluster, pod)
        blockers = Blockers(attempt, self._numbers)
        left = _distances(self.cluster, attempt, blockers, self._numbers)
        return self._numbers[(left <= 1) & (left < self._distance)]

    def rows_blocked_by(self, *plugins: str) -> list[int]:
        is_blocked = np.zeros(len(self._numbers), np.bool_)
        for plugin in plugins:
            is_blocked |= self.blockers.rejected(plugin)[self._numbers]
        return self._numbers[is_blocked & (self._distance == self.slack)].tolist()

    def rows_short_of(self, demand: Demand) -> IntpArray:
        rows = np.array(self.rows_blocked_by(FIT), np.intp)
        return rows[(self.blockers.codes[FIT][rows] >> demand.bit & 1).astype(np.bool_)]


def half_way(stuck: StuckPod) -> HalfWay:
    """The stuck pod, on nodes where two changes may help."""
    return HalfWay(stuck.cluster, stuck.pod, _sample(stuck))


def _sample(stuck: StuckPod) -> IntpArray:
    blockers = stuck.blockers
    if stuck.rejected_early:
        step = -(-len(stuck.snapshot) // ROWS_MAX)
        return np.arange(0, len(stuck.snapshot), max(step, 1))
    rows = np.flatnonzero((blockers.count > 0) & (blockers.count <= len(TAINTS) + 1))
    if len(rows) == 0:
        return rows
    rows = rows[np.argsort(-_free_percent(stuck, rows), kind="stable")]
    answers = [codes[rows] for codes in blockers.codes.values()]
    if DEVICES in blockers.codes:
        # Nodes without any device for the pod are of no use, and answer like those that have some.
        with stuck.cluster.changed(*with_least_devices(stuck)):
            answers.append(_rejected(prepared(stuck.cluster, stuck.pod), DEVICES, rows))
    answers = np.stack(answers, axis=1)
    _, combination = np.unique(answers, axis=0, return_inverse=True)
    order = np.argsort(combination, kind="stable")
    starts = np.searchsorted(combination[order], combination[order])
    is_kept = np.arange(len(order)) - starts < ROWS_OF_COMBINATION
    return np.sort(rows[order[is_kept]][:ROWS_MAX])


def _free_percent(stuck: StuckPod, rows: IntpArray) -> IntArray:
    """int64[k]: how much of the pod's requests is free, in percent, over all resources."""
    percent = np.zeros(len(rows), np.int64)
    plugin = stuck.attempt.profile.plugins.get(FIT)
    if not isinstance(plugin, NodeResourcesFit):
        return percent
    nodes = nodes_of(stuck.snapshot, rows)
    for demand in plugin.fit_request(stuck.attempt.state).demands:
        column = nodes.resource_column(demand.name)
        if column is not None:
            free = nodes.allocatable(column) - nodes.requested(column)
            percent += np.clip(free * 100.0 / demand.amount, 0, 100).astype(np.int64)
    return percent


# --- How much is in the way -----------------------------------------------------------------------


def _distances(
    cluster: StillCluster, attempt: PreparedPod, blockers: Blockers, rows: IntpArray
) -> IntArray:
    """int64[k]: how many things are in the way on each row."""
    if attempt.pre_filter.status is not None:
        return np.full(len(rows), _FAR, np.int64)
    pod, total = attempt.pod.pod, np.zeros(len(rows), np.int64)
    for plugin, codes in blockers.codes.items():
        answers = codes[rows]
        if plugin == FIT:
            short: list[int] = (answers & ~np.int64(UNRESOLVABLE)).tolist()
            total += np.array([bits.bit_count() for bits in short], np.int64)
        elif plugin not in (*TAINTS, *_ONE_BY_ONE):
            total += answers != 0
    is_tainted = np.zeros(len(rows), np.bool_)
    for plugin in TAINTS:
        is_tainted |= blockers.rejected(plugin)[rows]
    compares = cluster.gates.enabled("TaintTolerationComparisonOperators")
    nodes = pick(attempt.snapshot.nodes, rows)
    tolerations = TolerationTable(pod.spec.tolerations)
    _add(
        total,
        is_tainted,
        nodes,
        lambda node: len(
            {taint.key for taint in untolerated(node, tolerations, comparison_operators=compares)}
        ),
    )
    _add(
        total,
        blockers.rejected("NodeAffinity")[rows],
        nodes,
        _Mismatches(pod).count,
    )
    for plugin, parts in (
        ("PodTopologySpread", _with_one_constraint(pod)),
        ("InterPodAffinity", _with_one_term(pod)),
    ):
        if plugin in blockers.codes:
            each = [_rejected(prepared(cluster, part), plugin, rows) for part in parts]
            at_least = blockers.rejected(plugin)[rows].astype(np.int64)
            total += np.maximum(sum(each, np.zeros(len(rows), np.int64)), at_least)
    return total


def _add(
    total: IntArray, where: BoolArray, nodes: Sequence[Node], count: Callable[[Node], int]
) -> None:
    positions: list[int] = where.nonzero()[0].tolist()
    for position in positions:
        # A profile may have an affinity of its own, which no change of the pod satisfies.
        total[position] += max(count(nodes[position]), 1)


def _rejected(attempt: PreparedPod, plugin: str, rows: IntpArray) -> IntArray:
    """int64[k]: 1 where this filter rejects."""
    step = next((step for step in attempt.profile.filter_steps if step.name == plugin), None)
    if step is None or plugin in attempt.state.skip_filter:
        return np.zeros(len(rows), np.int64)
    nodes = nodes_of(attempt.snapshot, rows)
    try:
        codes = filter_of(step.plugin, plugin, attempt.state, attempt.pod, nodes)
    except FilterError:
        return np.ones(len(rows), np.int64)
    return np.zeros(len(rows), np.int64) if codes is None else (codes != 0).astype(np.int64)


def _with_one_constraint(pod: Pod) -> Iterator[Pod]:
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable == HARD:
            yield with_spec(pod, topology_spread_constraints=(constraint,))


def _with_one_term(pod: Pod) -> Iterator[Pod]:
    """The pod with each of its required terms alone, and without any: other pods have terms too."""
    affinity = pod.spec.affinity or Affinity()
    yield with_spec(pod, affinity=None)
    near, apart = (
        affinity.pod_affinity or PodAffinity(),
        affinity.pod_anti_affinity or PodAffinity(),
    )
    for term in near.required:
        yield with_spec(pod, affinity=Affinity(pod_affinity=PodAffinity(required=(term,))))
    for term in apart.required:
        yield with_spec(pod, affinity=Affinity(pod_anti_affinity=PodAffinity(required=(term,))))


class _Mismatches:
    """Counts the entries and expressions of a pod's node selection that a node does not match."""

    def __init__(self, pod: Pod) -> None:
        self._selector = (pod.spec.node_selector or {}).items()
        affinity = pod.spec.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        required = None if node_affinity is None else node_affinity.required
        self._terms = [
            [_matcher(pod, part) for part in _parts(term)]
            for term in (() if required is None else required.node_selector_terms)
        ]

    def count(self, node: Node) -> int:
        labels, name = node.metadata.labels, node.metadata.name
        entries = sum(labels.get(key) != value for key, value in self._selector)
        counts = [sum(not part.matches(labels, name) for part in term) for term in self._terms]
        return entries + min(counts, default=0)


def _parts(term: NodeSelectorTerm) -> Iterator[NodeSelectorTerm]:
    for expression in term.match_expressions:
        yield NodeSelectorTerm(match_expressions=(expression,))
    for field in term.match_fields:
        yield NodeSelectorTerm(match_fields=(field,))


def _matcher(pod: Pod, term: NodeSelectorTerm) -> RequiredNodeAffinity:
    required = NodeSelector(node_selector_terms=(term,))
    affinity = Affinity(node_affinity=NodeAffinity(required=required))
    return RequiredNodeAffinity.of(with_spec(pod, affinity=affinity, node_selector=None))
