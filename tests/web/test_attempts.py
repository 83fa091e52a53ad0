"""Kept attempts: their limits, and the time that copies take."""

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.explain.cluster import StillCluster
from kubestow.explain.history import BURST_S
from kubestow.queue import QueuedPod
from kubestow.testing import ManualClock, make_node, make_pod
from kubestow.web import attempts as attempts_module
from kubestow.web.attempts import AttemptLog
from kubestow.web.protocol import AttemptRow


class SlowClock(ManualClock):
    """Each reading takes 1 ms."""

    def monotonic_s(self) -> float:
        self.advance_s(0.001)
        return super().monotonic_s()


def decided(clock: Clock) -> tuple[Decision, QueuedPod]:
    cluster = StillCluster(SchedulerConfig(), MemoryClient(MemoryCluster(clock)), clock)
    pod = make_pod("a", uid="uid-a")
    cluster.load([make_node("n"), make_node("m"), pod])
    decision = cluster.decide(pod)
    return decision, QueuedPod(decision.pod, timestamp_ns=0)


def row(number: int) -> AttemptRow:
    return AttemptRow(number, 0, "default/a", "n", "scheduled", 0, 0.0, "", 0, 0)


def test_rows_are_found_by_number_until_they_are_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempts_module, "ROWS_MAX", 3)
    log = AttemptLog(ManualClock(), share=1.0)
    for _ in range(5):
        log.add(row(log.next_id()))
    assert [each.id for each in log.newest_first()] == [5, 4, 3]
    assert log.dropped == 2
    found = log.find(4)
    assert found is not None
    assert found.row.id == 4
    assert log.find(2) is None
    assert log.find(6) is None


@pytest.mark.parametrize(("name", "limit"), [("VALUES_MAX", 10), ("COPIES_MAX", 2)])
def test_copies_are_limited(name: str, limit: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(attempts_module, name, limit)
    clock = ManualClock()
    log, (decision, queued_pod) = AttemptLog(clock, share=1.0), decided(clock)
    for _ in range(6):
        number = log.next_id()
        log.add(row(number))
        log.copy(number, decision, queued_pod, 0)
    kept = [number for number in range(1, 7) if (found := log.find(number)) and found.kept]
    assert 1 <= len(kept) <= 2
    assert kept[-1] == 6
    assert log.last_copy("uid-a") is not None
    assert log.last_copy("uid-b") is None


@pytest.mark.parametrize("share", [0.02, 0.25])
def test_copies_take_a_share_of_the_time(share: float):
    clock = SlowClock()
    log, (decision, queued_pod) = AttemptLog(clock, share=share), decided(ManualClock())
    began_s, copies = clock.monotonic_s(), 0
    for number in range(1, 2_001):
        log.copy(number, decision, queued_pod, 0)
    copies = 2_000 - log.skipped
    passed_s = clock.monotonic_s() - began_s
    # Each takes a tick; what a copy takes is no time that is saved.
    assert 0.001 * copies == pytest.approx(BURST_S + share * (passed_s - 0.001 * copies), abs=0.01)
