"""The pods that are ready to be tried, in the order of QueueSort (spec 02 §3)."""

from collections.abc import Callable, Iterator
from typing import Final

from kubestow.framework.answers import truth_answer
from kubestow.framework.faults import fault_error
from kubestow.queue.heap import KeyedHeap, SortKey
from kubestow.queue.metrics import ACTIVE, QueueMetrics
from kubestow.queue.queued_pod import QueuedPod

QUEUE_SORT: Final = "QueueSort"

SortKeyFunction = Callable[[QueuedPod], SortKey]
Less = Callable[[QueuedPod, QueuedPod], bool]


class ActiveQueue:
    """The heap that `pop` takes from; counts what enters it."""

    def __init__(
        self,
        *,
        sort_key: SortKeyFunction,
        metrics: QueueMetrics,
        count_changed: Callable[[int], None] | None = None,
    ) -> None:
        self._metrics = metrics
        self._sort_key = sort_key
        self._heap: KeyedHeap[QueuedPod] = KeyedHeap(sort_key=sort_key, count_changed=count_changed)

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, key: str) -> bool:
        return key in self._heap

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._heap)

    def in_order(self) -> list[QueuedPod]:
        """The pods in the order in which they would be popped, if no other came."""
        return sorted(self._heap, key=self._sort_key)

    def get(self, key: str) -> QueuedPod | None:
        return self._heap.get(key)

    def add(self, queued_pod: QueuedPod, label: str) -> None:
        self._heap.add_or_update(queued_pod.pod_info.key, queued_pod)
        self._metrics.incoming(ACTIVE, label)

    def update(self, queued_pod: QueuedPod) -> None:
        """Reorder a pod whose object changed."""
        self._heap.add_or_update(queued_pod.key, queued_pod)

    def discard(self, key: str) -> QueuedPod | None:
        return self._heap.discard(key)

    def pop(self) -> QueuedPod | None:
        return self._heap.pop_if_any()


def key_from_less(less: Less, plugin: str) -> SortKeyFunction:
    """The order of a QueueSort plugin.

    Where it fails, the pod that has waited longer goes first: a heap in which a comparison raises
    would lose pods.
    """

    class ByLess:
        __slots__ = ("queued_pod",)

        def __init__(self, queued_pod: QueuedPod) -> None:
            self.queued_pod = queued_pod

        def __lt__(self, other: "ByLess") -> bool:
            try:
                return truth_answer(less(self.queued_pod, other.queued_pod), plugin, "less")
            except BaseException as error:
                fault_error(error, plugin, QUEUE_SORT)  # Logs it, once.
                return self.queued_pod.timestamp_ns < other.queued_pod.timestamp_ns

    return ByLess
