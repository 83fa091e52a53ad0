"""Parked pods: which an event may move, and how they are counted (spec 02 §9.6, §16, §18)."""

from typing import Any

from kubestow.api.pod_info import PodInfo
from kubestow.framework.events import (
    ASSIGNED_POD_ADD,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
)
from kubestow.framework.hints import HintRegistration
from kubestow.queue.interest import Interest
from kubestow.queue.parked import ParkedPods
from kubestow.queue.queued_pod import QueuedPod
from kubestow.testing.builders import make_pod

PROFILE = "default-scheduler"
INTEREST = Interest(
    {
        PROFILE: [
            HintRegistration(NODE_ADD, "Fit", None),
            HintRegistration(ASSIGNED_POD_ADD, "Spread", None),
            HintRegistration(ASSIGNED_POD_ADD, "Gate", None),
        ]
    }
)


def queued(name: str, *rejectors: str, gate: str = "", profile: str = PROFILE) -> QueuedPod:
    pod = make_pod(name, scheduler_name=profile)
    queued_pod = QueuedPod(PodInfo(pod), timestamp_ns=0)
    queued_pod.reject(unschedulable=(*rejectors, gate) if gate else rejectors)
    queued_pod.gating_plugin = gate
    return queued_pod


def candidates(parked: ParkedPods, event: ClusterEvent) -> str:
    entries = parked.candidates(INTEREST.audience_of(event))
    return " ".join(entry.queued_pod.pod_info.name for entry in entries)


def test_only_pods_whose_rejectors_registered_the_event_are_candidates(metrics: Any) -> None:
    parked = ParkedPods(INTEREST, metrics=metrics)
    for queued_pod in (
        queued("fit", "Fit"),
        queued("spread", "Spread"),
        queued("both", "Fit", "Spread"),
        queued("other", "NodeName"),
        queued("none"),
        queued("strange", "NodeName", profile="unknown"),
    ):
        parked.put(queued_pod, "x")
    assert candidates(parked, NODE_ADD) == "fit both none strange"
    assert candidates(parked, ASSIGNED_POD_ADD) == "spread both none strange"
    assert candidates(parked, UNSCHEDULABLE_TIMEOUT) == "fit spread both other none strange"


def test_gated_pods_move_only_after_events_of_their_gate(metrics: Any) -> None:  # Q5-4
    parked = ParkedPods(INTEREST, metrics=metrics)
    parked.put(queued("other", "Fit", gate="SchedulingGates"), "x")
    parked.put(queued("registered", "Fit", gate="Gate"), "x")
    assert candidates(parked, NODE_ADD) == ""
    assert candidates(parked, ASSIGNED_POD_ADD) == "registered"
    assert candidates(parked, UNSCHEDULABLE_TIMEOUT) == "other registered"


def test_a_pod_keeps_its_order_when_its_state_changes(metrics: Any) -> None:
    parked = ParkedPods(INTEREST, metrics=metrics)
    first, second = queued("first", "Spread"), queued("second", "Fit")
    parked.put(first, "x")
    parked.put(second, "x")
    first.reject(unschedulable=["Fit"])
    parked.put(first, "x")
    assert candidates(parked, NODE_ADD) == "first second"
    assert candidates(parked, ASSIGNED_POD_ADD) == ""


def test_counts_follow_the_state_in_which_a_pod_was_put(metrics: Any) -> None:
    parked = ParkedPods(INTEREST, metrics=metrics)
    queued_pod = queued("p", "Fit")
    parked.put(queued_pod, "Failed")
    assert (parked.unschedulable_count, parked.gated_count) == (1, 0)
    assert metrics.pending == {"unschedulable": 1}

    queued_pod.gating_plugin = "Gate"
    parked.put(queued_pod, "Updated")
    assert (parked.unschedulable_count, parked.gated_count) == (0, 1)
    assert metrics.pending == {"unschedulable": 0, "gated": 1}

    queued_pod.gating_plugin = ""
    assert parked.discard(queued_pod.key) is queued_pod
    assert metrics.pending == {"unschedulable": 0, "gated": 0}
    assert parked.discard(queued_pod.key) is None
    # Only the pod that was not parked before counted as incoming.
    assert metrics.incoming_total == {("unschedulable", "Failed"): 1}


def test_a_new_record_takes_the_place_of_the_old_one(metrics: Any) -> None:
    parked = ParkedPods(INTEREST, metrics=metrics)
    parked.put(queued("p", "Fit", gate="Gate"), "x")
    renewed = queued("p", "Fit")
    parked.put(renewed, "x")
    assert list(parked) == [renewed]
    assert parked.get(renewed.key) is renewed
    assert metrics.pending == {"unschedulable": 1, "gated": 0}
