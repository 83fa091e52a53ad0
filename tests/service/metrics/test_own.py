"""The metrics that kube-scheduler does not have."""

import asyncio

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.events import EventRecorder
from kubestow.service.metrics.own import OwnMetrics
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
