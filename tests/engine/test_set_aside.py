"""An attempt that takes long is made in parts, with other pods in between."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.framework.attempt_timer import SLICE_S, AttemptTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.queue import Place
from kubestow.testing import make_node, make_pod

Run = Callable[[Coroutine[Any, Any, None]], None]
World = Any  # the class the fixture of that name gives

PIECE_S = SLICE_S / 2


class Pieces:
    """Does ten pieces of work for the pod "slow", and keeps what is done."""

    name = "Pieces"

    def __init__(self) -> None:
        self.now_s = 0.0
        self.left = 10
        self.parts = 0

    def pre_filter(self, state: CycleState, pod: Any, nodes: Any) -> None:
        if pod.name != "slow":
            return
        self.parts += 1
        while self.left:
            state.timer.may_interrupt()
            self.now_s += PIECE_S
            self.left -= 1


def slow_world(make_world: type[World], pieces: Pieces, budget_s: float = 0.0) -> World:
    world = make_world(pieces, nodes=[make_node("n1")])
    timer = AttemptTimer(
        lambda: pieces.now_s, budget_s=budget_s, count_slow=lambda plugin, point: None
    )
    world.scheduler.decider._timer = timer
    return world


def test_other_pods_are_served_between_the_parts(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        pieces = Pieces()
        world = slow_world(make_world, pieces)
        slow = world.create(make_pod("slow"))
        assert world.schedule() is None
        assert pieces.left
        # In flight: in no place of the queue, without condition or event.
        assert world.place_of(slow) is Place.IN_FLIGHT
        assert world.events.events == []
        world.create(make_pod("other"))
        assert world.schedule().node_name == "n1"
        assert await world.scheduler.tasks.drain(60)
        assert pieces.parts > 2
        assert world.server.bound == {"other": "n1", "slow": "n1"}
        assert world.queue.uids_in_flight() == []

    run(go())


def test_the_parts_count_for_one_budget(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        pieces = Pieces()
        world = slow_world(make_world, pieces, budget_s=PIECE_S * 6)
        slow = world.create(make_pod("slow"))
        world.schedule()
        assert await world.scheduler.tasks.drain(60)
        assert world.place_of(slow) is Place.ERROR_BACKOFF
        (event,) = world.events.events
        assert "its budget is 0.3s" in event.note

    run(go())


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_pod_that_is_deleted_meanwhile_is_dropped(
    make_world: type[World], run: Run, is_replaced: bool
) -> None:
    async def go() -> None:
        pieces = Pieces()
        world = slow_world(make_world, pieces)
        slow = world.create(make_pod("slow"))
        world.schedule()
        world.objects.pods.remove(slow.metadata.namespace, slow.metadata.name)
        if is_replaced:
            world.objects.put(make_pod("slow", uid="another"))
        assert await world.scheduler.tasks.drain(60)
        assert pieces.left
        assert world.server.bound == {}
        assert slow.metadata.uid not in world.queue.uids_in_flight()

    run(go())


class Unkept:
    """Does ten pieces of work for the pod "slow" in every attempt, and keeps nothing."""

    name = "Unkept"

    def __init__(self, pieces: int = 10) -> None:
        self.now_s = 0.0
        self.pieces = pieces
        self.begun = self.ended = 0
        self.rests: list[float] = []

    def pre_filter(self, state: CycleState, pod: Any, nodes: Any) -> None:
        if pod.name != "slow":
            return
        self.begun += 1
        for _ in range(self.pieces):
            state.timer.pause()
            self.now_s += PIECE_S
        self.ended += 1


def world_with_turns(make_world: type[World], unkept: Unkept, budget_s: float = 0.0) -> World:
    world = make_world(unkept, nodes=[make_node("n1")])
    cycles = world.scheduler.cycles = WaitingCycles()
    cycles.on_turn = lambda: unkept.rests.append(unkept.now_s)
    world.scheduler.decider._timer = AttemptTimer(
        lambda: unkept.now_s,
        budget_s=budget_s,
        count_slow=lambda plugin, point: None,
        turns=cycles,
    )
    return world


def test_work_that_is_not_kept_goes_on_in_turns_with_the_loop(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        unkept = Unkept()
        world = world_with_turns(make_world, unkept)
        slow = world.create(make_pod("slow"))
        assert world.schedule() is None
        assert world.place_of(slow) is Place.IN_FLIGHT
        assert await world.scheduler.tasks.drain(60)
        # Once until it was interrupted, and once more to its end.
        assert (unkept.begun, unkept.ended) == (2, 1)
        assert world.server.bound == {"slow": "n1"}
        # The begin, a rest after each slice, and the end.
        between = [after - before for before, after in pairwise(unkept.rests)]
        assert len(between) > 3
        assert max(between) <= SLICE_S + PIECE_S + 1e-9

    run(go())


def test_other_pods_wait_for_a_cycle_that_rests(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        unkept = Unkept(pieces=40)
        world = world_with_turns(make_world, unkept)
        scheduling = asyncio.create_task(world.scheduler.run())
        world.create(make_pod("slow"))
        await asyncio.sleep(SLICE_S * 2)
        assert not world.scheduler.cycles.are_idle.is_set()
        world.create(make_pod("other"))
        await asyncio.sleep(60)
        assert [decision.pod.name for decision in world.decisions] == ["slow", "other"]
        assert world.server.bound == {"slow": "n1", "other": "n1"}
        world.queue.close()
        await scheduling

    run(go())


def test_rests_do_not_count_for_the_budget_but_the_work_does(
    make_world: type[World], run: Run
) -> None:
    async def go() -> None:
        unkept = Unkept(pieces=100)
        world = world_with_turns(make_world, unkept, budget_s=PIECE_S * 20)
        slow = world.create(make_pod("slow"))
        world.schedule()
        assert await world.scheduler.tasks.drain(60)
        assert unkept.ended == 0
        assert unkept.now_s < PIECE_S * 23
        assert world.place_of(slow) is Place.ERROR_BACKOFF

    run(go())
