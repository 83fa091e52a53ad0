"""Events that take longer than a turn of the loop are finished in later turns, in their order."""

import asyncio
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.framework.events import NODE_ADD, Action, Hint, Resource
from kubestow.queue import Place
from kubestow.testing.builders import make_node, make_pod


class SlowHints:
    """Hints that take a while each; which pods were asked about, per event."""

    def __init__(self, bench: Any, seconds: float) -> None:
        self.asked: list[tuple[str, str]] = []
        self._bench = bench
        self._seconds = seconds

    def __call__(self, pod: Pod, old: object, new: Any) -> Hint:
        self.asked.append((new.metadata.name, pod.metadata.name))
        self._bench.clock.advance_s(self._seconds)
        return Hint.QUEUE if pod.metadata.labels else Hint.SKIP


def test_the_loop_has_its_turn_while_many_hints_are_asked(bench: Any) -> None:
    hint = SlowHints(bench, 0.015)
    queue = bench.queue(("A", Resource.NODE, Action.ADD, hint))
    helped = make_pod("p4", labels={"is": "helped"})
    for pod in (*(make_pod(f"p{number}") for number in range(4)), helped, make_pod("p5")):
        bench.park(queue, pod, "A")
    bench.clock.advance_s(60)

    async def scenario() -> None:
        queue.move_all(NODE_ADD, None, make_node("n1"))
        queue.move_all(NODE_ADD, None, make_node("n2"))
        assert hint.asked == [("n1", "p0"), ("n1", "p1")]
        # Meanwhile one of them goes, and one is parked again: its next attempt has seen the node.
        queue.delete(make_pod("p2"))
        queue.activate([make_pod("p3")])
        bench.fail(queue, queue.pop_nowait(), "A")
        await asyncio.sleep(0)
        assert hint.asked[2:] == [("n1", "p4"), ("n1", "p5")]
        popped = await queue.pop()
        assert popped is not None
        assert popped.pod is helped
        for _ in range(9):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    # The second event: the pods that were parked when it came, still are, and in their order.
    assert hint.asked[4:] == [("n2", "p0"), ("n2", "p1"), ("n2", "p5")]


def test_events_are_applied_at_once_without_a_loop(bench: Any) -> None:
    hint = SlowHints(bench, 1.0)
    queue = bench.queue(("A", Resource.NODE, Action.ADD, hint))
    for number in range(3):
        bench.park(queue, make_pod(f"p{number}"), "A")
    queue.move_all(NODE_ADD, None, make_node("n1"))
    assert [name for _, name in hint.asked] == ["p0", "p1", "p2"]


def test_when_events_come_too_fast_the_oldest_helps_all(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubestow.queue.late_events.LATE_EVENTS_MAX", 2)
    hint = SlowHints(bench, 1.0)
    queue = bench.queue(("A", Resource.NODE, Action.ADD, hint))
    for number in range(3):
        bench.park(queue, make_pod(f"p{number}"), "A")
    bench.clock.advance_s(60)

    async def scenario() -> None:
        for number in range(3):
            queue.move_all(NODE_ADD, None, make_node(f"n{number}"))
        assert hint.asked == [("n0", "p0")]
        assert [pod.metadata.name for pod in queue.pods_in_active()] == ["p1", "p2"]

    asyncio.run(scenario())


def test_missed_events_that_take_long_count_as_help(bench: Any) -> None:
    hint = SlowHints(bench, 0.015)
    queue = bench.queue(("A", Resource.NODE, Action.ADD, hint))
    queue.add(make_pod("p"))
    popped = queue.pop_nowait()
    for number in range(9):
        queue.move_all(NODE_ADD, None, make_node(f"n{number}"))
    bench.fail(queue, popped, "A")
    assert len(hint.asked) == 2
    assert queue.place_of(make_pod("p")) is Place.BACKOFF
