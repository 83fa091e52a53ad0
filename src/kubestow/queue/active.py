"""The pods that are ready to be tried, in the order of QueueSort (spec 02 §3)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kubestow.queue.heap import KeyedHeap, SortKey
from kubestow.queue.metrics import ACTIVE, QueueMetrics
from kubestow.queue.queued_pod import QueuedPod

if TYPE_CHECKING:
    from kubestow.framework.plugin import QueueSortPlugin

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
        return self._heap.pop() if self._heap else None


@runtime_checkable
class KeyedSort(Protocol):
    """A QueueSort plugin that offers the order of `less` also as a key, which is faster."""

    def sort_key(self, entry: QueuedPod, /) -> SortKey: ...


def key_from_plugin(plugin: "QueueSortPlugin") -> SortKeyFunction:
    return plugin.sort_key if isinstance(plugin, KeyedSort) else key_from_less(plugin.less)


def key_from_less(less: Less) -> SortKeyFunction:
    class ByLess:
        __slots__ = ("queued_pod",)

        def __init__(self, queued_pod: QueuedPod) -> None:
            self.queued_pod = queued_pod

        def __lt__(self, other: "ByLess") -> bool:
            return less(self.queued_pod, other.queued_pod)

    return ByLess
