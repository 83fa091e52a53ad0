"""How a scheduler reads what nodes and pods use. Reading never waits."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kubestow.arrays import IntArray, IntpArray


class NodeUsage(Protocol):
    """Columns by slot; a slot without a measurement has a time of -1. Read-only.

    time_ns      int64[slot], when the node was measured last
    sample_count int64[slot], of how many measurements the statistics are
    latest       int64[resource, slot], the average of the last measurement
    average      int64[resource, slot], the mean over the history, rounded down
    p95          int64[resource, slot], the smallest value that 95 % of the history do not exceed
    peak         int64[resource, slot], the largest value of the history
    deviation    int64[resource, slot], the standard deviation over the history, rounded down;
                 that of memory in steps of 1 MiB

    The first axis is cpu (0, in thousandths of a core) and memory (1, in bytes). The last three are
    made when they are first read after a measurement, as many readers need none of them.
    """

    @property
    def time_ns(self) -> IntArray: ...

    @property
    def sample_count(self) -> IntArray: ...

    @property
    def latest(self) -> IntArray: ...

    @property
    def average(self) -> IntArray: ...

    @property
    def p95(self) -> IntArray: ...

    @property
    def peak(self) -> IntArray: ...

    @property
    def deviation(self) -> IntArray: ...


class PodUsage(NamedTuple):
    """The last measurement of a pod; `workload` is "" if the pod has no controller."""

    time_ns: int
    cpu_milli: int
    memory_bytes: int
    workload: str


class WorkloadUsage(NamedTuple):
    """The sums over the measured pods of a workload."""

    pod_count: int
    cpu_milli: int
    memory_bytes: int


class UsageView(Protocol):
    """What a plugin may read."""

    @property
    def version(self) -> int:
        """Changes whenever `nodes` or a slot has changed."""
        ...

    @property
    def slot_version(self) -> int:
        """Changes whenever a node has got a slot or lost it."""
        ...

    @property
    def pod_version(self) -> int:
        """Changes whenever the measurement of a pod or a workload has changed."""
        ...

    @property
    def nodes(self) -> NodeUsage: ...

    def slots_of(self, names: Sequence[str]) -> IntpArray:
        """intp[name]: the slot of each node; -1 where it has no measurement."""
        ...

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call the subscriber whenever measurements were added or dropped."""
        ...

    def pod(self, namespace: str, name: str) -> PodUsage | None: ...

    def workload(self, key: str) -> WorkloadUsage | None:
        """What the measured pods of a workload use together (`workload_of`)."""
        ...
