"""Binding and retries of v1.9 (spec 04 §19.1)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import cast

import msgspec
import pytest

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import SystemClock
from kubestow.editions.shared.policy import provider_policy
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.engine.decide import DecisionV19
from kubestow.editions.v1_9.engine.extenders import ExtendersV19
from kubestow.editions.v1_9.engine.scheduler import SchedulerV19
from kubestow.engine.extenders.chain import Extender, FilterAnswer
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.errors import ApiError, ConflictError
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import RecordedEvents


class HinderedClient(MemoryClient):
    """A server that refuses bindings, takes long for a status, or refuses it."""

    refuses = False
    refuses_status = False
    status_delay_s = 0.0

    async def bind(self, pod: Pod, node_name: str) -> None:
        if self.refuses:
            raise ConflictError("not now")
        await super().bind(pod, node_name)

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        if self.status_delay_s:
            await asyncio.sleep(self.status_delay_s)
        if self.refuses_status:
            raise ApiError("the server is overloaded")
        await super().patch_pod_status(
            pod, condition=condition, nominated_node_name=nominated_node_name
        )


class World:
    """A scheduler on a cluster in memory; tests pass the events to it."""

    def __init__(self) -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        self.cluster = MemoryCluster(clock, admission=False)
        self.client = HinderedClient(self.cluster)
        self.events = RecordedEvents()
        self.objects = ClusterObjects()
        self.scheduler = SchedulerV19(
            build_algorithm(provider_policy("DefaultProvider")),
            client=self.client,
            objects=self.objects,
            events=self.events,
            clock=clock,
        )

    async def add(self, *objects: Node | Pod) -> None:
        for one in objects:
            self.objects.put(await self.client.create(one))

    async def next(self) -> None:
        """One attempt on the pod that waits longest, and what follows from it at once."""
        pod = self.scheduler.queue.pop_nowait()
        assert pod is not None
        self.scheduler.schedule_one(pod)
        for _ in range(5):
            await asyncio.sleep(0)

    async def pod(self, name: str) -> Pod:
        return await self.client.get(Pod, "default", name)

    @property
    def notes(self) -> list[tuple[str, str]]:
        return [(event.reason, event.note) for event in self.events.events]


def in_world(work: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World()
        await work(world)
        world.scheduler.stop()

    run_in_virtual_time(run())


def test_a_placed_pod_is_bound_and_gets_an_event() -> None:
    async def work(world: World) -> None:
        await world.add(make_node("n"), make_pod("p"))
        await world.next()
        assert (await world.pod("p")).spec.node_name == "n"
        assert world.notes == [("Scheduled", "Successfully assigned p to n")]
        assert world.scheduler.is_settled

    in_world(work)


def test_a_refused_binding_is_undone_and_tried_again_after_a_second() -> None:
    async def work(world: World) -> None:
        world.client.refuses = True
        await world.add(make_node("n"), make_pod("p"))
        await world.next()
        assert world.notes == [("FailedScheduling", "Binding rejected: not now")]
        condition = first_condition((await world.pod("p")).status.conditions, "PodScheduled")
        assert condition is not None
        assert (condition.reason, condition.message) == ("BindingRejected", "")
        assert world.scheduler.cache.statistics().pods == 0
        world.client.refuses = False
        await asyncio.sleep(0.9)
        assert len(world.scheduler.queue) == 0
        await asyncio.sleep(0.2)
        await world.next()
        assert (await world.pod("p")).spec.node_name == "n"

    in_world(work)


@pytest.mark.parametrize("is_refused", [False, True], ids=["written", "refused"])
def test_a_binding_waits_for_the_condition_of_the_attempt_before(is_refused: bool) -> None:
    async def work(world: World) -> None:
        world.client.status_delay_s = 10
        world.client.refuses_status = is_refused
        await world.add(make_pod("p"))
        await world.next()  # There is no node; the condition reaches the server at 10 s.
        await world.add(make_node("n"))
        await asyncio.sleep(2)
        await world.next()
        assert not (await world.pod("p")).spec.node_name
        await world.add(make_pod("q"))
        await world.next()
        assert (await world.pod("q")).spec.node_name == "n"  # Other pods do not wait for it.
        await asyncio.sleep(60)
        pod = await world.pod("p")
        condition = first_condition(pod.status.conditions, "PodScheduled")
        assert pod.spec.node_name == "n"
        assert condition is not None
        assert condition.status == "True"
        assert world.scheduler.is_settled

    in_world(work)


def test_a_pod_that_fits_nowhere_waits_twice_as_long_each_time() -> None:
    async def work(world: World) -> None:
        await world.add(make_node("n", cpu="1"), make_pod("p", cpu="2"))
        for wait_s in (1, 2, 4):
            await world.next()
            await asyncio.sleep(wait_s - 0.1)
            assert len(world.scheduler.queue) == 0
            await asyncio.sleep(0.2)
            assert len(world.scheduler.queue) == 1
        text = "0/1 nodes are available: 1 Insufficient cpu."
        assert world.notes == [("FailedScheduling", text)] * 3

    in_world(work)


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    async def work(world: World) -> None:
        await world.add(make_node("n"))
        pod = make_pod("p")
        deleted = datetime(2026, 1, 1, tzinfo=UTC)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=deleted)
        world.objects.put(msgspec.structs.replace(pod, metadata=metadata))
        await world.next()
        assert world.notes == [("FailedScheduling", "skip schedule deleting pod: default/p")]

    in_world(work)


def test_an_assumed_pod_expires_half_a_minute_after_its_binding() -> None:
    async def work(world: World) -> None:
        await world.add(make_node("n"), make_pod("p"))
        await world.next()
        # No event confirms the binding.
        assert world.scheduler.cache.statistics().pods == 1
        await asyncio.sleep(31)
        await world.add(make_pod("q"))
        await world.next()
        assert world.scheduler.cache.statistics().pods == 1

    in_world(work)


def test_a_pod_that_was_bound_by_others_leaves_the_queue() -> None:
    async def work(world: World) -> None:
        await world.add(make_node("n"), make_pod("p", uid="u"))
        world.objects.put(make_pod("p", uid="u", node="n"))
        assert len(world.scheduler.queue) == 0
        assert world.scheduler.cache.statistics().pods == 1
        world.objects.pods.remove("default", "p")
        assert world.scheduler.cache.statistics().pods == 0

    in_world(work)


def test_a_fault_in_a_rule_fails_one_attempt() -> None:
    async def work(world: World) -> None:
        await world.add(make_node("n1"), make_pod("a"))

        def broken(pod: object) -> DecisionV19:
            raise ValueError("a bug")

        decide, world.scheduler.decider.decide = world.scheduler.decider.decide, broken
        await world.next()
        assert ("FailedScheduling", "ValueError: a bug") in world.notes
        world.scheduler.decider.decide = decide
        await world.add(make_pod("b"))
        await world.next()
        assert (await world.pod("b")).spec.node_name == "n1"

    in_world(work)


def test_a_pod_made_again_under_its_name_is_another_pod() -> None:
    """The watch was away while the pod was deleted and created again."""

    async def work(world: World) -> None:
        await world.add(make_node("n1"), make_pod("a", uid="u1", node="n1"))
        world.objects.pods.put(make_pod("a", uid="u2"))
        assert [pod.metadata.uid for pod in world.scheduler.queue.pods()] == ["u2"]
        assert not world.scheduler.cache.nodes["n1"].pods

    in_world(work)


class PatientExtender:
    """Its answer comes from the event loop, so a cycle that blocked the loop would never end."""

    name, weight = "patient", 1
    is_ignorable = has_prioritize_verb = has_bind_verb = False
    has_filter_verb = True

    def __init__(self, cycles: WaitingCycles) -> None:
        self._cycles = cycles
        self._loop = asyncio.get_running_loop()

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer:
        answer: Future[FilterAnswer] = Future()
        names = [nodes[0].metadata.name]
        self._loop.call_soon_threadsafe(
            answer.set_result, FilterAnswer(names, failed={"n2": "taken"})
        )
        return self._cycles.wait(answer)


class NotingClient(MemoryClient):
    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(cluster)
        self.is_bound = asyncio.Event()

    async def bind(self, pod: Pod, node_name: str) -> None:
        await super().bind(pod, node_name)
        self.is_bound.set()


def test_the_loop_goes_on_while_a_cycle_waits_for_extenders() -> None:
    async def run() -> None:
        clock, cycles, objects = SystemClock(), WaitingCycles(), ClusterObjects()
        cluster = MemoryCluster(clock, admission=False)
        client = NotingClient(cluster)
        extender = PatientExtender(cycles)
        scheduler = SchedulerV19(
            build_algorithm(provider_policy("DefaultProvider")),
            client=client,
            objects=objects,
            events=RecordedEvents(),
            clock=clock,
            extenders=ExtendersV19([cast(Extender, extender)], wait=cycles.wait),
            cycles=cycles,
        )
        for one in (make_node("n1"), make_node("n2"), make_pod("a")):
            objects.put(await client.create(one))
        running = asyncio.create_task(scheduler.run())
        async with asyncio.timeout(300):
            await client.is_bound.wait()
        assert (await client.get(Pod, "default", "a")).spec.node_name
        scheduler.stop()
        await running

    asyncio.run(run())
