"""One pod that does not fit, and what keeps it from each node.

Candidates for changes come from here: unlike a scheduling cycle, which stops at the first filter
that rejects a node, `Blockers` has the answer of every filter for every node. Whether a changed pod
fits is asked without PostFilter, so that nothing is spent on preemption.
"""

from collections.abc import Collection, Iterable
from typing import ClassVar, Final

import numpy as np

from kubestow.api.group import group_key_of
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node, Taint
from kubestow.api.pod import Pod, Toleration
from kubestow.api.pod_info import PodInfo
from kubestow.api.taints import HARD_EFFECTS, UNSCHEDULABLE_TAINT, TolerationTable
from kubestow.arrays import ALL_ROWS, BoolArray, IntArray, IntpArray, Rows
from kubestow.cache.snapshot import Snapshot
from kubestow.explain.cluster import StillCluster
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.handle import Nominator
from kubestow.framework.profile import FilterStep, Profile
from kubestow.framework.runner import (
    FilterError,
    PreFilterOutcome,
    filter_of,
    run_filters,
    run_filters_with_nominated,
    run_pre_filter,
)
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import UNRESOLVABLE, Demand

# Filters that work node by node are asked about at most this many nodes that another one rejects.
SLOW_ROWS_MAX: Final = 128
# Instead of a count, of rows that are not looked at.
LEFT_OUT: Final = -1

_NO_ROWS: Final = np.empty(0, np.intp)


class PreparedPod:
    """A pod after PreFilter."""

    def __init__(
        self, profile: Profile, snapshot: Snapshot, nominator: Nominator, pod: Pod
    ) -> None:
        self.profile = profile
        self.snapshot = snapshot
        self.pod = PodInfo(pod)
        self.state = CycleState()
        self._nominator = nominator
        self.pre_filter: PreFilterOutcome = run_pre_filter(
            profile, self.state, self.pod, nodes_of(self.snapshot)
        )

    def feasible(self, rows: Rows = ALL_ROWS) -> IntpArray:
        """Which of these rows pass all filters."""
        if self.pre_filter.status is not None or len(self.snapshot) == 0:
            return _NO_ROWS
        numbers = np.arange(len(self.snapshot))[rows]
        try:
            verdicts = run_filters(
                self.profile, self.state, self.pod, nodes_of(self.snapshot, numbers)
            )
        except FilterError:
            return _NO_ROWS
        passing = numbers[(verdicts.failed_by == PASSED) & (verdicts.codes >= 0)]
        names = self.pre_filter.node_names
        if names is not None:
            passing = passing[[self.snapshot.names[row] in names for row in passing.tolist()]]
        return self._with_nominated(passing)

    def _with_nominated(self, passing: IntpArray) -> IntpArray:
        """The rows on which the pod also fits beside the pods that are nominated to them."""
        rows = [self.snapshot.row_of(name) for name in self._nominator.nominated_nodes()]
        full = [row for row in rows if row is not None and row in passing and self._is_full(row)]
        return passing[~np.isin(passing, full)] if full else passing

    def _is_full(self, row: int) -> bool:
        nominated = self._nominator.nominated_pods_for_node(self.snapshot.names[row])
        node = SimulatedNode(self.snapshot, row)
        status = run_filters_with_nominated(self.profile, self.state, self.pod, node, nominated)
        return status is not None


def prepared(cluster: StillCluster, pod: Pod) -> PreparedPod:
    """A pod of a known profile on the cluster as it is."""
    profile = cluster.profile_of(pod)
    assert profile is not None, pod.spec.scheduler_name
    return PreparedPod(profile, cluster.refresh(), cluster.scheduler.queue.nominator, pod)


class Blockers:
    """What every filter answers for every node.

    codes      filter → int64[row], 0 where it passes; without filters that pass everywhere
    count      int64[row], how many filters reject the node; -1 for nodes that are left out
    """

    def __init__(self, attempt: PreparedPod, rows: Rows = ALL_ROWS) -> None:
        self.codes: dict[str, IntArray] = {}
        self.count: IntArray = np.full(len(attempt.snapshot), LEFT_OUT, np.int64)
        if attempt.pre_filter.status is not None:
            return
        self.count[rows] = 0
        steps = [
            step
            for step in attempt.profile.filter_steps
            if step.name not in attempt.state.skip_filter
        ]
        # Filters that work node by node come last, for the nodes on which they matter.
        for step in sorted(steps, key=lambda step: step.per_node):
            self._ask(attempt, step)

    def _ask(self, attempt: PreparedPod, step: FilterStep) -> None:
        rows = np.flatnonzero(self.count >= 0)
        if step.per_node:
            passing, others = np.flatnonzero(self.count == 0), np.flatnonzero(self.count == 1)
            rows = np.sort(np.concatenate((passing, others[:SLOW_ROWS_MAX])))
        nodes = nodes_of(attempt.snapshot, rows)
        try:
            answer = filter_of(step.plugin, step.name, attempt.state, attempt.pod, nodes)
        except FilterError:
            answer = np.full(len(rows), -1, np.int64)
        if answer is None or not answer.any():
            return
        codes = np.zeros(len(self.count), np.int64)
        codes[rows] = answer
        self.codes[step.name] = codes
        self.count[rows] += answer != 0

    def rejected(self, plugin: str) -> BoolArray:
        """bool[row]: where this filter rejects."""
        codes = self.codes.get(plugin)
        return np.zeros(len(self.count), np.bool_) if codes is None else codes != 0

    def code(self, plugin: str, row: int) -> int:
        codes = self.codes.get(plugin)
        return 0 if codes is None else int(codes[row])

    def rows_within(self, plugins: Collection[str]) -> IntpArray:
        """Rows that are rejected, and by no filter but these."""
        by_these = np.zeros(len(self.count), np.int64)
        for plugin in plugins:
            by_these += self.rejected(plugin)
        return np.flatnonzero((by_these > 0) & (by_these == self.count))


class StuckPod:
    """A pod that does not fit on a cluster.

    `rows` limits the nodes that are looked at. `slack` is how many things may be in the way on a
    node that is worth a change: one, if the change is to help alone.
    """

    slack: ClassVar[int] = 1

    def __init__(self, cluster: StillCluster, pod: Pod, rows: Rows = ALL_ROWS) -> None:
        self.cluster = cluster
        self.pod = pod
        self.tolerations: Final = TolerationTable(pod.spec.tolerations)
        self.rows = rows
        self.attempt: PreparedPod = prepared(cluster, pod)
        self._blockers: Blockers | None = None

    @property
    def blockers(self) -> Blockers:
        if self._blockers is None:
            self._blockers = Blockers(self.attempt, self.rows)
        return self._blockers

    @property
    def snapshot(self) -> Snapshot:
        return self.attempt.snapshot

    @property
    def is_member(self) -> bool:
        """Whether the pod is placed with others: what helps it alone may not be enough."""
        return self.cluster.scheduler.groups is not None and group_key_of(self.pod) is not None

    @property
    def rejected_early(self) -> str:
        """The plugin that rejects the pod before any node is filtered; "" if none does."""
        status = self.attempt.pre_filter.status
        return "" if status is None else status.plugin

    def feasible(self, pod: Pod) -> IntpArray:
        """Rows on which this version of the pod fits."""
        return prepared(self.cluster, pod).feasible(self.rows)

    def fits(self, pod: Pod) -> bool:
        return len(self.feasible(pod)) > 0

    def fits_with(self, *new: ApiObject, removed: Iterable[ApiObject] = ()) -> bool:
        """Whether the pod fits when the cluster has these objects, and not those removed."""
        with self.cluster.changed(*new, removed=removed):
            return self.fits(self.pod)

    def is_blocked_by(self, *plugins: str) -> bool:
        """Whether one of these filters rejects some node."""
        return any(plugin in self.blockers.codes for plugin in plugins)

    def rows_blocked_by(self, *plugins: str) -> list[int]:
        """Rows on which a change may help that concerns these filters."""
        return self.blockers.rows_within(plugins).tolist()

    def rows_short_of(self, demand: Demand) -> IntpArray:
        """Rows on which less of this resource may help."""
        rows = np.array(self.rows_blocked_by(NodeResourcesFit.name), np.intp)
        codes = self.blockers.codes[NodeResourcesFit.name][rows]
        return rows[codes & ~np.int64(UNRESOLVABLE) == 1 << demand.bit]

    def untolerated(self, row: int) -> tuple[Taint, ...]:
        """The taints of a node that keep the pod away, that of a cordon included."""
        compares = self.cluster.gates.enabled("TaintTolerationComparisonOperators")
        node = self.snapshot.nodes[row]
        return untolerated(node, self.tolerations, comparison_operators=compares)


def untolerated(
    node: Node, tolerations: TolerationTable[Toleration], *, comparison_operators: bool
) -> tuple[Taint, ...]:
    """The taints of a node that keep the pod away, that of a cordon included."""
    taints: Iterable[Taint] = node.spec.taints
    if node.spec.unschedulable:
        others = (taint for taint in taints if taint.key != UNSCHEDULABLE_TAINT.key)
        taints = (*others, UNSCHEDULABLE_TAINT)
    return tuple(
        taint
        for taint in taints
        if taint.effect in HARD_EFFECTS
        and not tolerations.accepts(taint, comparison_operators=comparison_operators)
    )
