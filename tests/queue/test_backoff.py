"""How long pods wait and in which order they leave (spec 02 §3, §4)."""

from datetime import UTC, datetime

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.queue.backoff import BackoffPolicy, BackoffQueue
from kubestow.queue.queued_pod import ZERO_TIME_NS, QueuedPod
from kubestow.testing.builders import make_pod
from kubestow.testing.clock import nanoseconds as ns


def queued(
    name: str = "p",
    *,
    timestamp: float = 0,
    count: int = 0,
    errors: int = 0,
    priority: int | None = None,
    rejectors: tuple[str, ...] = ("A",),
) -> QueuedPod:
    queued_pod = QueuedPod(PodInfo(make_pod(name, priority=priority)), timestamp_ns=ns(timestamp))
    queued_pod.unschedulable_count = count
    queued_pod.consecutive_errors_count = errors
    queued_pod.reject(unschedulable=rejectors)
    return queued_pod


@pytest.mark.parametrize(
    ("initial_ns", "max_ns", "waits"),
    [
        pytest.param(ns(1), ns(10), {1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 6: 10, 400: 10}, id="Q4"),
        pytest.param(ns(3), ns(10), {1: 3, 2: 6, 3: 10}, id="Q4-8"),
        pytest.param(ns(5), ns(5), {1: 5, 2: 5}, id="initial-is-max"),
    ],
)
def test_the_wait_doubles_up_to_the_maximum(
    initial_ns: int, max_ns: int, waits: dict[int, int]
) -> None:
    policy = BackoffPolicy(initial_ns=initial_ns, max_ns=max_ns)
    assert {count: policy.duration_ns(count) for count in waits} == {
        count: ns(wait) for count, wait in waits.items()
    }


def test_the_wait_does_not_overflow() -> None:  # Q4-9
    policy = BackoffPolicy(initial_ns=1, max_ns=2**63 - 1)
    assert policy.duration_ns(63) == 2**62
    assert policy.duration_ns(64) == 2**63 - 1


@pytest.mark.parametrize(
    ("record", "expiry", "last_waiting", "released"),
    [
        pytest.param({"count": 1, "timestamp": 100.7}, 101, 101.999999999, 102, id="Q4-1"),
        pytest.param({"count": 1, "timestamp": 100}, 101, 101.999, 102, id="Q4-2"),
        pytest.param({"count": 3, "timestamp": 200.25}, 204, 204.999, 205, id="Q4-3"),
        pytest.param({"count": 5, "timestamp": 50.9}, 60, 60.999, 61, id="Q4-4"),
        pytest.param({"count": 4, "errors": 2, "timestamp": 10}, 12, 12.9, 13, id="Q4-5"),
        pytest.param({"count": 5, "timestamp": 10}, 20, 20.9, 21, id="Q4-6"),
    ],
)
def test_waits_end_on_whole_seconds_and_equal_still_waits(
    record: dict[str, float], expiry: float, last_waiting: float, released: float
) -> None:
    policy, queued_pod = BackoffPolicy(), queued(**record)
    assert policy.expiry_ns(queued_pod) == ns(expiry)
    assert queued_pod.backoff_expiry_ns == ns(expiry)
    assert policy.is_backing_off(queued_pod, ns(last_waiting))
    assert not policy.is_backing_off(queued_pod, ns(released))


def test_without_alignment_equal_still_waits_to_the_nanosecond() -> None:  # Q4-7
    policy, queued_pod = BackoffPolicy(is_aligned=False), queued(count=1, timestamp=100.7)
    assert policy.expiry_ns(queued_pod) == ns(101.7)
    assert policy.is_backing_off(queued_pod, 101_700_000_000)
    assert not policy.is_backing_off(queued_pod, 101_700_000_001)


def test_no_expiry_is_the_first_time_there_is() -> None:
    assert ns(datetime(1, 1, 1, tzinfo=UTC).timestamp()) == ZERO_TIME_NS


@pytest.mark.parametrize("now", [0, 0.5, 1_000])
@pytest.mark.parametrize(
    ("max_ns", "count"),
    [pytest.param(0, 16, id="Q4-10-no-maximum"), pytest.param(ns(10), 0, id="never-failed")],
)
def test_no_backoff_is_never_backing_off(max_ns: int, count: int, now: float) -> None:
    policy = BackoffPolicy(max_ns=max_ns)
    queued_pod = queued(count=count, timestamp=now)
    assert policy.expiry_ns(queued_pod) == ZERO_TIME_NS
    assert not policy.is_backing_off(queued_pod, ns(now))
    assert queued_pod.backoff_expiry_ns is None  # not kept: the next failure must find it empty


@pytest.mark.parametrize(
    ("is_aligned", "now", "first"),
    [
        pytest.param(True, 12.345, 13, id="Q4-11"),
        pytest.param(True, 12, 13, id="whole-second-waits-a-full-one"),
        pytest.param(False, 12.345, 13.345, id="Q4-11-gate-off"),
    ],
)
def test_flushes_start_at_the_next_whole_second(is_aligned: bool, now: float, first: float) -> None:
    assert BackoffPolicy(is_aligned=is_aligned).first_flush_ns(ns(now)) == ns(first)


def drained(*, is_aligned: bool, rejectors: tuple[str, ...]) -> list[str]:
    backoff = BackoffQueue(
        BackoffPolicy(is_aligned=is_aligned),
        sort_key=lambda q: (-q.pod_info.priority, q.timestamp_ns),
    )
    for name, priority, timestamp, count in (
        ("X", 1, 10.2, 1),
        ("Y", 5, 10.9, 1),
        ("Z", 9, 9.0, 2),
        ("W", 100, 11.0, 1),
    ):
        backoff.add(
            queued(
                name,
                priority=priority,
                timestamp=timestamp,
                count=count,
                errors=0 if rejectors else count,
                rejectors=rejectors,
            )
        )
    return [pod.pod_info.name for pod in iter(lambda: backoff.pop_completed(ns(99)), None)]


def test_a_window_empties_in_the_order_of_the_active_queue() -> None:  # Q3-4
    assert drained(is_aligned=True, rejectors=("A",)) == ["Z", "Y", "X", "W"]


def test_without_windows_only_the_expiry_counts() -> None:  # Q3-4, gate off
    assert drained(is_aligned=False, rejectors=("A",)) == ["Z", "X", "Y", "W"]


def test_failed_pods_leave_by_expiry_only() -> None:  # Q3-5
    # X, Y and Z tie whatever their priorities; here the sift rules keep their order.
    assert drained(is_aligned=True, rejectors=()) == ["X", "Y", "Z", "W"]
    assert drained(is_aligned=False, rejectors=()) == ["Z", "X", "Y", "W"]


class TestHeaps:
    def setup_method(self) -> None:
        self.count = 0
        self.backoff = BackoffQueue(
            BackoffPolicy(), sort_key=lambda q: q.timestamp_ns, count_changed=self.changed
        )

    def changed(self, delta: int) -> None:
        self.count += delta

    def test_rejected_and_failed_pods_wait_apart(self) -> None:
        rejected, failed = queued("r", count=1), queued("f", errors=1, rejectors=())
        assert self.backoff.add(failed)
        assert self.backoff.add(rejected)
        assert (self.backoff.rejected_count, self.backoff.failed_count) == (1, 1)
        assert self.backoff.has_failed(failed.key)
        assert not self.backoff.has_failed(rejected.key)
        assert list(self.backoff) == [rejected, failed]
        assert self.backoff.pop_rejected() is rejected
        assert self.backoff.pop_rejected() is None  # failed pods are never popped early
        assert (len(self.backoff), self.count) == (1, 1)

    def test_a_pod_that_changed_gets_the_place_of_what_it_is_now(self) -> None:
        first, second = queued("a", timestamp=1, count=1), queued("b", timestamp=1.5, count=1)
        self.backoff.add(first)
        self.backoff.add(second)
        first.timestamp_ns = ns(1.75)  # within the same window
        self.backoff.update(first)
        assert [self.backoff.pop_rejected(), self.backoff.pop_rejected()] == [second, first]

    def test_rejected_pods_are_released_before_failed_ones(self) -> None:
        failed = queued("f", timestamp=1, errors=1, rejectors=())
        rejected = queued("r", timestamp=2, count=1)
        self.backoff.add(failed)
        self.backoff.add(rejected)
        assert self.backoff.pop_completed(ns(2.9)) is None
        assert self.backoff.pop_completed(ns(3)) is failed
        assert self.backoff.pop_completed(ns(3.9)) is None
        self.backoff.add(failed)
        assert self.backoff.pop_completed(ns(4)) is rejected

    def test_a_pod_is_never_in_both_heaps(self, caplog: pytest.LogCaptureFixture) -> None:
        queued_pod = queued("p", count=1)
        self.backoff.add(queued_pod)
        queued_pod.reject()
        assert not self.backoff.add(queued_pod)
        assert (self.backoff.rejected_count, self.backoff.failed_count, self.count) == (0, 1, 1)
        assert "was added to one backoff heap while it was in the other" in caplog.text

    def test_an_updated_pod_stays_in_its_heap(self) -> None:
        failed = queued("f", errors=1, rejectors=())
        self.backoff.add(failed)
        failed.reject(unschedulable=["A"])
        self.backoff.update(failed)
        assert self.backoff.has_failed(failed.key)
        assert self.backoff.get(failed.key) is failed
        assert self.backoff.discard(failed.key) is failed
        assert failed.key not in self.backoff
        assert self.count == 0
