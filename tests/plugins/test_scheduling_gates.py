"""Spec 05 §4: a pod with scheduling gates waits outside."""

import pytest

from kubestow.framework.events import Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Status
from kubestow.plugins.scheduling_gates import SchedulingGates
from kubestow.testing import make_handle, make_pod, run_hint

LIFTED = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


@pytest.fixture
def plugin() -> SchedulingGates:
    return SchedulingGates(None, make_handle())


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        pytest.param([], None, id="1-no-gates"),
        pytest.param(["foo"], "waiting for scheduling gates: [foo]", id="2-one"),
        pytest.param(["b", "a"], "waiting for scheduling gates: [b a]", id="3-order-of-the-spec"),
    ],
)
def test_gates_hold_the_pod_back(
    plugin: SchedulingGates, gates: list[str], reason: str | None
) -> None:
    expected = None if reason is None else Status.unresolvable(reason)
    assert plugin.pre_enqueue(make_pod(gates=gates)) == expected


def test_only_the_pods_own_gates_wake_it(plugin: SchedulingGates) -> None:
    pod, other = make_pod(gates=["a"]), make_pod(gates=["a"])
    lifted = make_pod(uid=pod.metadata.uid)
    assert run_hint(plugin, LIFTED, pod, pod, lifted) is Hint.QUEUE
    assert run_hint(plugin, LIFTED, pod, other, make_pod(uid=other.metadata.uid)) is Hint.SKIP


def test_losing_one_of_two_gates_is_no_such_event(plugin: SchedulingGates) -> None:
    pod = make_pod(gates=["a", "b"])
    update = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)
    assert run_hint(plugin, update, pod, pod, make_pod(gates=["a"], uid=pod.metadata.uid)) is None
