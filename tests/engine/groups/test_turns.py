"""A group is tried in turns with the event loop, which goes on between its members."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

from kubestow.config.feature_gates import FeatureGates
from kubestow.engine.waiting_cycle import REST_S, WaitingCycles
from kubestow.framework.attempt_timer import SLICE_S, AttemptTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.testing import make_node, make_plugin, make_pod

Run = Callable[[Coroutine[Any, Any, None]], None]
World = Any  # the class the fixture of that name gives

MEMBER_S = SLICE_S / 4
MEMBERS = 20


class Work:
    """Each attempt of a pod takes some time, in one piece."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.turns_s: list[float] = []

    def pre_filter(self, state: CycleState, pod: Any, nodes: Any) -> None:
        self.now_s += MEMBER_S


def world_of(make_world: type[World], work: Work) -> World:
    gates = FeatureGates({"GenericWorkload": True})
    plugin = make_plugin("Work", pre_filter=work.pre_filter)
    world = make_world(plugin, nodes=[make_node("n1")], gates=gates)
    cycles = world.scheduler.cycles = WaitingCycles()
    cycles.on_turn = lambda: work.turns_s.append(work.now_s)
    world.scheduler.decider._timer = AttemptTimer(
        lambda: work.now_s, budget_s=0.0, count_slow=lambda plugin, point: None, turns=cycles
    )
    return world


def test_the_loop_goes_on_between_members(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        work = Work()
        world = world_of(make_world, work)
        for number in range(MEMBERS):
            world.create(make_pod(f"p{number}", group="g"))
        ticks: list[float] = []
        scheduling = asyncio.create_task(world.scheduler.run())
        for _ in range(100):
            await asyncio.sleep(REST_S)
            ticks.append(work.now_s)
        await world.settle()
        assert len(world.decisions) == len(world.server.bound) == MEMBERS
        between = [after - before for before, after in pairwise(work.turns_s)]
        assert max(between) <= SLICE_S + MEMBER_S + 1e-9
        assert len(set(ticks)) > MEMBERS * MEMBER_S / (SLICE_S + MEMBER_S)
        world.queue.close()
        await scheduling

    run(go())


def test_a_short_trial_has_no_rest(make_world: type[World], run: Run) -> None:
    async def go() -> None:
        work = Work()
        world = world_of(make_world, work)
        work.now_s = 1000.0  # long after any attempt before
        for number in range(2):
            world.create(make_pod(f"p{number}", group="g"))
        scheduling = asyncio.create_task(world.scheduler.run())
        await world.settle()
        # Its begin and its end.
        assert len(work.turns_s) == 2
        assert len(world.server.bound) == 2
        world.queue.close()
        await scheduling

    run(go())
