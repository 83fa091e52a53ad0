"""The order of the active queue (spec 02 §3)."""

from asyncio import CancelledError
from typing import Any

import numpy as np
import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.queue.active import ActiveQueue, SortKeyFunction, key_from_less
from kubestow.queue.metrics import NO_METRICS
from kubestow.queue.queued_pod import QueuedPod
from kubestow.testing.builders import make_pod


def less(first: QueuedPod, second: QueuedPod) -> bool:
    """Spec 02 §3, said as a comparison."""
    if first.pod_info.priority != second.pod_info.priority:
        return first.pod_info.priority > second.pod_info.priority
    return first.timestamp_ns < second.timestamp_ns


def sort_key(queued_pod: QueuedPod) -> tuple[int, int]:
    """The same, said as a key."""
    return (-queued_pod.pod_info.priority, queued_pod.timestamp_ns)


def queued(name: str, priority: int | None, timestamp: int) -> QueuedPod:
    return QueuedPod(PodInfo(make_pod(name, priority=priority)), timestamp_ns=timestamp)


def pops(sort_key: SortKeyFunction, *pods: QueuedPod) -> str:
    active = ActiveQueue(sort_key=sort_key, metrics=NO_METRICS)
    for pod in pods:
        active.add(pod, "UnschedulablePodAdd")
    return " ".join(pod.pod_info.name for pod in iter(active.pop, None))


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        pytest.param([("x", 0, 3), ("y", 0, 2), ("z", 1000, 9)], "z y x", id="Q3-1"),
        pytest.param([("x", 0, 8), ("w", 0, 5)], "w x", id="Q3-2-requeued-goes-behind"),
        pytest.param([("m", -5, 1), ("n", None, 3), ("o", 0, 2)], "o n m", id="Q3-3-nil-is-0"),
        pytest.param([(n, 0, 0) for n in "abcde"], "a e d c b", id="Q2.4-1-equal"),
    ],
)
@pytest.mark.parametrize("key", [key_from_less(less, "Sort"), sort_key], ids=["less", "sort_key"])
def test_the_highest_priority_then_the_oldest_pod_comes_first(
    key: SortKeyFunction, pods: list[tuple[str, int | None, int]], order: str
) -> None:
    assert pops(key, *(queued(*pod) for pod in pods)) == order


@pytest.mark.parametrize(
    "answer",
    [None, 1, "yes", np.array([True, False]), KeyError("no"), CancelledError()],
    ids=["none", "number", "text", "array", "raises", "cancelled"],
)
def test_where_a_comparison_fails_the_oldest_pod_comes_first(answer: object) -> None:
    def broken(first: QueuedPod, second: QueuedPod) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    pods = [queued(f"p{number}", number, number) for number in (3, 1, 4, 0, 2)]
    assert pops(key_from_less(broken, "Sort"), *pods) == "p0 p1 p2 p3 p4"


def test_a_comparison_of_numpy_values_is_an_order() -> None:
    def by_priority(first: QueuedPod, second: QueuedPod) -> Any:
        return np.int64(first.pod_info.priority) > np.int64(second.pod_info.priority)

    assert pops(key_from_less(by_priority, "Sort"), queued("a", 1, 1), queued("b", 2, 2)) == "b a"


def test_an_updated_pod_moves_to_its_new_place() -> None:
    active = ActiveQueue(sort_key=key_from_less(less, "Sort"), metrics=NO_METRICS)
    low, high = queued("low", 1, 1), queued("high", 5, 1)
    active.add(low, "x")
    active.add(high, "x")
    low.pod_info.update(make_pod("low", uid=low.uid, priority=9))
    active.update(low)
    assert active.pop() is low
    assert active.discard(high.key) is high
    assert active.pop() is None
