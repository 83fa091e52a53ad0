"""Informers: the store first, then the handlers, in order, and nothing lost."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.informer import (
    OBJECTS_PER_TURN,
    POD_FIELD_SELECTOR,
    TURN_S,
    Handler,
    Informer,
)
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError, GoneError, NotFoundError, UnreachableError
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


class Recorder:
    """A handler that records its calls, and the content of the store at that time."""

    def __init__(self, store: ObjectStore[Pod]) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._store = store

    def handler(self) -> Handler[Pod]:
        return Handler(self._add, self._update, self._delete)

    def taken(self) -> list[tuple[Any, ...]]:
        calls, self.calls = self.calls, []
        return calls

    def _add(self, pod: Pod) -> None:
        assert self._store.get("default", pod.metadata.name) is pod
        self.calls.append(("add", pod.metadata.name))

    def _update(self, old: Pod, new: Pod) -> None:
        assert self._store.get("default", new.metadata.name) is new
        versions = old.metadata.resource_version, new.metadata.resource_version
        self.calls.append(("update", new.metadata.name, *versions))

    def _delete(self, pod: Pod, is_final_state_unknown: bool) -> None:
        assert self._store.get("default", pod.metadata.name) is None
        self.calls.append(("delete", pod.metadata.name, is_final_state_unknown))


class Rig:
    """An informer of pods on a cluster, with a record of its delays."""

    def __init__(
        self,
        cluster: MemoryCluster,
        clock: ManualClock,
        client: Any = None,
        gate: asyncio.Event | None = None,
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.store = ObjectStore[Pod]()
        self.delays: list[float] = []
        self.informer = Informer(
            MemoryClient(cluster) if client is None else client,
            Pod,
            self.store,
            clock,
            rng=np.random.default_rng(0),
            field_selector=POD_FIELD_SELECTOR,
            gate=gate,
            sleep=self._sleep,
        )
        self.recorder = Recorder(self.store)
        self.informer.add_handler(self.recorder.handler())

    async def _sleep(self, delay_s: float) -> None:
        self.delays.append(delay_s)
        await asyncio.sleep(0)


@pytest.fixture
def rig(cluster: MemoryCluster, clock: ManualClock) -> Rig:
    return Rig(cluster, clock)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def with_running(rig: Rig, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the body beside the running informer."""

    async def main() -> None:
        task = asyncio.create_task(rig.informer.run())
        await rig.informer.wait_synced()
        try:
            await body()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_it_lists_then_follows(rig: Rig, pod_document: Build):
    cluster = rig.cluster
    cluster.create(PODS, pod_document("a"))

    async def body() -> None:
        assert rig.informer.has_synced
        assert rig.recorder.taken() == [("add", "a")]
        cluster.create(PODS, pod_document("b"))
        cluster.bind("default", "a", "n1")
        cluster.delete(PODS, "default", "b")
        await settle()
        assert rig.recorder.taken() == [
            ("add", "b"),
            ("update", "a", "1", "3"),
            ("delete", "b", False),
        ]
        assert [pod.spec.node_name for pod in rig.store.list()] == ["n1"]

    with_running(rig, body)
    assert rig.informer.statistics().event_count == 3
    assert rig.informer.statistics().list_count == 1
    # The watch is closed.
    assert cluster.statistics().watch_count == 0


def test_the_loop_runs_while_a_long_list_is_handled(rig: Rig, pod_document: Build):
    count = 3 * OBJECTS_PER_TURN
    for index in range(count):
        rig.cluster.create(PODS, pod_document(f"p{index}"))

    async def main() -> None:
        task = asyncio.create_task(rig.informer.run())
        seen = [0]
        while not rig.informer.has_synced:
            await asyncio.sleep(0)
            seen.append(len(rig.recorder.calls))
        assert seen[-1] == count
        assert max(after - before for before, after in itertools.pairwise(seen)) == OBJECTS_PER_TURN
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_a_burst_is_handled_in_one_turn(rig: Rig, pod_document: Build):
    async def body() -> None:
        await settle()
        for index in range(100):
            rig.cluster.create(PODS, pod_document(f"p{index}"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(rig.recorder.calls) == 100

    with_running(rig, body)


def test_the_loop_has_its_turn_between_events_that_take_long(rig: Rig, pod_document: Build):
    async def body() -> None:
        await settle()
        handled: list[int] = []

        def handle(pod: Pod) -> None:
            handled.append(turns)
            rig.clock.advance_s(TURN_S)

        rig.informer._handlers.append(Handler(on_add=handle))
        turns = 0
        for index in range(6):
            rig.cluster.create(PODS, pod_document(f"p{index}"))
        while len(handled) < 6:
            await asyncio.sleep(0)
            turns += 1
        assert max(handled.count(turn) for turn in set(handled)) == 2

    with_running(rig, body)


def test_a_pod_that_ends_is_deleted_and_one_that_has_ended_never_comes(
    rig: Rig, pod_document: Build
):
    rig.cluster.create(PODS, pod_document("done", status={"phase": "Failed"}))
    rig.cluster.create(PODS, pod_document("a", nodeName="n1", status={"phase": "Running"}))

    async def body() -> None:
        patch = {"status": {"phase": "Succeeded"}}
        rig.cluster.patch(PODS, "default", "a", patch, subresource="status")
        await settle()
        assert rig.recorder.taken() == [("add", "a"), ("delete", "a", False)]

    with_running(rig, body)


def test_after_a_gap_it_lists_again_and_reports_deletions(clock: ManualClock, pod_document: Build):
    rig = Rig(MemoryCluster(clock, history_max=2), clock)
    cluster = rig.cluster
    for name in "abc":
        cluster.create(PODS, pod_document(name))

    async def body() -> None:
        await settle()
        rig.recorder.taken()
        # The connection breaks, and more changes happen than the server keeps.
        clock.advance_s(60)
        rig.cluster.close_watches()
        cluster.delete(PODS, "default", "a")
        cluster.bind("default", "b", "n1")
        cluster.create(PODS, pod_document("d"))
        await settle()
        assert rig.recorder.taken() == [
            ("delete", "a", True),
            ("update", "b", "2", "5"),
            ("add", "d"),
        ]
        assert len(rig.delays) == 1
        assert 0.8 <= rig.delays[0] < 1.6
        assert rig.informer.statistics().list_count == 2
        cluster.create(PODS, pod_document("e"))
        await settle()
        assert rig.recorder.taken() == [("add", "e")]

    with_running(rig, body)


def test_a_watch_that_ends_in_time_is_continued_without_a_list(
    rig: Rig, clock: ManualClock, pod_document: Build
):
    async def body() -> None:
        await settle()
        clock.advance_s(300)
        rig.cluster.close_watches()
        rig.cluster.create(PODS, pod_document("a"))
        await settle()
        assert rig.recorder.taken() == [("add", "a")]
        assert rig.informer.statistics().list_count == 1
        assert rig.delays == []

    with_running(rig, body)


def test_a_watch_that_ends_at_once_counts_as_an_error(rig: Rig):
    async def body() -> None:
        await settle()
        rig.cluster.close_watches()
        await settle()
        assert len(rig.delays) == 1
        assert rig.informer.statistics().list_count == 2

    with_running(rig, body)


@pytest.mark.parametrize(
    ("error", "list_count"),
    [
        pytest.param(ApiError("busy", code=429), 1, id="busy"),
        pytest.param(UnreachableError("refused", cause="refused"), 1, id="refused"),
        pytest.param(UnreachableError("reset", cause="broken off"), 2, id="broken-off"),
        pytest.param(ApiError("broken"), 2, id="broken"),
    ],
)
def test_a_watch_that_cannot_be_opened_is_tried_again_or_ends_in_a_list(
    cluster: MemoryCluster,
    clock: ManualClock,
    pod_document: Build,
    error: ApiError,
    list_count: int,
):
    class Busy(MemoryClient):
        is_busy = True

        async def watch(self, *args: Any, **options: Any) -> Any:
            if self.is_busy:
                self.is_busy = False
                raise error
            return await super().watch(*args, **options)

    rig = Rig(cluster, clock, Busy(cluster))

    async def body() -> None:
        await settle()
        clock.advance_s(300)
        cluster.close_watches()
        cluster.create(PODS, pod_document("a"))
        await settle()
        assert rig.recorder.taken() == [("add", "a")]
        assert len(rig.delays) == 1
        assert rig.informer.statistics().list_count == list_count

    with_running(rig, body)


def test_a_failed_list_is_repeated(cluster: MemoryCluster, clock: ManualClock, pod_document: Build):
    class Failing(MemoryClient):
        failures = 3

        async def list_and_watch(self, *args: Any, **options: Any) -> Any:
            if self.failures:
                self.failures -= 1
                raise ApiError("etcdserver: request timed out", code=500)
            return await super().list_and_watch(*args, **options)

    rig = Rig(cluster, clock, Failing(cluster))
    cluster.create(PODS, pod_document("a"))

    async def body() -> None:
        assert rig.recorder.taken() == [("add", "a")]
        assert [
            base_s <= delay_s < 2 * base_s
            for base_s, delay_s in zip((0.8, 1.6, 3.2), rig.delays, strict=True)
        ] == [True] * 3

    with_running(rig, body)


class BreakingWatch:
    """Ends with an error after 15 s."""

    is_closed = False

    async def next_batch(self) -> Any:
        await asyncio.sleep(15)
        raise GoneError("too old resource version")

    def close(self) -> None: ...


def test_while_watches_keep_breaking_delays_are_short_again_every_two_minutes(
    cluster: MemoryCluster,
):
    class Breaking(MemoryClient):
        async def list_and_watch(self, *args: Any, **options: Any) -> Any:
            listing = await super().list_and_watch(*args, **options)
            listing.watch.close()
            return listing._replace(watch=BreakingWatch())

    delays: list[tuple[float, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def sleep(delay_s: float) -> None:
            delays.append((loop.time(), delay_s))
            await asyncio.sleep(delay_s)

        informer = Informer(
            Breaking(cluster),
            Pod,
            ObjectStore[Pod](),
            VirtualClock(loop),
            rng=np.random.default_rng(0),
            sleep=sleep,
        )
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(900)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())
    short = [at_s for at_s, delay_s in delays if delay_s < 1.6]
    # The first failure more than two minutes after the last reset: a watch and a delay later.
    assert len(short) == 6
    assert all(120 < after - before < 200 for before, after in itertools.pairwise([0, *short[1:]]))


def test_events_wait_at_the_gate(
    cluster: MemoryCluster, clock: ManualClock, pod_document: Build
) -> None:
    gate = asyncio.Event()
    rig = Rig(cluster, clock, gate=gate)
    cluster.load([pod_document("a")])

    async def main() -> None:
        task = asyncio.create_task(rig.informer.run())
        await settle()
        assert rig.recorder.taken() == []
        gate.set()
        await rig.informer.wait_synced()
        assert rig.recorder.taken() == [("add", "a")]
        gate.clear()
        cluster.load([pod_document("b")])
        await settle()
        assert rig.recorder.taken() == []
        # The next cycle begins before the informer has had its turn.
        gate.set()
        gate.clear()
        await settle()
        assert rig.recorder.taken() == []
        gate.set()
        await settle()
        assert rig.recorder.taken() == [("add", "b")]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


class Unserved(MemoryClient):
    """A server that does not have the kind, or allows no list of it."""

    def __init__(self, cluster: MemoryCluster, error: ApiError) -> None:
        super().__init__(cluster)
        self.error: ApiError | None = error
        self.has_kind = False

    async def is_served(self, cls: type[ApiObject]) -> bool:
        return self.has_kind

    async def list_and_watch(self, *args: Any, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        return await super().list_and_watch(*args, **options)


NOT_SERVED = NotFoundError("the server could not find the requested resource")
FORBIDDEN = ApiError("no", code=403, reason="Forbidden")


@pytest.mark.parametrize("error", [NOT_SERVED, FORBIDDEN], ids=["404", "403"])
def test_a_kind_that_is_not_served_is_empty_until_it_is(
    cluster: MemoryCluster, clock: ManualClock, pod_document: Build, error: ApiError
):
    client = Unserved(cluster, error)
    rig = Rig(cluster, clock, client)
    cluster.create(PODS, pod_document("a"))

    async def body() -> None:
        # It has synced, or this would not run.
        assert rig.recorder.taken() == []
        await settle()
        assert set(rig.delays) == {300.0}
        client.has_kind, client.error = True, None
        await settle()
        assert rig.recorder.taken() == [("add", "a")]

    with_running(rig, body)


@pytest.mark.parametrize("error", [NOT_SERVED, FORBIDDEN], ids=["404", "403"])
def test_a_kind_that_is_served_is_waited_for(
    cluster: MemoryCluster, clock: ManualClock, error: ApiError
):
    client = Unserved(cluster, error)
    client.has_kind = True
    rig = Rig(cluster, clock, client)

    async def main() -> None:
        task = asyncio.create_task(rig.informer.run())
        await settle()
        assert not rig.informer.has_synced
        assert rig.delays[0] < 1.6
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_objects_stay_when_a_server_no_longer_has_their_kind(
    cluster: MemoryCluster, clock: ManualClock, pod_document: Build
):
    client = Unserved(cluster, NOT_SERVED)
    client.error = None
    rig = Rig(cluster, clock, client)
    cluster.create(PODS, pod_document("a"))

    async def body() -> None:
        client.error = NOT_SERVED
        cluster.close_watches()
        await settle()
        assert rig.recorder.taken() == [("add", "a")]
        assert rig.store.get("default", "a") is not None
        assert 300.0 not in rig.delays

    with_running(rig, body)


def test_an_exception_of_a_handler_ends_the_informer(rig: Rig, pod_document: Build):
    def fail(_pod: Pod) -> None:
        raise ZeroDivisionError

    rig.informer.add_handler(Handler(on_add=fail))
    rig.cluster.create(PODS, pod_document("a"))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(rig.informer.run())
