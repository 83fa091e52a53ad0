"""The life of a scheduler process, in virtual time against a cluster in memory (spec 09 §5, §6.4,
§11)."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import numpy as np
import pytest

from kubestow.api.coordination import Lease
from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock, SystemClock
from kubestow.cluster.client import Listing, ObjectWatch
from kubestow.errors import (
    ApiError,
    CacheCorruptedError,
    ConfigError,
    GoneError,
    NotFoundError,
)
from kubestow.explain import evidence
from kubestow.framework.node_plugin import NodeFilter
from kubestow.service.connections import Connections
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import DRAIN_S, RunError, SchedulerProcess, first_error
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

Running = asyncio.Task[int]


class Client(MemoryClient):
    """A client whose bindings take a while, and whose server can be taken away."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(cluster)
        self.bind_s = 0.0
        self.is_down = False
        self.lists_pods = True
        self.pod_watches: list[ObjectWatch[Any]] = []
        self.documents: list[JsonObject] = []

    async def bind(self, pod: Pod, node_name: str) -> None:
        await asyncio.sleep(self.bind_s)
        await super().bind(pod, node_name)

    async def get(self, cls: Any, namespace: str, name: str) -> Any:
        self._require_server()
        return await super().get(cls, namespace, name)

    async def update(self, old: Any, new: Any, *, subresource: Any = "") -> Any:
        self._require_server()
        return await super().update(old, new, subresource=subresource)

    async def list_and_watch(self, cls: Any, **options: Any) -> Listing[Any]:
        if cls is not Pod:
            return await super().list_and_watch(cls, **options)
        if not self.lists_pods:
            raise ApiError("pods are not listed now")
        listing = await super().list_and_watch(cls, **options)
        self.pod_watches.append(listing.watch)
        return listing

    async def watch(self, cls: Any, **options: Any) -> ObjectWatch[Any]:
        if cls is Pod and not self.lists_pods:
            raise GoneError("too old resource version")
        return await super().watch(cls, **options)

    def lose_pods(self) -> None:
        """The watches of pods end, and cannot be resumed."""
        self.lists_pods = False
        for watch in self.pod_watches:
            watch.close()

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        self.documents.append(document)
        return document

    async def get_document(self, path: str) -> JsonObject:
        raise NotFoundError("not there")

    def _require_server(self) -> None:
        if self.is_down:
            raise ApiError("the server is on holiday")


class World:
    def __init__(self, log: pytest.LogCaptureFixture, folder: Path) -> None:
        self.log = log
        self.folder = folder
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.store = MemoryCluster(self.clock)
        self.store.load([node("n1")])

    def config(self, plugin: type[NodeFilter]) -> Path:
        """A configuration with this plugin."""
        path = self.folder / "config.yaml"
        path.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: '{plugin.__module__}:"
            f"{plugin.__name__}'}}]}}}}}}]\n"
        )
        return path

    def process(
        self, *flags: str, hostname: str = "host", clock: Clock | None = None
    ) -> tuple[SchedulerProcess, Client]:
        options = parse_options(["--secure-port=0", *flags])
        assert isinstance(options, SchedulerOptions)
        client = Client(self.store)
        rng = np.random.default_rng(sum(hostname.encode()))
        process = SchedulerProcess(
            options,
            Connections(main=client, events=client, election=client, lease_events=client),
            ProcessMetrics(options, self.clock, rng),
            clock or self.clock,
            rng,
            hostname=hostname,
        )
        return process, client

    async def leader(self, *, bind_s: float = 0) -> tuple[SchedulerProcess, Client, Running]:
        """A process that leads and has filled its caches; each of its bindings takes that long."""
        process, client = self.process()
        client.bind_s = bind_s
        running = asyncio.create_task(process.run())
        await until(lambda: process.is_active and process.has_synced)
        return process, client, running

    async def leader_of_two(self) -> tuple[SchedulerProcess, Client, Running, SchedulerProcess]:
        """A process on host a that leads, and one on host b that does not run yet."""
        first, client = self.process(hostname="a")
        second, _ = self.process(hostname="b")
        running = asyncio.create_task(first.run())
        await until(lambda: first.is_active)
        return first, client, running, second

    async def node_of(self, name: str) -> str:
        pod = await MemoryClient(self.store).get(Pod, "default", name)
        return pod.spec.node_name

    async def lease(self) -> Lease:
        return await MemoryClient(self.store).get(Lease, "kube-system", "kube-scheduler")


def node(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, *, cpu: str = "0") -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


async def until(condition: Callable[[], bool | Awaitable[bool]], limit_s: float = 120) -> None:
    """Let virtual time pass until the condition holds."""
    for _ in range(int(limit_s * 10)):
        outcome = condition()
        if await outcome if isinstance(outcome, Awaitable) else outcome:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never happened")


def scenario(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[[pytest.LogCaptureFixture, Path], None]:
    def run(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
        caplog.set_level(logging.INFO)
        run_in_virtual_time(_start(test, caplog, tmp_path))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def _start(
    test: Callable[..., Coroutine[Any, Any, None]], caplog: pytest.LogCaptureFixture, folder: Path
) -> None:
    await test(World(caplog, folder))


@scenario
async def test_a_leader_schedules_and_ends_with_0(world: World) -> None:
    process, client, running = await world.leader()
    world.store.load([pod("a")])
    await until(lambda: _is_bound(world, "a"))
    assert (await world.lease()).spec.holder_identity.startswith("host_")
    process.request_stop()
    assert await running == 0
    lease = await world.lease()
    assert lease.spec.holder_identity == ""
    assert lease.spec.lease_duration_seconds == 1
    assert "Requested to terminate, exiting" in world.log.messages
    messages = [document["message"].partition(" ")[2] for document in client.documents]
    assert messages == ["became leader", "stopped leading"]


@contextmanager
def calls_in(folder: Path) -> Iterator[list[str]]:
    """The names of the functions in a folder that are called meanwhile."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).parent == folder:
            called.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)


@scenario
async def test_evidence_is_collected_when_a_pod_is_asked_about(world: World) -> None:
    folder = Path(evidence.__file__).parent
    process, _, running = await world.leader()
    with calls_in(folder) as called:
        world.store.load([pod("huge", cpu="100"), pod("a")])
        await until(lambda: _is_bound(world, "a"))
        await until(lambda: process.history.find("default", "huge") is not None)
        assert called == []
        found = process.running_pod("default", "huge")
        assert found is not None
        assert [each.text for each in found.evidence.reasons.values()] == [
            "needs 100 cpu, 4 of 4 free"
        ]
        assert called
    process.request_stop()
    assert await running == 0


@scenario
async def test_without_election_the_end_is_an_error(world: World) -> None:
    process, _ = world.process("--leader-elect=false")
    running = asyncio.create_task(process.run())
    world.store.load([pod("a")])
    await until(lambda: _is_bound(world, "a"))
    process.request_stop()
    with pytest.raises(RunError, match=r"^finished without leader elect$"):
        await running


@scenario
async def test_a_standby_is_ready_and_takes_over_at_once_when_the_leader_ends(world: World) -> None:
    first, _, running, second = await world.leader_of_two()
    standby = asyncio.create_task(second.run())
    await until(lambda: second.has_synced)
    # So that its first pod need not wait for it.
    await until(lambda: second.scheduler.snapshot.names == ["n1"])
    assert not second.is_active
    first.request_stop()
    assert await running == 0
    started_s = world.clock.monotonic_s()
    await until(lambda: second.is_active)
    assert world.clock.monotonic_s() - started_s < 5  # the next try, not the end of the lease
    world.store.load([pod("a")])
    await until(lambda: _is_bound(world, "a"))
    assert (await world.lease()).spec.lease_transitions == 1
    second.request_stop()
    assert await standby == 0


@scenario
async def test_turns_are_limited_by_time_alone_only_where_time_passes(world: World) -> None:
    assert world.process(clock=SystemClock())[0].scheduler.is_in_real_time
    assert not world.process()[0].scheduler.is_in_real_time


@scenario
async def test_a_standby_takes_over_when_the_leader_is_killed(world: World) -> None:
    _, client, running, second = await world.leader_of_two()
    standby = asyncio.create_task(second.run())
    await until(lambda: second.has_synced)
    client.is_down = True  # others see no renewal any more
    assert await running == 1
    await until(lambda: second.is_active, limit_s=30)
    second.request_stop()
    assert await standby == 0


@scenario
async def test_a_new_leader_places_nothing_before_it_sees_the_pods_of_the_last_one(
    world: World,
) -> None:
    first, binding, running, _ = await world.leader_of_two()
    binding.bind_s = 1.0
    second, client = world.process(hostname="b")
    standby = asyncio.create_task(second.run())
    await until(lambda: second.has_synced)
    # The node has room for one of them. The standby does not see that it is taken.
    world.store.load([pod("early", cpu="3"), pod("late", cpu="3")])
    await asyncio.sleep(0.5)
    client.lose_pods()
    await until(lambda: _is_bound(world, "early"))
    first.request_stop()
    assert await running == 0
    await until(lambda: second.is_active)
    await asyncio.sleep(60)
    assert not await world.node_of("late")
    client.lists_pods = True
    world.store.load([node("n2")])
    await until(lambda: _is_bound(world, "late"))
    assert await world.node_of("late") == "n2"
    second.request_stop()
    assert await standby == 0


@scenario
async def test_a_candidate_that_is_stopped_ends_with_0_and_does_not_change_the_lease(
    world: World,
) -> None:
    first, _, running, second = await world.leader_of_two()
    standby = asyncio.create_task(second.run())
    await asyncio.sleep(1)
    second.request_stop()
    assert await standby == 0
    assert (await world.lease()).spec.holder_identity.startswith("a_")
    first.request_stop()
    await running


@scenario
async def test_losing_the_lease_ends_with_1(world: World) -> None:
    process, client = world.process()
    running = asyncio.create_task(process.run())
    await until(lambda: process.is_active)
    client.is_down = True
    assert await running == 1
    assert "Leaderelection lost" in world.log.messages


@scenario
async def test_bindings_under_way_end_before_the_lease_is_released(world: World) -> None:
    process, _, running = await world.leader(bind_s=2)
    world.store.load([pod("a")])
    await until(lambda: process.scheduler.binder.running_count == 1)
    process.request_stop()
    # A pod that comes now is left to the next leader.
    world.store.load([pod("late")])
    assert await running == 0
    assert await world.node_of("a") == "n1"
    assert await world.node_of("late") == ""
    assert (await world.lease()).spec.holder_identity == ""


@scenario
async def test_a_backlog_is_not_scheduled_after_a_stop(world: World) -> None:
    process, _, running = await world.leader(bind_s=1)
    world.store.load([pod(f"p{index}") for index in range(100)])
    await until(lambda: process.scheduler.binder.running_count > 0)
    process.request_stop()
    assert await running == 0
    bound = [name for name in range(100) if await world.node_of(f"p{name}")]
    assert process.scheduler.cache.statistics().pods == len(bound)


@scenario
async def test_bindings_that_take_too_long_are_cancelled(world: World) -> None:
    process, _, running = await world.leader(bind_s=600)
    world.store.load([pod("a")])
    await until(lambda: process.scheduler.binder.running_count == 1)
    process.request_stop()
    started_s = world.clock.monotonic_s()
    assert await running == 0
    assert world.clock.monotonic_s() - started_s == pytest.approx(DRAIN_S, abs=0.5)
    assert await world.node_of("a") == ""
    assert "some bindings did not end in time and were cancelled" in world.log.messages


@scenario
async def test_a_corrupted_cache_ends_the_process_and_frees_the_lease(world: World) -> None:
    process, _, running = await world.leader()

    def corrupt(*_: object) -> None:
        raise CacheCorruptedError("Scheduler cache is corrupted")

    process.scheduler.cache.add_pod = corrupt
    world.store.load([pod("a")])
    with pytest.raises(CacheCorruptedError):
        await running
    assert (await world.lease()).spec.holder_identity == ""


@scenario
async def test_caches_may_wait_for_leadership(world: World) -> None:
    first, _, running, second = await world.leader_of_two()
    second.config = msgspec.structs.replace(second.config, delay_cache_until_active=True)
    standby = asyncio.create_task(second.run())
    await asyncio.sleep(10)
    assert not second.has_synced
    first.request_stop()
    await running
    await until(lambda: second.has_synced)
    assert "Starting informers and waiting for sync..." in world.log.messages
    second.request_stop()
    assert await standby == 0


@scenario
async def test_stopping_before_the_caches_are_filled_ends_with_0(world: World) -> None:
    process, client = world.process()

    async def never(*_: object, **__: object) -> Any:
        await asyncio.Event().wait()

    client.list_and_watch = never  # type: ignore[method-assign]
    running = asyncio.create_task(process.run())
    await until(lambda: process.is_active)
    assert not process.has_synced
    process.request_stop()
    assert await running == 0
    assert (await world.lease()).spec.holder_identity == ""


@scenario
async def test_an_election_that_cannot_work_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match="leaseDuration must be greater than renewDeadline"):
        world.process("--leader-elect-lease-duration=5s")


class Slow(NodeFilter):
    """Takes long for a pod named "slow"."""

    name = "Slow"

    def filter_node(self, pod: Pod, node: Node) -> bool:
        if pod.metadata.name == "slow":
            asyncio.get_running_loop().advance(12)  # type: ignore[attr-defined]
        return True


@scenario
async def test_a_pod_whose_attempt_takes_too_long_fails_alone(world: World) -> None:
    process, _ = world.process(f"--config={world.config(Slow)}")
    running = asyncio.create_task(process.run())
    await until(lambda: process.is_active and process.has_synced)
    world.store.load([pod("slow"), pod("a")])
    await until(lambda: _is_bound(world, "a"))
    found = await MemoryClient(world.store).get(Pod, "default", "slow")
    (condition,) = found.status.conditions
    assert condition.reason == "SchedulerError"
    assert condition.message == (
        "the attempt took 12.0s, its budget is 10s (--attempt-budget); "
        'the slowest call was Filter of plugin "Slow", 12.0s'
    )
    assert not found.spec.node_name
    process.request_stop()
    assert await running == 0


def test_of_several_errors_the_corrupted_cache_is_reported() -> None:
    corrupted = CacheCorruptedError("x")
    group = ExceptionGroup("a", [ValueError(), ExceptionGroup("b", [corrupted])])
    assert first_error(group) is corrupted
    assert isinstance(first_error(ExceptionGroup("a", [ValueError()])), ValueError)


async def _is_bound(world: World, name: str) -> bool:
    return bool(await world.node_of(name))
