"""The pods a preemptor may evict from each node, in the order in which they are reprieved.

The pods of a node and their ranking change only when the node does, so they are kept per row by the
snapshot and computed at first use. Pods of lower priority than the preemptor's are the end of the
node's list by importance, for every preemptor.

Not here: whether a pod can be reprieved (`one_node`, `many_nodes`).
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.api.disruption import NO_BUDGETS, BudgetTable
from kubestow.api.importance import by_importance, start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.index.nodes import Nodes

# Indices in `Evictable.values`; the first three are the columns of the basic resources.
PRIORITY: Final = 3
START: Final = 4
VALUE_COUNT: Final = 5

NOT_STARTED: Final = 2**63 - 1
# In place of the time until which an order depends on the current time: it never does.
ALL_STARTED: Final = -2

PodValues = tuple[int, int, int, int, int]

_SUMS: Final = ("DefaultPreemption", "sums")
_PODS: Final = ("DefaultPreemption", "pods")


class Evictable:
    """Pods of one node, in the order in which they are reprieved.

    pods              first those that would violate a budget, each part most important first
    values            per pod: cpu, memory, ephemeral storage, priority, start in nanoseconds or
                      NOT_STARTED
    violating_count   how many would violate a budget
    """

    __slots__ = ("pods", "values", "violating_count")

    def __init__(
        self, pods: tuple[PodInfo, ...], values: tuple[PodValues, ...], violating_count: int = 0
    ) -> None:
        self.pods = pods
        self.values = values
        self.violating_count = violating_count

    @classmethod
    def of(cls, pods: Sequence[PodInfo]) -> "Evictable":
        return cls(tuple(pods), tuple([_values_of(pod) for pod in pods]))

    def split(self, budgets: BudgetTable) -> "Evictable":
        """The same pods, those first whose eviction would violate a budget."""
        split = budgets.split(self.pods)
        if not split.violating:
            return self
        values = {pod.uid: values for pod, values in zip(self.pods, self.values, strict=True)}
        pods = (*split.violating, *split.non_violating)
        return Evictable(pods, tuple(values[pod.uid] for pod in pods), len(split.violating))


class PodsOfNode:
    """The pods of one node by importance. Valid while the node does not change."""

    __slots__ = ("_budgets", "_info", "_kept", "_priority", "_ranked", "_steps", "_until_ns")

    def __init__(self, info: NodeInfo) -> None:
        self._info = info
        self._ranked: Evictable | None = None
        # Negated priorities of the ranked pods, ascending.
        self._steps: list[int] = []
        # Until then the order depends on the current time: a pod that has not started counts as
        # started now, and some pod has this later start time. Known once they are ranked.
        self._until_ns = ALL_STARTED
        # The last result, and its arguments.
        self._kept: Evictable | None = None
        self._priority = 0
        # Only the number of the table: a node that is not asked about for long would keep the table
        # of that time, which is as large as the cluster.
        self._budgets: int = NO_BUDGETS

    def below(self, priority: int, budgets: BudgetTable | None, now_ns: int) -> Evictable:
        """The pods of lower priority. `budgets` None means that the cluster has none."""
        ranked = self._ranked or self._rank()
        if now_ns <= self._until_ns:
            lower = [pod for pod in self._info.pods if pod.priority < priority]
            return _split(Evictable.of(by_importance(lower, now_ns)), budgets)
        kept = self._kept
        table = NO_BUDGETS if budgets is None else budgets.number
        if kept is None or priority != self._priority or table != self._budgets:
            first = bisect_right(self._steps, -priority)
            lower = Evictable(ranked.pods[first:], ranked.values[first:])
            kept = self._kept = _split(lower, budgets)
            self._priority, self._budgets = priority, table
        return kept

    def until_ns(self) -> int:
        """`unstarted_until_ns` of all pods."""
        if self._ranked is None:
            self._rank()
        return self._until_ns

    def _rank(self) -> Evictable:
        pods = self._info.pods
        values = [_values_of(pod) for pod in pods]
        keys = [(-each[PRIORITY], each[START]) for each in values]
        order = sorted(range(len(pods)), key=keys.__getitem__)
        self._steps = [keys[place][0] for place in order]
        self._until_ns = unstarted_until_ns([each[START] for each in values])
        self._ranked = Evictable(
            tuple([pods[place] for place in order]), tuple([values[place] for place in order])
        )
        return self._ranked


def unstarted_until_ns(starts: Sequence[int]) -> int:
    """Until when the order of pods with these starts depends on the current time.

    ALL_STARTED if each of them has a start; else the last of them, -1 if there is none.
    """
    if NOT_STARTED not in starts:
        return ALL_STARTED
    return max([start for start in starts if start != NOT_STARTED], default=-1)


def lower_sums(nodes: Nodes, priority: int) -> IntArray:
    """int64[4, node]: number, cpu, memory and ephemeral storage of the pods of lower priority."""

    def compute(nodes: Nodes) -> IntArray:
        return np.array([_lower_sums(info, priority) for info in nodes.infos()], np.int64).T

    return nodes.tracked((*_SUMS, priority), Depends.PODS, compute)


def lower_scalar_sums(nodes: Nodes, priority: int, resource: str) -> IntArray:
    """int64[node]: what the pods of lower priority request of an extended resource."""

    def compute(nodes: Nodes) -> IntArray:
        return np.array(
            [
                sum(
                    pod.accounted.requested.scalar.get(resource, 0)
                    for pod in info.pods
                    if pod.priority < priority
                )
                for info in nodes.infos()
            ],
            np.int64,
        )

    return nodes.tracked((*_SUMS, priority, resource), Depends.PODS, compute)


def evictable_pods(
    nodes: Nodes, priority: int, budgets: BudgetTable | None, now_ns: int
) -> list[Evictable]:
    """Per node the pods of lower priority."""
    return [on_node.below(priority, budgets, now_ns) for on_node in _listed(nodes)]


def unstarted_until(nodes: Nodes) -> IntArray:
    """int64[node]: `unstarted_until_ns` of the pods on it."""
    return np.array([on_node.until_ns() for on_node in _listed(nodes)], np.int64)


def _listed(nodes: Nodes) -> list[PodsOfNode]:
    return nodes.tracked(_PODS, Depends.PODS, _pods_of_nodes).tolist()


def _split(evictable: Evictable, budgets: BudgetTable | None) -> Evictable:
    return evictable if budgets is None else evictable.split(budgets)


def _values_of(pod: PodInfo) -> PodValues:
    requested = pod.accounted.requested
    return (
        requested.milli_cpu,
        requested.memory,
        requested.ephemeral_storage,
        pod.priority,
        start_time_ns(pod.pod, NOT_STARTED),
    )


def _lower_sums(info: NodeInfo, priority: int) -> tuple[int, int, int, int]:
    count = milli_cpu = memory = ephemeral_storage = 0
    for pod in info.pods:
        if pod.priority < priority:
            requested = pod.accounted.requested
            count += 1
            milli_cpu += requested.milli_cpu
            memory += requested.memory
            ephemeral_storage += requested.ephemeral_storage
    return count, milli_cpu, memory, ephemeral_storage


def _pods_of_nodes(nodes: Nodes) -> npt.NDArray[np.object_]:
    pods = np.empty(len(nodes), np.object_)
    for position, info in enumerate(nodes.infos()):
        pods[position] = PodsOfNode(info)
    return pods
