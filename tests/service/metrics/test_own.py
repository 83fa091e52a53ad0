"""The metrics that kube-scheduler does not have."""

import asyncio

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.events import EventRecorder
from kubestow.engine.decision import Decision
from kubestow.explain.history import AttemptHistory
from kubestow.queue import QueuedPod
from kubestow.service.metrics.process_metrics import OwnMetrics
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.testing import ManualClock, make_pod


def test_events_are_counted_by_what_became_of_them() -> None:
    registry = MetricsRegistry()
    metrics = OwnMetrics(registry)
    clock = ManualClock()
    recorder = EventRecorder(MemoryClient(MemoryCluster(clock)), clock, hostname="h", buffer_max=2)
    metrics.observe(recorder)
    for _ in range(5):
        recorder.record(
            make_pod("p"),
            reporter="s",
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note="",
        )
    text = "".join(registry.texts())
    assert 'kubestow_events_total{result="dropped"} 3\n' in text
    assert 'kubestow_events_total{result="sent"} 0\n' in text
    assert "kubestow_waiting_events 2\n" in text
    asyncio.run(recorder.flush())
    text = "".join(registry.texts())
    assert 'kubestow_events_total{result="sent"} 2\n' in text
    assert 'kubestow_events_total{result="failed"} 0\n' in text
    assert "kubestow_waiting_events 0\n" in text


def test_slow_calls_are_counted_by_plugin_and_point() -> None:
    registry = MetricsRegistry()
    metrics = OwnMetrics(registry)
    metrics.count_slow_call("A", "Filter")
    metrics.count_slow_call("A", "Filter")
    sample = 'kubestow_slow_plugin_calls_total{extension_point="Filter",plugin="A"} 2\n'
    assert sample in "".join(registry.texts())


def test_attempts_that_are_not_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.explain.history.PODS_MAX", 1)
    registry = MetricsRegistry()
    history = AttemptHistory(ManualClock())
    OwnMetrics(registry).observe_history(history)
    for name in ("a", "b", "c"):
        pod = PodInfo(make_pod(name))
        decision = Decision(pod, "default-scheduler", ["n"]).fail_to_fit()
        history.decided(decision, QueuedPod(pod, timestamp_ns=0))
    text = "".join(registry.texts())
    assert 'kubestow_attempts_not_kept_total{reason="dropped"} 2\n' in text
    assert 'kubestow_attempts_not_kept_total{reason="skipped"} 0\n' in text
