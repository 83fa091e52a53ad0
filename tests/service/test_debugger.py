"""The logs of SIGUSR2 (spec 03 §10)."""

import logging

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.scheduler import Scheduler
from kubestow.service.debugger import CacheDebugger, difference, node_text
from kubestow.service.logging import fields_of
from kubestow.testing import ManualClock, make_node, make_pod
from kubestow.testing.handles import RecordedEvents


@pytest.mark.parametrize(
    ("actual", "cached", "missed", "redundant"),
    [
        pytest.param(["foo", "bar"], ["bar", "foo", "foobar"], [], ["foobar"], id="1"),
        pytest.param(["a", "a", "b"], ["a", "c"], ["a", "b"], ["c"], id="2"),
        pytest.param(["foo", "bar", "foobar"], ["foo", "bar"], ["foobar"], [], id="3"),
        pytest.param([], [], [], [], id="nothing"),
    ],
)
def test_differences_count_repetitions(
    actual: list[str], cached: list[str], missed: list[str], redundant: list[str]
) -> None:
    assert difference(actual, cached) == (missed, redundant)


def test_a_node_as_text() -> None:
    """Example 4."""
    info = NodeInfo("n1")
    info.set_node(make_node("n1", cpu="4", memory="8Gi", pods=110))
    info.add_pod(
        PodInfo(make_pod("p1", namespace="ns", uid="u1", cpu="100m", memory="500", phase="Running"))
    )
    assert node_text(info, []) == (
        "Node name: n1\n"
        "Deleted: false\n"
        "Requested Resources: &{MilliCPU:100 Memory:500 EphemeralStorage:0 AllowedPodNumber:0 "
        "ScalarResources:map[]}\n"
        "Allocatable Resources:&{MilliCPU:4000 Memory:8589934592 EphemeralStorage:0 "
        "AllowedPodNumber:110 ScalarResources:map[]}\n"
        "Scheduled Pods(number: 1):\n"
        "name: p1, namespace: ns, uid: u1, phase: Running, nominated node: \n"
    )


def test_nominated_pods_follow() -> None:
    text = node_text(NodeInfo("n1"), [make_pod("a", uid="u", nominated_node="n1")])
    assert "Deleted: true\n" in text
    assert text.endswith(
        "Nominated Pods(number: 1):\n"
        "name: a, namespace: default, uid: u, phase: , nominated node: n1\n"
    )


@pytest.fixture
def scheduler() -> Scheduler:
    client: object = None  # nothing here talks to a cluster
    return SchedulerFactory(
        config=SchedulerConfig(),
        client=client,  # type: ignore[arg-type]
        objects=ClusterObjects(),
        events=lambda _: RecordedEvents(),
        clock=ManualClock(),
    ).build()


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, object]]]:
    return [(record.getMessage(), dict(fields_of(record) or {})) for record in caplog.records]


def test_without_a_difference_nothing_is_logged(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    node, running, waiting = make_node("n1"), make_pod("a", uid="a", node="n1"), make_pod("b")
    scheduler.objects.put(node, running, waiting)
    scheduler.handlers.node_added(node)
    scheduler.handlers.pod_added(running)
    scheduler.handlers.pod_added(waiting)
    CacheDebugger(scheduler).compare()
    assert logged(caplog) == []


def test_mismatches_are_named(scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    """Example 5: a node that is gone but has pods is redundant."""
    caplog.set_level(logging.INFO)
    scheduler.objects.put(make_node("new"), make_pod("missed", uid="m"))
    scheduler.handlers.pod_added(make_pod("ghostly", uid="g", node="ghost"))
    CacheDebugger(scheduler).compare()
    assert logged(caplog) == [
        ("Cache mismatch", {"missedNodes": ["new"], "redundantNodes": ["ghost"]}),
        ("Cache mismatch", {"missedPods": ["m"], "redundantPods": ["g"]}),
    ]


def test_the_queue_is_shown_with_its_sizes(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scheduler.handlers.node_added(make_node("n1"))
    scheduler.handlers.pod_added(make_pod("a", uid="a"))
    CacheDebugger(scheduler).dump()
    (_, nodes), (message, queue) = logged(caplog)
    assert str(nodes["nodes"]).startswith("Node name: n1\n")
    assert message == "Dump of scheduling queue"
    assert queue["summary"] == "activeQ:1; backoffQ:0; unschedulablePods:0"
    assert queue["pods"] == "name: a, namespace: default, uid: a, phase: , nominated node: \n"
