"""Which pods to delete from nodes on which only resources are short, or the number of pods.

What the pods of all nodes request is compared with what is missing, as arrays: first the lowest
priority up to which pods must go, then the nodes by how few pods can be enough, then the exact
victims on the first of these.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.disruption import BudgetTable
from kubestow.api.owners import controller_of
from kubestow.api.pod import is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import amount_of
from kubestow.arrays import BoolArray, IntArray
from kubestow.explain.evidence.amounts import quantity_of
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import TOO_MANY_PODS, Demand

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
# Nodes whose victims are computed exactly, and ceilings of priority that are tried.
NODES_COMPUTED: Final = 24
CEILINGS_TRIED: Final = 4
# Up to this many pods the fewest victims are found by trying all pairs and triples.
PODS_EXACT: Final = 24
# Pods that are looked at as the only victim.
LONE_TRIED: Final = 256
# More victims are not suggested.
VICTIMS_MAX: Final = 8
_TOO_FEW: Final = 2**62


class Deletion(NamedTuple):
    """Pods to delete; `freed` says what that frees of what is short."""

    row: int
    pods: tuple[PodInfo, ...]
    freed: str = ""

    @property
    def rank(self) -> tuple[int, int, int, int]:
        priorities = [pod.priority for pod in self.pods]
        return max(priorities), len(priorities), sum(priorities), self.row


class DeletionRules:
    """Which pods may be deleted."""

    def __init__(self, stuck: StuckPod) -> None:
        self._priority = stuck.attempt.pod.priority
        self._owner = controller_of(stuck.pod)
        self._placed_for_now = stuck.cluster.placed_for_now
        budgets = stuck.cluster.objects.pod_disruption_budgets
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
            and pod.pod.metadata.uid not in self._placed_for_now
            and MIRROR_ANNOTATION not in pod.pod.metadata.annotations
            and (owner is None or owner.kind not in ("DaemonSet", "Node"))
            and (owner is None or self._owner is None or owner.uid != self._owner.uid)
            and self.allows((pod,))
        )


class FullNodes:
    """Nodes on which only resources are short, or the number of pods."""

    def __init__(self, stuck: StuckPod, rules: DeletionRules, rows: Sequence[int]) -> None:
        self._rows = rows
        self._rules = rules
        self._priority = stuck.attempt.pod.priority
        plugin = stuck.attempt.profile.plugins.get(FIT)
        self._table: _Table | None = None
        if rows and isinstance(plugin, NodeResourcesFit):
            self._table = _Table(stuck, plugin.fit_request(stuck.attempt.state).demands, rows)

    def best(self) -> Iterator[Deletion]:
        """The best victims on any of these nodes."""
        table, rules = self._table, self._rules
        if table is None:
            return
        for ceiling in table.ceilings(self._priority)[:CEILINGS_TRIED]:
            found = [
                Deletion(self._rows[index], pods, table.freed(index, pods))
                for index in table.closest(ceiling)
                if (pods := table.fewest(index, ceiling, rules)) is not None
            ]
            if found:
                yield min(found, key=lambda victims: victims.rank)
                return

    def lone(self) -> Iterator[Deletion]:
        """Single pods that are enough, the least important first, then the smallest."""
        table = self._table
        if table is None:
            return
        for number in table.enough_alone(self._priority)[:LONE_TRIED]:
            pod, index = table.pods[number], int(table.node_of[number])
            if self._rules.deletable((pod,)):
                yield Deletion(self._rows[index], (pod,), table.freed(index, (pod,)))


class _Table:
    """What is missing on some nodes, and what their pods have.

    need       int64[node, thing]   the number of pods, then each resource that is short somewhere
    gain       int64[pod, thing]    what deleting the pod frees
    node_of    intp[pod]            position of its node
    priority   int64[pod]
    """

    def __init__(self, stuck: StuckPod, demands: Sequence[Demand], rows: Sequence[int]) -> None:
        infos = [stuck.snapshot.node_infos[row] for row in rows]
        codes = stuck.blockers.codes[FIT][np.array(rows, np.intp)]
        short = [demand for demand in demands if (codes >> demand.bit & 1).any()]
        self.need: IntArray = np.zeros((len(rows), 1 + len(short)), np.int64)
        excess = [len(info.pods) - info.allocatable.allowed_pods + 1 for info in infos]
        self.need[:, 0] = np.where(codes & TOO_MANY_PODS, excess, 0)
        self.pods = [pod for info in infos for pod in info.pods]
        self.gain: IntArray = np.ones((len(self.pods), 1 + len(short)), np.int64)
        for column, demand in enumerate(short, 1):
            name = demand.name
            free = [
                amount_of(name, info.allocatable) - amount_of(name, info.requested)
                for info in infos
            ]
            missing = demand.amount - np.array(free, np.int64)
            self.need[:, column] = np.where(codes >> demand.bit & 1, missing, 0)
            self.gain[:, column] = [amount_of(name, pod.accounted.requested) for pod in self.pods]
        counts = [len(info.pods) for info in infos]
        self.node_of = np.repeat(np.arange(len(rows)), counts)
        self.priority = np.array([pod.priority for pod in self.pods], np.int64)
        self._names = [demand.name for demand in short]

    def ceilings(self, highest: int) -> list[int]:
        """The priorities, from the lowest up to which deleting all pods helps on some node."""
        distinct: list[int] = np.unique(self.priority[self.priority <= highest]).tolist()
        low, high = 0, len(distinct)
        while low < high:
            middle = (low + high) // 2
            if (self._counts(distinct[middle]) < _TOO_FEW).any():
                high = middle
            else:
                low = middle + 1
        return distinct[low:]

    def enough_alone(self, highest: int) -> list[int]:
        """Pods that free all that is missing on their node, the least important and smallest
        first."""
        is_enough = (self.gain >= self.need[self.node_of]).all(axis=1)
        numbers = np.flatnonzero(is_enough & (self.priority <= highest))
        # Shares of the largest pod, so that resources can be added up.
        largest = np.maximum(self.gain.max(axis=0, initial=0), 1)
        size = (self.gain[numbers] / largest).sum(axis=1)
        return numbers[np.lexsort((size, self.priority[numbers]))].tolist()

    def closest(self, ceiling: int) -> list[int]:
        """Positions of the nodes where the fewest pods can be enough."""
        counts = self._counts(ceiling)
        order: list[int] = np.argsort(counts, kind="stable")[:NODES_COMPUTED].tolist()
        return [index for index in order if counts[index] <= VICTIMS_MAX]

    def _counts(self, ceiling: int) -> IntArray:
        """int64[node]: how many pods are needed at least, for the thing that needs the most."""
        may_go = self.priority <= ceiling
        counts = np.zeros(len(self.need), np.int64)
        for thing in range(self.need.shape[1]):
            counts = np.maximum(counts, self._count_for(thing, may_go))
        return counts

    def _count_for(self, thing: int, may_go: BoolArray) -> IntArray:
        gain, node_of = self.gain[may_go, thing], self.node_of[may_go]
        order = np.lexsort((-gain, node_of))
        gain, node_of = gain[order], node_of[order]
        sums = np.concatenate(([0], np.cumsum(gain)))
        starts = np.searchsorted(node_of, np.arange(len(self.need)))
        ends = np.searchsorted(node_of, np.arange(len(self.need)), side="right")
        # The pods whose larger ones before them are not enough yet.
        before = sums[:-1] - sums[starts][node_of]
        is_needed = before < self.need[node_of, thing]
        needed = np.bincount(node_of[is_needed], minlength=len(self.need))
        is_enough = sums[ends] - sums[starts] >= self.need[:, thing]
        return np.where(is_enough, needed, _TOO_FEW)

    def fewest(self, index: int, ceiling: int, rules: DeletionRules) -> tuple[PodInfo, ...] | None:
        """The fewest pods of a node that are enough; None if those that may go are not."""
        numbers: list[int] = np.flatnonzero(
            (self.node_of == index) & (self.priority <= ceiling)
        ).tolist()
        places = {self.pods[number].uid: number for number in numbers}
        pods = rules.deletable(self.pods[number] for number in numbers)

        def is_enough(chosen: Iterable[PodInfo]) -> bool:
            freed = self.gain[[places[pod.uid] for pod in chosen]].sum(axis=0)
            return bool((freed >= self.need[index]).all())

        if not is_enough(pods):
            return None
        for size in (1, 2, 3) if len(pods) <= PODS_EXACT else (1,):
            for chosen in combinations(pods, size):
                if is_enough(chosen) and rules.allows(chosen):
                    return chosen
        return self._greedy(index, pods, places, rules)

    def freed(self, index: int, pods: Iterable[PodInfo]) -> str:
        """What deleting the pods frees of the resources that are short on their node."""
        requests = [pod.accounted.requested for pod in pods]
        parts = [
            f"{quantity_of(name, sum(amount_of(name, each) for each in requests))} {name}"
            for column, name in enumerate(self._names, 1)
            if self.need[index, column] > 0
        ]
        return f", which frees {' and '.join(parts)}" if parts else ""

    def _greedy(
        self, index: int, pods: Sequence[PodInfo], places: dict[str, int], rules: DeletionRules
    ) -> tuple[PodInfo, ...] | None:
        """The pods that free the most of what is missing, until it is enough."""
        need = self.need[index]
        missing = need > 0

        def gain(pod: PodInfo) -> float:
            share = self.gain[places[pod.uid]][missing] / need[missing]
            return float(np.minimum(share, 1).sum())

        chosen: list[PodInfo] = []
        freed = np.zeros_like(need)
        for pod in sorted(pods, key=gain, reverse=True):
            if len(chosen) == VICTIMS_MAX:
                return None
            if rules.allows((*chosen, pod)):
                chosen.append(pod)
                freed += self.gain[places[pod.uid]]
                if (freed >= need).all():
                    return tuple(chosen)
        return None
