"""Groups of v1.37 from queue to API: worked examples, and random gangs (spec 12 §14 to §16)."""

import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.cache.dice import Dice
from tests.cache.test_trial import contents
from tests.editions.v1_37.engine.cluster import Cluster, play_run

from kubestow.queue.moves import Place
from kubestow.simulator.conformance.runs.world import EPOCH_NS


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "kubestow")


def play(work: Callable[[Cluster], Coroutine[Any, Any, None]], *gates: str) -> None:
    play_run(work, "GenericWorkload", *gates)


def test_v11_a_gang_that_does_not_fit_waits_as_a_whole() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n1", "2")
        cluster.gang("g", 3)
        for name in ("p1", "p2", "p3"):
            cluster.pod(name, "1", "g")
        assert await cluster.round() == "podgroup default/g"
        held_up = (
            "pod group is unschedulable, minCount (3) cannot be satisfied: 2 scheduled, "
            "0 remaining, pod group preemption: No preemption victims found for incoming preemptor"
        )
        assert cluster.failures == [
            ("default/p1", held_up),
            ("default/p2", held_up),
            ("default/p3", "0/1 nodes are available: 1 Insufficient cpu."),
        ]
        waits: list[float] = []
        for _ in range(6):
            [(place, entry)] = cluster.world.queue.waiting()
            assert place is Place.ERROR_BACKOFF
            assert await cluster.round() == "", "a group is not popped before its time"
            assert entry.backoff_expiry_ns is not None
            waits.append((entry.backoff_expiry_ns - EPOCH_NS) / 1e9 - entry.timestamp_ns // 10**9)
            await cluster.advance(19)
            assert await cluster.round() == "podgroup default/g"
        now_s = [round(wait + EPOCH_NS / 1e9) for wait in waits]
        assert now_s == [1, 2, 4, 8, 16, 17]

    play(work)


def test_v12_members_that_cannot_help_are_not_tried() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n1", "1")
        cluster.gang("g", 3)
        for name in ("p1", "p2", "p3"):
            cluster.pod(name, "1", "g")
        await cluster.round()
        text = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
        assert cluster.failures[2] == ("default/p3", text)

    play(work)


def test_v13_a_gang_is_placed_when_fewer_members_are_enough() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n1", "4")
        cluster.gang("g", 5)
        for number in range(4):
            cluster.pod(f"p{number}", "1", "g")
        assert await cluster.round() == ""
        patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
        cluster.world.patch("podgroups", "default/g", patch)
        assert await cluster.round() == "podgroup default/g"
        assert len(cluster.bound()) == 4

    play(work)


def test_v14_what_is_left_of_a_gang_is_tried_at_once_with_preemption() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n1", "4")
        cluster.pod("low", "1", node="n1", priority=-5)
        cluster.gang("g", 3)
        for number in range(4):
            cluster.pod(f"p{number}", "1", "g")
        await cluster.round()
        assert cluster.bound() == {"low", "p0", "p1", "p2"}
        assert await cluster.round() == "podgroup default/g"
        assert cluster.bound() == {"p0", "p1", "p2"}
        await cluster.advance(2)
        await cluster.round()
        assert len(cluster.bound()) == 4

    play(work)


def test_a_group_of_mode_all_is_evicted_as_one_for_a_single_pod() -> None:
    async def work(cluster: Cluster) -> None:
        for name in ("n1", "n2", "n3"):
            cluster.node(name, "1")
        cluster.gang("g", 3, disruptionMode={"all": {}}, priority=10)
        for number, name in enumerate(("n1", "n2", "n3")):
            cluster.pod(f"p{number}", "1", "g", node=name, priority=10)
        cluster.pod("urgent", "1", priority=50)
        await cluster.round()
        assert cluster.bound() == set()

    play(work)


@pytest.mark.parametrize("seed", range(25))
def test_random_gangs_are_whole_or_absent_and_trials_leave_no_trace(seed: int) -> None:
    async def work(cluster: Cluster) -> None:
        rng = Dice(seed)
        for number in range(rng.between(1, 5)):
            cluster.node(f"n{number}", str(rng.between(1, 4)))
        minimum = {f"g{number}": rng.between(1, 4) for number in range(rng.between(1, 4))}
        for name, min_count in minimum.items():
            cluster.gang(name, min_count)
        for name, min_count in minimum.items():
            for number in range(min_count + rng.between(0, 2)):
                cluster.pod(f"{name}-{number}", rng.choice(("500m", "1", "2")), name)
        snapshot = cluster.world.scheduler.snapshot
        for _ in range(40):
            if not await cluster.round():
                await cluster.advance(1)
            counts = Counter(name.partition("-")[0] for name in cluster.bound())
            assert all(counts[name] in (0, *range(minimum[name], 9)) for name in minimum), counts
            snapshot.refresh(cluster.world.scheduler.cache)
            before = contents(snapshot)
            snapshot.generation = 0
            snapshot.refresh(cluster.world.scheduler.cache)
            assert contents(snapshot) == before
        # No deadlock: what is not placed waits in the queue, or fits nowhere.
        waiting = {
            member.pod.metadata.name
            for _, entry in cluster.world.queue.waiting()
            for member in entry.waiting_pods
        }
        assert waiting | cluster.bound() == {pod.metadata.name for pod in cluster.pods()}

    play(work)
