"""Pods held back at Permit and pods in PreBind (spec 04 §11, §12.4), in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.framework.status import SUCCESS, Code, Status
from kubestow.framework.waiting import PodInPreBind, WaitingPod, WaitingPods, go_duration
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_pod

POD = PodInfo(make_pod("p", uid="u1"))


def outcome_of(
    timeouts_s: Mapping[str, float], act: Callable[[WaitingPod], Awaitable[None] | None]
) -> tuple[Status, float]:
    """What comes of the wait, and when."""

    async def wait() -> tuple[Status, float]:
        waiting = WaitingPod(POD, timeouts_s)
        acting = act(waiting)
        if acting is not None:
            await acting
        status = await waiting.wait_outcome()
        return status, asyncio.get_running_loop().time()

    return run_in_virtual_time(wait())


def nobody_acts(_: WaitingPod) -> None:
    return None


def test_11_1_the_shortest_wait_decides() -> None:
    status, now_s = outcome_of({"B": 900.0, "A": 10.0}, nobody_acts)
    assert now_s == 10.0
    assert status == Status(
        Code.UNSCHEDULABLE,
        "rejected due to timeout after waiting 10s at plugin A",
        plugin="A",
    )


@pytest.mark.parametrize("timeout_s", [0.0, -5.0])
def test_no_time_to_wait_is_over_at_once(timeout_s: float) -> None:
    status, now_s = outcome_of({"A": timeout_s}, nobody_acts)
    assert now_s == 0.0
    assert status.reasons == (
        f"rejected due to timeout after waiting {go_duration(timeout_s)} at plugin A",
    )


def test_11_3_all_who_wait_must_allow() -> None:
    async def act(waiting: WaitingPod) -> None:
        assert waiting.pending_plugins == ["A", "B"]
        waiting.allow("unknown")
        waiting.allow("A")
        assert waiting.pending_plugins == ["B"]
        await asyncio.sleep(100)  # A's time would have been over by now
        waiting.allow("B")

    assert outcome_of({"A": 10.0, "B": 900.0}, act) == (SUCCESS, 100.0)


def test_11_4_preemption_is_an_error() -> None:
    def act(waiting: WaitingPod) -> None:
        assert waiting.preempt("DefaultPreemption", "preempted")

    status, _ = outcome_of({"A": 10.0}, act)
    assert (status.code, status.message, status.plugin) == (
        Code.ERROR,
        "preempted",
        "DefaultPreemption",
    )


def test_the_first_outcome_counts() -> None:
    def act(waiting: WaitingPod) -> None:
        assert waiting.reject("A", "first")
        assert waiting.pending_plugins == []
        assert not waiting.reject("B", "second")
        assert not waiting.preempt("C", "third")
        waiting.allow("A")
        waiting.allow("B")

    status, now_s = outcome_of({"A": 10.0, "B": 20.0}, act)
    assert status == Status(Code.UNSCHEDULABLE, "first", plugin="A")
    assert now_s == 0.0


def test_11_5_a_pod_that_is_removed_is_rejected_without_a_plugin() -> None:
    async def go() -> Status:
        pods = WaitingPods()
        pods.add(POD, {"A": 10.0})
        assert not pods.reject("another")
        assert pods.reject("u1")
        assert not pods.reject("u1")  # it has its outcome
        waiting = pods.get("u1")
        assert waiting is not None
        assert [pod.pod.uid for pod in pods] == ["u1"]
        pods.remove("u1")
        pods.remove("u1")
        assert pods.get("u1") is None
        return await waiting.wait_outcome()

    assert run_in_virtual_time(go()) == Status(Code.UNSCHEDULABLE, "removed")


def test_pods_may_leave_while_all_are_looked_at() -> None:
    async def go() -> None:
        pods = WaitingPods()
        for uid in ("a", "b", "c"):
            pods.add(PodInfo(make_pod(uid, uid=uid)), {"A": 1.0})
        for waiting in pods:
            pods.remove(waiting.pod.uid)
            waiting.allow("A")
        assert list(pods) == []

    run_in_virtual_time(go())


class TestPodInPreBind:
    def test_it_is_cancelled_once(self) -> None:
        async def go() -> None:
            async def bind() -> None:
                await asyncio.sleep(1000)

            task = asyncio.ensure_future(bind())
            await asyncio.sleep(0)
            entry = PodInPreBind(task)
            assert entry.cancel("preempted by DefaultPreemption")
            assert entry.cancel("again")
            assert entry.cancel_reason == "preempted by DefaultPreemption"
            assert not entry.mark_prebound()
            with pytest.raises(asyncio.CancelledError):
                await task

        run_in_virtual_time(go())

    def test_once_prebound_it_is_too_late(self) -> None:
        entry = PodInPreBind(None)
        assert entry.mark_prebound()
        assert not entry.cancel("too late")
        assert entry.cancel_reason is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1e-9, "1ns"),
        (999e-9, "999ns"),
        (1.5e-6, "1.5µs"),
        (0.0015, "1.5ms"),
        (0.1, "100ms"),
        (0.999, "999ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (10, "10s"),
        (59.999999999, "59.999999999s"),
        (60, "1m0s"),
        (61.25, "1m1.25s"),
        (300, "5m0s"),
        (900, "15m0s"),
        (3600, "1h0m0s"),
        (3723.5, "1h2m3.5s"),
        (90000, "25h0m0s"),
        (-1.5, "-1.5s"),
        (-0.001, "-1ms"),
    ],
)
def test_durations_print_as_in_go(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
