"""The factory of an older version builds a scheduler with the parts of that version."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from kubestow.api.decode import to_document
from kubestow.api.meta import JsonObject, Object
from kubestow.cache.snapshot import Snapshot
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.v1_17.cache import Cache117, Snapshot117
from kubestow.editions.v1_20.cache import Cache120
from kubestow.editions.v1_20.engine.reservoir import ReservoirSelector
from kubestow.editions.v1_20.queue import SchedulingQueue120
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod


def document(kind: str, value: Object) -> JsonObject:
    return to_document(value) | {"kind": kind, "apiVersion": "v1"}


NODES = [document("Node", make_node(name, cpu="2", memory="8Gi")) for name in ("a", "b", "c")]


def simulation(version: str, documents: list[JsonObject]) -> Simulation:
    factory = rules_of(edition_named(version)).factory
    return Simulation(placing(documents), SchedulerConfig(), factory=factory)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("v1.17", (Cache117, Snapshot117, SchedulingQueue120)),
        ("v1.20", (Cache120, Snapshot, SchedulingQueue120)),
    ],
)
def test_a_version_has_its_own_parts(name: str, types: tuple[type, ...]) -> None:
    async def run() -> tuple[type, ...]:
        scheduler = simulation(name, NODES).cluster.scheduler
        return type(scheduler.cache), type(scheduler.snapshot), type(scheduler.queue)

    assert run_in_virtual_time(run()) == types


@pytest.mark.parametrize("name", ["v1.17", "v1.20"])
def test_an_older_scheduler_places_pods(name: str) -> None:
    pods = [document("Pod", make_pod(f"p{number}", cpu="1")) for number in range(7)]

    async def run() -> SimulationResult:
        return SimulationResult.of(await simulation(name, [*NODES, *pods]).run())

    result = run_in_virtual_time(run())
    assert Counter(pod.node for pod in result.scheduled) == {"a": 2, "b": 2, "c": 2}
    (pending,) = result.pending
    assert pending.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert result.has_settled


@pytest.mark.parametrize("name", ["v1.17", "v1.20"])
def test_an_assumed_pod_that_is_not_confirmed_expires(
    make_world: type[Any], run: Callable[[Coroutine[Any, Any, None]], None], name: str
) -> None:
    async def scenario() -> None:
        world = make_world(nodes=[make_node("n1")], factory=rules_of(edition_named(name)).factory)
        running = asyncio.create_task(world.scheduler.run())
        pod = world.create(make_pod("p"))
        await world.settle()
        assert world.server.bound == {"p": "n1"}
        # The sweep runs once a second, and a pod stays at its expiry itself.
        await asyncio.sleep(30.5)
        assert world.cache.is_assumed(pod)
        await asyncio.sleep(1)
        assert not world.cache.is_assumed(pod)
        world.queue.close()
        await running

    run(scenario())


@pytest.mark.parametrize("name", ["v1.17", "v1.20"])
def test_nothing_expires_after_the_end(
    make_world: type[Any], run: Callable[[Coroutine[Any, Any, None]], None], name: str
) -> None:
    async def scenario() -> None:
        world = make_world(nodes=[make_node("n1")], factory=rules_of(edition_named(name)).factory)
        running = asyncio.create_task(world.scheduler.run())
        pod = world.create(make_pod("p"))
        await world.settle()
        world.queue.close()
        await running
        await asyncio.sleep(60)
        assert world.cache.is_assumed(pod)

    run(scenario())


def test_equal_nodes_are_chosen_at_random() -> None:
    """Spec 04 §19.2: each of the best is as likely as the others."""
    selector = ReservoirSelector(np.random.default_rng(0))
    totals = np.array([1, 5, 2, 5, 5], np.int64)
    found = Counter(selector.select(totals) for _ in range(600))
    assert set(found) == {1, 3, 4}
    assert min(found.values()) > 150


def test_one_best_node_is_chosen() -> None:
    selector = ReservoirSelector(np.random.default_rng(0))
    assert selector.select(np.array([3, 9, 1], np.int64)) == 1
