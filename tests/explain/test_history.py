"""A running scheduler keeps the last attempt of each pod that waits, within limits."""

from collections.abc import Callable

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.engine.decision import Decision
from kubestow.explain import history as limits
from kubestow.explain.cluster import StillCluster
from kubestow.explain.history import BURST_S, AttemptHistory, TimeShare
from kubestow.queue import QueuedPod
from kubestow.testing import ManualClock, make_node, make_pod

MakeCluster = Callable[..., StillCluster]


class TickingClock(ManualClock):
    """Every reading of the monotonic clock takes a millisecond."""

    def monotonic_s(self) -> float:
        self.advance_s(0.001)
        return super().monotonic_s()


def queued(pod: Pod, attempts: int) -> QueuedPod:
    queued_pod = QueuedPod(PodInfo(pod), timestamp_ns=0)
    queued_pod.attempts = attempts
    return queued_pod


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> StillCluster:
    pods = [make_pod(f"big{number}", cpu="9") for number in range(9)]
    return make_cluster(make_node("a", cpu="2"), make_node("b", cpu="2"), *pods, SMALL)


SMALL = make_pod("small", cpu="1")


def decided(cluster: StillCluster, name: str) -> Decision:
    pod = cluster.objects.pods.get("default", name)
    assert pod is not None
    return cluster.decide(pod)


@pytest.mark.parametrize(
    ("name", "attempts", "is_kept"),
    [
        pytest.param("big0", 1, True, id="failed"),
        pytest.param("small", 1, False, id="fits-at-once"),
        pytest.param("small", 2, True, id="fits-after-waiting"),
    ],
)
def test_attempts_of_pods_that_waited_are_kept(
    cluster: StillCluster, name: str, attempts: int, is_kept: bool
) -> None:
    history = AttemptHistory(ManualClock())
    decision = decided(cluster, name)
    history.decided(decision, queued(decision.pod.pod, attempts))
    kept = history.find("default", name)
    assert (kept is not None) == is_kept
    if kept is not None:
        assert kept.attempts == attempts
        assert kept.decision.node == decision.node_name


def test_a_newer_attempt_replaces_the_last(cluster: StillCluster) -> None:
    history = AttemptHistory(ManualClock())
    for attempts in (1, 2):
        decision = decided(cluster, "big0")
        history.decided(decision, queued(decision.pod.pod, attempts))
    kept = history.find("default", "big0")
    assert kept is not None
    assert kept.attempts == 2
    assert history.statistics().values == 2  # two nodes, once


@pytest.mark.parametrize(("limit", "value"), [("PODS_MAX", 3), ("VALUES_MAX", 3 * 2)])
def test_the_oldest_are_dropped_when_there_are_too_many(
    cluster: StillCluster, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(limits, limit, value)
    history = AttemptHistory(ManualClock())
    for number in range(5):
        decision = decided(cluster, f"big{number}")
        history.decided(decision, queued(decision.pod.pod, 1))
    statistics = history.statistics()
    assert (statistics.pods, statistics.values, statistics.dropped) == (3, 6, 2)
    assert history.find("default", "big1") is None
    assert history.find("default", "big4") is not None


def test_pods_that_are_tried_in_a_row_are_all_kept(cluster: StillCluster) -> None:
    history = AttemptHistory(TickingClock())
    for number in range(9):
        decision = decided(cluster, f"big{number}")
        history.decided(decision, queued(decision.pod.pod, 1))
    assert history.statistics().pods == 9


def test_copies_take_a_small_share_of_the_time(cluster: StillCluster) -> None:
    clock = TickingClock()
    history = AttemptHistory(clock)
    decision = decided(cluster, "big0")
    count = 2_000
    for _ in range(count):
        history.decided(decision, queued(decision.pod.pod, 1))
    # A copy takes a millisecond here, and so does each attempt without one.
    copies = count - history.statistics().skipped
    assert copies == pytest.approx(1000 * BURST_S + limits.SHARE * count, abs=5)


# --- the share of the time ---


def work(clock: ManualClock, share: TimeShare, takes_s: float) -> bool:
    if not share.has_time():
        return False
    clock.advance_s(takes_s)
    share.spent()
    return True


def test_a_burst_is_done_at_once_and_ends() -> None:
    clock = ManualClock()
    share = TimeShare(clock, 0.02)
    assert [work(clock, share, 0.26 * BURST_S) for _ in range(6)] == [True] * 4 + [False] * 2


def test_what_is_saved_is_limited() -> None:
    clock = ManualClock()
    share = TimeShare(clock, 0.02)
    clock.advance_s(1_000_000)
    assert [work(clock, share, 0.51 * BURST_S) for _ in range(3)] == [True, True, False]


def test_work_that_took_too_long_is_paid_for() -> None:
    clock = ManualClock()
    share = TimeShare(clock, 0.02)
    assert work(clock, share, 2 * BURST_S)
    clock.advance_s(0.99 * BURST_S / 0.02)
    assert not share.has_time()
    clock.advance_s(0.02 * BURST_S / 0.02)
    assert share.has_time()


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_the_share_holds_over_time(share: float) -> None:
    clock = ManualClock()
    limited, spent_s = TimeShare(clock, share), 0.0
    for _ in range(20_000):
        spent_s += 0.003 * work(clock, limited, 0.003)
        clock.advance_s(0.001)
    idle_s = 20.0
    assert spent_s == pytest.approx(share * idle_s + BURST_S, abs=0.01)
