"""The latest measurements of nodes and pods, and of nodes the history that statistics need.

A source adds to it in the background, in parts if there are many. Statistics of nodes are made of
their history (`history`).

Invariants: a node has at most one slot; times of a node rise; the sums of a workload are those of
its pods in `_pods`.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Final

import msgspec
import numpy as np

from kubestow.arrays import IntArray, IntpArray
from kubestow.usage.history import RESOURCES, SERIES, NodeHistory
from kubestow.usage.measurement import (
    CPU_MILLI_MAX,
    MEMORY_BYTES_MAX,
    NAME_LENGTH_MAX,
    Amounts,
    Measurement,
    problem_of,
)
from kubestow.usage.view import NodeUsage, PodUsage, WorkloadUsage

NODES_MAX: Final = 20_000
PODS_MAX: Final = 400_000
HISTORY_MAX: Final = 40
# What was not measured for this long is of no use to any reader.
KEPT_NS: Final = 3600 * 10**9

_SLOTS_MIN: Final = 64


class UsageStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """`refused` counts measurements by the reason why they were not taken."""

    nodes: int
    pods: int
    workloads: int
    refused: Mapping[str, int]


class UsageStore:
    def __init__(self, *, history: int = HISTORY_MAX) -> None:
        assert 1 <= history <= HISTORY_MAX, history
        self.version = 0
        self.slot_version = 0
        self.pod_version = 0
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._pods: OrderedDict[tuple[str, str], PodUsage] = OrderedDict()
        self._workloads: dict[str, WorkloadUsage] = {}
        self._refused: Counter[str] = Counter()
        self._subscribers: list[Callable[[], None]] = []
        self._nodes = NodeHistory(history)

    # --- reading ---

    @property
    def nodes(self) -> NodeUsage:
        return self._nodes

    def node_names(self) -> list[str]:
        return list(self._slots)

    def slots_of(self, names: Sequence[str]) -> IntpArray:
        slots = self._slots
        return np.fromiter(map(slots.get, names, repeat(-1)), np.intp, len(names))

    def pod(self, namespace: str, name: str) -> PodUsage | None:
        return self._pods.get((namespace, name))

    def pods(self) -> Iterable[tuple[tuple[str, str], PodUsage]]:
        """Namespace and name of each measured pod, with its last measurement."""
        return self._pods.items()

    def workload(self, key: str) -> WorkloadUsage | None:
        return self._workloads.get(key)

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        self._subscribers.append(subscriber)

    def statistics(self) -> UsageStatistics:
        return UsageStatistics(
            nodes=len(self._slots),
            pods=len(self._pods),
            workloads=len(self._workloads),
            refused=dict(self._refused),
        )

    # --- adding ---

    def refuse(self, reason: str, count: int = 1) -> None:
        """Count measurements that a source could not read or does not need."""
        self._refused[reason] += count

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Take measurements of nodes and pods; those of one node in the order of their times."""
        nodes: dict[str, Measurement] = {}
        for measurement in measurements:
            problem = problem_of(measurement)
            if problem is not None:
                self.refuse(problem)
            elif measurement.pod:
                self._add_pod(measurement)
            else:
                if measurement.node in nodes:
                    self._add_nodes(nodes)
                    nodes = {}
                nodes[measurement.node] = measurement
        self._add_nodes(nodes)
        self._notify()

    def add_nodes(
        self, names: Sequence[str], *, time_ns: int, cpu_milli: IntArray, memory_bytes: IntArray
    ) -> None:
        """Take the averages of many nodes, each named once, that were measured at one time.

        cpu_milli, memory_bytes   int64[name]
        """
        assert time_ns >= 0, time_ns
        amounts = np.stack([cpu_milli, memory_bytes])
        limits = np.array([[CPU_MILLI_MAX], [MEMORY_BYTES_MAX]], np.int64)
        is_good = np.logical_and.reduce((amounts >= 0) & (amounts <= limits))
        self.refuse("bad amount", int(np.count_nonzero(~is_good)))
        slots = self.slots_of(names)
        is_easy = is_good & (slots >= 0)
        is_easy[is_easy] = self._nodes.time_ns[slots[is_easy]] < time_ns
        slots[~is_easy] = [
            self._slot_for(names[position], time_ns) if is_good[position] else -1
            for position in np.flatnonzero(~is_easy).tolist()
        ]
        taken = np.flatnonzero(slots >= 0)
        series = np.broadcast_to(amounts[:, taken], (SERIES, RESOURCES, len(taken)))
        self._write(slots[taken], np.full(len(taken), time_ns, np.int64), series)
        self._notify()

    def forget_old(self, now_ns: int) -> None:
        """Drop nodes and pods that were not measured for a long time."""
        versions = self.version, self.pod_version
        times = self._nodes.time_ns
        for name, slot in list(self._slots.items()):
            if now_ns - times[slot] > KEPT_NS:
                self._drop_node(name, slot)
        for key, usage in list(self._pods.items()):
            if now_ns - usage.time_ns <= KEPT_NS:
                break  # They are in the order in which they were measured last.
            self._drop_pod(key)
        if versions != (self.version, self.pod_version):
            self._notify()

    def _notify(self) -> None:
        for subscriber in self._subscribers:
            subscriber()

    # --- nodes ---

    def _add_nodes(self, measurements: Mapping[str, Measurement]) -> None:
        slots: list[int] = []
        times: list[int] = []
        series: list[tuple[Amounts, Amounts, Amounts]] = []
        for name, measurement in measurements.items():
            slot = self._slot_for(name, measurement.time_ns)
            if slot >= 0:
                average = measurement.average
                slots.append(slot)
                times.append(measurement.time_ns)
                series.append((average, measurement.p95 or average, measurement.peak or average))
        if slots:
            by_node = np.array(series, np.int64)  # int64[node, series, resource]
            self._write(
                np.array(slots, np.intp), np.array(times, np.int64), by_node.transpose(1, 2, 0)
            )

    def _slot_for(self, name: str, time_ns: int) -> int:
        """The slot to write a measurement of this time to; -1 if it is refused."""
        slot = self._slots.get(name)
        if slot is not None:
            if self._nodes.time_ns.item(slot) < time_ns:
                return slot
            self.refuse("not newer")
            return -1
        if not name or len(name) > NAME_LENGTH_MAX:
            self.refuse("bad name")
            return -1
        if len(self._slots) >= NODES_MAX:
            self.refuse("too many nodes")
            return -1
        if not self._free:
            self._grow()
        slot = self._slots[name] = self._free.pop()
        self.slot_version += 1
        return slot

    def _write(self, slots: IntpArray, times_ns: IntArray, series: IntArray) -> None:
        if len(slots):
            self._nodes.write(slots, times_ns, series)
            self.version += 1

    def _drop_node(self, name: str, slot: int) -> None:
        del self._slots[name]
        self._free.append(slot)
        self._nodes.clear(slot)
        self.version += 1
        self.slot_version += 1

    def _grow(self) -> None:
        used = len(self._nodes)
        size = max(_SLOTS_MIN, used * 2)
        self._nodes.grow(size)
        self._free.extend(range(size - 1, used - 1, -1))

    # --- pods ---

    def _add_pod(self, measurement: Measurement) -> None:
        key = measurement.namespace, measurement.pod
        before = self._pods.get(key)
        if before is not None and before.time_ns >= measurement.time_ns:
            self.refuse("not newer")
            return
        if before is not None:
            self._drop_pod(key)
        elif len(self._pods) >= PODS_MAX:
            self._drop_pod(next(iter(self._pods)))
        average, workload = measurement.average, measurement.workload
        self._pods[key] = PodUsage(measurement.time_ns, *average, workload)
        if workload:
            self._count(workload, 1, average)
        self.pod_version += 1

    def _drop_pod(self, key: tuple[str, str]) -> None:
        usage = self._pods.pop(key)
        if usage.workload:
            self._count(usage.workload, -1, Amounts(-usage.cpu_milli, -usage.memory_bytes))
        self.pod_version += 1

    def _count(self, workload: str, pods: int, change: Amounts) -> None:
        count, cpu_milli, memory_bytes = self._workloads.get(workload, WorkloadUsage(0, 0, 0))
        if count + pods == 0:
            del self._workloads[workload]
            return
        self._workloads[workload] = WorkloadUsage(
            count + pods, cpu_milli + change.cpu_milli, memory_bytes + change.memory_bytes
        )
