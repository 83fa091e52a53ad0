"""Which pods pass the PreEnqueue checks, and the records of those that do not (spec 02 §5)."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.errors import PluginError
from kubestow.framework.events import Action, ClusterEvent
from kubestow.framework.status import Code, Status
from kubestow.queue.gating import Gatekeeper
from kubestow.queue.metrics import NO_METRICS
from kubestow.queue.queued_pod import QueuedPod
from kubestow.testing.builders import make_pod
from kubestow.testing.clock import ManualClock

PROFILE = "default-scheduler"
EVENTS = (ClusterEvent("Pod", Action.DELETE),)
REFUSAL = Status.unresolvable("no")


class Gates:
    """Named checks whose answers can be changed, and the order in which they were asked."""

    def __init__(self, **answers: Status | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def checks(self) -> list[tuple[str, Callable[[Pod], Status | None]]]:
        return [(name, lambda _, name=name: self.ask(name)) for name in self.answers]

    def ask(self, name: str) -> Status | None:
        self.asked.append(name)
        return self.answers[name]

    def gatekeeper(self, metrics: Any = NO_METRICS) -> Gatekeeper:
        return Gatekeeper(
            {PROFILE: self.checks()},
            events_of=lambda plugin: EVENTS if plugin == "A" else (),
            clock=ManualClock(),
            metrics=metrics,
        )


@pytest.fixture
def queued_pod() -> QueuedPod:
    return QueuedPod(PodInfo(make_pod()), timestamp_ns=0)


def test_a_pod_passes_when_every_check_does(queued_pod: QueuedPod) -> None:
    gates = Gates(A=None, B=Status(Code.SUCCESS))
    assert gates.gatekeeper().admit(queued_pod)
    assert gates.asked == ["A", "B"]
    assert not queued_pod.is_gated
    assert not queued_pod.has_rejectors


@pytest.mark.parametrize("status", [REFUSAL, Status.unschedulable("x"), Status.skip()], ids=repr)
def test_the_first_refusal_ends_the_pass(queued_pod: QueuedPod, status: Status) -> None:
    gates = Gates(A=status, B=REFUSAL)
    assert not gates.gatekeeper().admit(queued_pod)
    assert gates.asked == ["A"]
    assert queued_pod.gating_plugin == "A"
    assert queued_pod.gating_events == EVENTS
    assert queued_pod.unschedulable_plugins == {"A"}


def test_the_gating_plugin_is_asked_first_and_alone_while_it_refuses(
    queued_pod: QueuedPod,
) -> None:
    gates = Gates(A=None, B=None, C=REFUSAL)
    gatekeeper = gates.gatekeeper()
    assert not gatekeeper.admit(queued_pod)
    gates.asked.clear()
    assert not gatekeeper.admit(queued_pod)
    assert gates.asked == ["C"]
    gates.asked.clear()
    gates.answers["C"] = None
    assert gatekeeper.admit(queued_pod)
    assert gates.asked == ["C", "A", "B"]


def test_another_gate_takes_over_and_the_first_stays_a_rejector(
    queued_pod: QueuedPod, metrics: Any
) -> None:  # Q5-6
    gates = Gates(A=REFUSAL, B=REFUSAL)
    gatekeeper = gates.gatekeeper(metrics)
    gatekeeper.admit(queued_pod)
    gates.answers["A"] = None
    assert not gatekeeper.admit(queued_pod)
    assert queued_pod.gating_plugin == "B"
    assert queued_pod.unschedulable_plugins == {"A", "B"}
    assert metrics.unschedulable == {"A": 1, "B": 1}


def test_once_all_pass_only_the_name_of_the_gate_is_cleared(queued_pod: QueuedPod) -> None:
    gates = Gates(A=REFUSAL)
    gatekeeper = gates.gatekeeper()
    gatekeeper.admit(queued_pod)
    gates.answers["A"] = None
    assert gatekeeper.admit(queued_pod)
    assert queued_pod.gating_plugin == ""
    assert queued_pod.gating_events == EVENTS
    assert queued_pod.unschedulable_plugins == {"A"}


@pytest.mark.parametrize("rejected_as", ["unschedulable", "pending"])
def test_a_plugin_that_rejected_the_pod_already_is_not_counted_again(
    queued_pod: QueuedPod, metrics: Any, rejected_as: str
) -> None:
    queued_pod.reject(**{rejected_as: ["A"]})
    Gates(A=REFUSAL).gatekeeper(metrics).admit(queued_pod)
    assert not metrics.unschedulable


@pytest.mark.parametrize("fault", [PluginError, KeyError, ZeroDivisionError])
def test_a_failing_check_gates_the_pod_and_is_logged(
    queued_pod: QueuedPod, caplog: pytest.LogCaptureFixture, fault: type[Exception]
) -> None:
    def broken(pod: Pod) -> Status | None:
        raise fault("lister broke")

    gatekeeper = Gatekeeper(
        {PROFILE: [("A", broken)]},
        events_of=lambda _: (),
        clock=ManualClock(),
        metrics=NO_METRICS,
    )
    assert not gatekeeper.admit(queued_pod)
    assert queued_pod.gating_plugin == "A"
    assert "lister broke" in caplog.text


def test_a_pass_is_always_recorded_as_a_success(queued_pod: QueuedPod, metrics: Any) -> None:
    gatekeeper = Gates(A=REFUSAL).gatekeeper(metrics)
    gatekeeper.admit(queued_pod)
    assert metrics.passes == [(PROFILE, "Success")]
    assert metrics.plugin_calls == []


def test_a_sampled_pass_records_the_true_codes(queued_pod: QueuedPod, metrics: Any) -> None:
    metrics.is_sampling = True
    Gates(A=None, B=REFUSAL).gatekeeper(metrics).admit(queued_pod)
    assert metrics.plugin_calls == [("A", "Success"), ("B", "UnschedulableAndUnresolvable")]


def test_a_pod_of_an_unknown_profile_has_no_gates(metrics: Any) -> None:
    queued_pod = QueuedPod(PodInfo(make_pod(scheduler_name="other")), timestamp_ns=0)
    assert Gates(A=REFUSAL).gatekeeper().admit(queued_pod)
