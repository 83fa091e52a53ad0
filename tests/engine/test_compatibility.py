"""A compatibility name selects the parts of an older scheduler, and they work together."""

import asyncio
from collections import Counter

import numpy as np
import pytest

from kubestow.api.decode import to_document
from kubestow.api.meta import JsonObject, Object
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.legacy import Cache117, Cache120, Snapshot117
from kubestow.cache.snapshot import Snapshot
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.compatibility import PARTS
from kubestow.engine.legacy.reservoir import ReservoirSelector
from kubestow.queue import SchedulingQueue, SchedulingQueue120
from kubestow.simulator.simulation import Simulation, SimulationResult
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod


def document(kind: str, value: Object) -> JsonObject:
    return to_document(value) | {"kind": kind, "apiVersion": "v1"}


NODES = [document("Node", make_node(name, cpu="2", memory="8Gi")) for name in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("v1.17", (Cache117, Snapshot117, SchedulingQueue120)),
        ("v1.20", (Cache120, Snapshot, SchedulingQueue120)),
        ("v1.36", (Cache, Snapshot, SchedulingQueue)),
    ],
)
def test_a_name_selects_all_parts(name: str, types: tuple[type, ...]) -> None:
    async def run() -> tuple[type, ...]:
        scheduler = Simulation(NODES, SchedulerConfig(), parts=PARTS[name]).cluster.scheduler
        return type(scheduler.cache), type(scheduler.snapshot), type(scheduler.queue)

    assert run_in_virtual_time(run()) == types


@pytest.mark.parametrize("name", ["v1.17", "v1.20"])
def test_an_older_scheduler_places_pods(name: str) -> None:
    pods = [document("Pod", make_pod(f"p{number}", cpu="1")) for number in range(7)]

    async def run() -> SimulationResult:
        return await Simulation([*NODES, *pods], SchedulerConfig(), parts=PARTS[name]).run()

    result = run_in_virtual_time(run())
    assert Counter(pod.node for pod in result.scheduled) == {"a": 2, "b": 2, "c": 2}
    (pending,) = result.pending
    assert pending.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert result.has_settled


def test_an_assumption_nobody_confirms_expires() -> None:
    async def run() -> list[bool]:
        simulation = Simulation(NODES, SchedulerConfig(), parts=PARTS["v1.20"])
        scheduler = simulation.cluster.scheduler
        pod = make_pod("p", node="a")
        seen: list[bool] = []
        async with simulation.cluster.running():
            scheduler.cache.assume_pod(PodInfo(pod))
            scheduler.cache.finish_binding(pod, scheduler.clock.now_ns())
            for pause_s in (29, 3):
                await asyncio.sleep(pause_s)
                seen.append(scheduler.cache.is_assumed(pod))
        return seen

    assert run_in_virtual_time(run()) == [True, False]


def test_equal_nodes_are_chosen_by_lot() -> None:
    """Spec 04 §19.2: each of the best is as likely as the others."""
    selector = ReservoirSelector(np.random.default_rng(0))
    totals = np.array([1, 5, 2, 5, 5], np.int64)
    found = Counter(selector.select(totals) for _ in range(600))
    assert set(found) == {1, 3, 4}
    assert min(found.values()) > 150


def test_one_best_node_is_chosen() -> None:
    selector = ReservoirSelector(np.random.default_rng(0))
    assert selector.select(np.array([3, 9, 1], np.int64)) == 1
