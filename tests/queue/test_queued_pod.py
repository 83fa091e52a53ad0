"""The record of a pod (spec 02 §2.1, §2.2)."""

import pytest

from kubestow.api.pod import key_of
from kubestow.api.pod_info import PodInfo
from kubestow.framework.events import NODE_ADD
from kubestow.queue.queued_pod import QueuedPod
from kubestow.testing.builders import make_pod


def test_a_new_record_is_blank() -> None:
    queued_pod = QueuedPod(PodInfo(make_pod("p", priority=3)), timestamp_ns=7)
    assert (queued_pod.attempts, queued_pod.pod_info.priority, queued_pod.timestamp_ns) == (0, 3, 7)
    assert queued_pod.initial_attempt_ns is None
    assert not queued_pod.is_gated
    assert not queued_pod.has_rejectors


@pytest.mark.parametrize("namespace", ["default", ""])
def test_a_pod_has_the_key_of_its_record(namespace: str) -> None:
    pod = make_pod("p", namespace=namespace)
    assert key_of(pod) == QueuedPod(PodInfo(pod), timestamp_ns=0).key


def test_rejectors_are_unschedulable_and_pending_plugins() -> None:
    queued_pod = QueuedPod(PodInfo(make_pod()), timestamp_ns=0)
    queued_pod.reject(unschedulable=["A"], pending=["B"])
    assert queued_pod.rejectors == {"A", "B"}
    queued_pod.gating_plugin, queued_pod.gating_events = "A", (NODE_ADD,)
    queued_pod.reject()
    assert not queued_pod.has_rejectors
    assert (queued_pod.gating_plugin, queued_pod.gating_events) == ("", ())


def test_the_copy_for_the_assumed_pod_lacks_only_the_flush_mark() -> None:
    queued_pod = QueuedPod(PodInfo(make_pod()), timestamp_ns=1)
    for number, field in enumerate(QueuedPod.__slots__):
        if field != "pod_info":
            setattr(queued_pod, field, number)
    queued_pod.was_flushed_from_unschedulable = True
    assumed = queued_pod.pod_info.assigned_to("n1")
    copy = queued_pod.copy_for_assume(assumed)
    assert copy.pod_info is assumed
    assert copy.was_flushed_from_unschedulable is False
    for field in set(QueuedPod.__slots__) - {"pod_info", "was_flushed_from_unschedulable"}:
        assert getattr(copy, field) == getattr(queued_pod, field), field
