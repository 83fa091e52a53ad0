"""The event recorder: what it writes, and that it never blocks."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.events import GIVE_WAY_S_MAX, EventRecorder, cut_note
from kubestow.cluster.resources import EVENTS, PODS
from kubestow.errors import ApiError, NotFoundError, UnreachableError
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]

SCHEDULED: dict[str, Any] = {
    "reporter": "batch",
    "type": "Normal",
    "reason": "Scheduled",
    "action": "Binding",
    "note": "Successfully assigned default/web-0 to n1",
}


@pytest.fixture
def pod(cluster: MemoryCluster, pod_document: Build) -> ApiObject:
    return cluster.create(PODS, pod_document("web-0")).typed


def stored_events(cluster: MemoryCluster) -> list[Any]:
    return [stored.document for stored in cluster.list(EVENTS).items]


def test_an_event_has_all_its_fields(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    recorder = EventRecorder(client, clock, hostname="cp1")
    recorder.record(pod, **SCHEDULED)
    assert stored_events(cluster) == []
    asyncio.run(recorder.flush())
    (event,) = stored_events(cluster)
    metadata = event.pop("metadata")
    # Example 1 of spec 09 §9.3.
    assert (metadata["namespace"], metadata["name"]) == ("default", "web-0.17979cfe362a0000")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2023-11-14T22:13:20Z",
        "reportingController": "batch",
        "reportingInstance": "batch-cp1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "web-0",
            "uid": pod.metadata.uid,
            "resourceVersion": "1",
        },
        "note": "Successfully assigned default/web-0 to n1",
        "type": "Normal",
    }


def test_events_of_the_same_moment_have_different_names(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    recorder = EventRecorder(client, clock, hostname="h")
    for _ in range(3):
        recorder.record(pod, **SCHEDULED)
    asyncio.run(recorder.flush())
    assert len(stored_events(cluster)) == 3
    assert {event["eventTime"] for event in stored_events(cluster)} == {"2023-11-14T22:13:20Z"}


def test_a_related_object_is_referred_to(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    recorder = EventRecorder(client, clock, hostname="h")
    recorder.record(pod, **SCHEDULED, related=pod)
    asyncio.run(recorder.flush())
    assert stored_events(cluster)[0]["related"]["uid"] == pod.metadata.uid


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="1024-is-short-enough"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="1025-is-cut"),
        pytest.param("x" * 1500, "x" * 1020 + " ...", id="1500-is-cut"),
        pytest.param("ü" * 512, "ü" * 512, id="bytes-not-characters"),
        pytest.param("ü" * 513, "ü" * 510 + " ...", id="cut-between-characters"),
        pytest.param("x" + "ü" * 600, "x" + "ü" * 509 + " ...", id="half-a-character-goes"),
    ],
)
def test_notes_are_cut_to_1024_bytes(note: str, expected: str):
    assert cut_note(note) == expected
    assert len(cut_note(note).encode()) <= 1024


def test_a_full_buffer_drops_the_oldest_and_counts_them(
    cluster: MemoryCluster,
    client: MemoryClient,
    clock: ManualClock,
    pod: ApiObject,
    caplog: pytest.LogCaptureFixture,
):
    recorder = EventRecorder(client, clock, hostname="h", buffer_max=2)
    for index in range(5):
        recorder.record(pod, **{**SCHEDULED, "note": str(index)})
    asyncio.run(recorder.flush())
    assert [event["note"] for event in stored_events(cluster)] == ["3", "4"]
    statistics = recorder.statistics()
    assert (statistics.recorded_count, statistics.dropped_count) == (5, 3)
    assert (statistics.sent_count, statistics.waiting_count) == (2, 0)
    # One line a minute.
    assert caplog.messages == [
        "dropped 1 event(s), the last one Scheduled of default/web-0: 2 are waiting, and the API "
        "server or clientConnection.qps is too slow for them"
    ]
    clock.advance_s(60)
    for _ in range(4):
        recorder.record(pod, **SCHEDULED)
    assert caplog.messages[1].startswith("dropped 3 event(s)")
    assert len(caplog.messages) == 2


class Busy:
    """More urgent requests, which wait for the server until it is told otherwise."""

    def __init__(self) -> None:
        self.is_busy = True
        self.rested_s = 0.0

    def __call__(self) -> bool:
        return self.is_busy

    async def sleep(self, delay_s: float) -> None:
        self.rested_s += delay_s
        await asyncio.sleep(0)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_events_give_way_to_requests_that_wait(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    async def main() -> None:
        busy = Busy()
        recorder = EventRecorder(client, clock, hostname="h", sleep=busy.sleep, is_busy=busy)
        task = asyncio.create_task(recorder.run())
        for index in range(5):
            recorder.record(pod, **{**SCHEDULED, "note": str(index)})
        await turns()
        assert stored_events(cluster) == []
        busy.is_busy = False
        await turns()
        assert [event["note"] for event in stored_events(cluster)] == list("01234")
        # A sender that is at work stops as well.
        busy.is_busy = True
        recorder.record(pod, **SCHEDULED)
        await turns()
        assert len(stored_events(cluster)) == 5
        # What is left is written at the end.
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await recorder.flush()
        assert len(stored_events(cluster)) == 6

    asyncio.run(main())


class Throttled(MemoryClient):
    """Its first requests wait for the rate limit; that of one has reached the server before."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(cluster)
        self.is_limited = True

    async def create_event(self, event: Any) -> None:
        if self.is_limited and event.note != "0":
            await asyncio.Event().wait()
        await super().create_event(event)
        if self.is_limited:
            await asyncio.Event().wait()


def test_events_that_were_being_sent_at_the_end_are_not_lost(
    cluster: MemoryCluster, clock: ManualClock, pod: ApiObject
):
    async def main() -> None:
        client = Throttled(cluster)
        recorder = EventRecorder(client, clock, hostname="h", senders_max=3)
        for index in range(5):
            recorder.record(pod, **{**SCHEDULED, "note": str(index)})
        task = asyncio.create_task(recorder.run())
        for _ in range(5):
            await asyncio.sleep(0)
        assert recorder.statistics().waiting_count == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert recorder.statistics().waiting_count == 5
        client.is_limited = False
        await recorder.flush()
        assert {event["note"] for event in stored_events(cluster)} == set("01234")
        assert len(stored_events(cluster)) == 5
        assert (recorder.statistics().sent_count, recorder.statistics().waiting_count) == (5, 0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("late_s", "more"), [(GIVE_WAY_S_MAX + 1, 0), (0, 4)], ids=["late", "full"]
)
def test_events_give_way_neither_for_long_nor_until_they_are_dropped(
    cluster: MemoryCluster,
    client: MemoryClient,
    clock: ManualClock,
    pod: ApiObject,
    late_s: float,
    more: int,
):
    async def main() -> None:
        busy = Busy()
        recorder = EventRecorder(
            client, clock, hostname="h", sleep=busy.sleep, is_busy=busy, buffer_max=8
        )
        task = asyncio.create_task(recorder.run())
        for index in range(1 + more):
            recorder.record(pod, **{**SCHEDULED, "note": str(index)})
        await turns()
        clock.advance_s(late_s)
        await turns()
        assert len(stored_events(cluster)) == 1
        assert recorder.statistics().dropped_count == 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_the_running_recorder_sends_as_events_come(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    async def main() -> None:
        recorder = EventRecorder(client, clock, hostname="h")
        task = asyncio.create_task(recorder.run())
        for expected in (1, 2):
            recorder.record(pod, **SCHEDULED)
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(stored_events(cluster)) == expected
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_a_refused_event_is_counted_and_the_next_one_sent(
    cluster: MemoryCluster, clock: ManualClock, pod: ApiObject
):
    class Refusing(MemoryClient):
        async def create_event(self, event: Event) -> None:
            if event.note == "bad":
                raise ApiError("no", code=403, reason="Forbidden")
            await super().create_event(event)

    recorder = EventRecorder(Refusing(cluster), clock, hostname="h")
    recorder.record(pod, **{**SCHEDULED, "note": "bad"})
    recorder.record(pod, **SCHEDULED)
    asyncio.run(recorder.flush())
    assert len(stored_events(cluster)) == 1
    statistics = recorder.statistics()
    assert (statistics.failed_count, statistics.sent_count) == (1, 1)


def test_a_name_that_would_be_too_long_is_replaced(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod_document: Build
):
    pod = cluster.create(PODS, pod_document("x" * 250)).typed
    recorder = EventRecorder(client, clock, hostname="h")
    recorder.record(pod, **SCHEDULED)
    asyncio.run(recorder.flush())
    (event,) = stored_events(cluster)
    assert len(event["metadata"]["name"]) == 36


# --- Series (spec 09 §9.3) --------------------------------------------------------------------

FAILED: dict[str, Any] = {
    "reporter": "default-scheduler",
    "type": "Warning",
    "reason": "FailedScheduling",
    "action": "Scheduling",
    "note": "0/1 nodes are available: 1 Insufficient cpu.",
}


FORGOTTEN = NotFoundError("events are kept for an hour")


class Scripted(MemoryClient):
    """Records what is written, after a function of the test."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(cluster)
        self.cluster = cluster
        self.written: list[tuple[str, Any]] = []
        self.failures: list[Exception | None] = []

    async def create_event(self, event: Event) -> None:
        count = event.series.count if event.series is not None else 1
        self._write("create", count)
        await super().create_event(event)

    async def patch(self, cls: Any, namespace: str, name: str, patch: Any, *rest: Any, **more: Any):
        self._write("patch", patch["series"]["count"])
        return await super().patch(cls, namespace, name, patch, *rest, **more)

    def _write(self, what: str, count: int) -> None:
        self.written.append((what, count))
        failure = self.failures.pop(0) if self.failures else None
        if failure is FORGOTTEN:
            for event in stored_events(self.cluster):
                self.cluster.delete(EVENTS, "default", event["metadata"]["name"])
        if failure is not None:
            raise failure


def test_examples_2_and_3_only_the_same_version_of_a_pod_makes_a_series(
    cluster: MemoryCluster, clock: ManualClock, pod: ApiObject
):
    client = Scripted(cluster)
    recorder = EventRecorder(client, clock, hostname="h")

    def fail(pod: ApiObject, note: str = "no") -> None:
        clock.advance_s(1)
        recorder.record(pod, **{**FAILED, "note": note})
        asyncio.run(recorder.flush())

    fail(pod)
    patch = {"metadata": {"annotations": {"x": "y"}}}
    newer = cluster.patch(PODS, "default", "web-0", patch).typed
    fail(newer)
    fail(newer, note="the note of the first stays")
    fail(newer)
    assert client.written == [("create", 1), ("create", 1), ("patch", 2)]
    first, second = stored_events(cluster)
    assert "series" not in first
    assert second["series"] == {"count": 2, "lastObservedTime": "2023-11-14T22:13:23.000000Z"}
    assert second["note"] == "no"
    assert recorder.statistics().series_count == 2


def test_bindings_are_not_kept_as_series(
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    recorder = EventRecorder(client, clock, hostname="h")
    recorder.record(pod, **SCHEDULED)
    asyncio.run(recorder.flush())
    assert recorder.statistics().series_count == 0


@pytest.mark.parametrize(
    ("failures", "written", "failed_count"),
    [
        pytest.param(
            [None, FORGOTTEN],
            [("create", 1), ("patch", 2), ("create", 2)],
            0,
            id="the-server-forgot-the-event",
        ),
        pytest.param(
            [ApiError("no", code=403), NotFoundError("never was")],
            [("create", 1), ("patch", 2), ("create", 2)],
            1,
            id="the-server-never-took-it",
        ),
        pytest.param(
            [None, NotFoundError("not there yet")],
            [("create", 1), ("patch", 2), ("create", 2), ("patch", 2)],
            0,
            id="it-exists-after-all",
        ),
        pytest.param(
            [None, ApiError("no", code=422)], [("create", 1), ("patch", 2)], 1, id="refused"
        ),
        pytest.param(
            [UnreachableError("lost"), UnreachableError("lost")],
            [("create", 1), ("create", 1), ("create", 1), ("patch", 2)],
            0,
            id="no-answer-at-first",
        ),
    ],
)
def test_a_series_whose_writes_fail(
    clock: ManualClock,
    pod_document: Build,
    failures: list[Exception | None],
    written: list[tuple[str, int]],
    failed_count: int,
):
    cluster = MemoryCluster(clock)
    pod = cluster.create(PODS, pod_document("web-0")).typed
    client = Scripted(cluster)
    client.failures = list(failures)
    delays: list[float] = []

    async def sleep(delay_s: float) -> None:
        delays.append(delay_s)
        if delay_s >= 60:
            await asyncio.Event().wait()  # the series does not end in this test

    async def main() -> None:
        recorder = EventRecorder(client, clock, hostname="h", sleep=sleep)
        task = asyncio.create_task(recorder.run())
        for _ in range(2):
            recorder.record(pod, **FAILED)
            for _ in range(10):
                await asyncio.sleep(0)
        assert recorder.statistics().failed_count == failed_count
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert client.written == written
    assert all(10.0 <= delay_s <= 12.5 for delay_s in delays if delay_s < 60)


def test_an_event_is_sent_twelve_times_at_most(cluster: MemoryCluster, pod: ApiObject):
    client = Scripted(cluster)
    client.failures = [UnreachableError("silence")] * 100

    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        recorder = EventRecorder(client, clock, hostname="h")
        task = asyncio.create_task(recorder.run())
        recorder.record(pod, **FAILED)
        await asyncio.sleep(200)
        assert len(client.written) == 12
        assert recorder.statistics().failed_count == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())


def test_flushing_does_not_wait_for_a_server_that_is_gone(
    cluster: MemoryCluster, clock: ManualClock, pod: ApiObject
):
    client = Scripted(cluster)
    client.failures = [UnreachableError("silence")] * 2
    recorder = EventRecorder(client, clock, hostname="h")
    recorder.record(pod, **SCHEDULED)
    recorder.record(pod, **FAILED)
    asyncio.run(recorder.flush())
    assert client.written == [("create", 1), ("create", 1)]


def test_a_series_is_written_from_time_to_time_and_when_it_is_over(
    cluster: MemoryCluster, pod: ApiObject, pod_document: Build
):
    client = Scripted(cluster)
    other = cluster.create(PODS, pod_document("other")).typed

    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        recorder = EventRecorder(client, clock, hostname="h")
        task = asyncio.create_task(recorder.run())
        recorder.record(other, **FAILED)
        for _ in range(40):  # once a minute
            recorder.record(pod, **FAILED)
            await asyncio.sleep(60)
        # The refresh after half an hour; the single event was removed long before.
        assert client.written == [("create", 1), ("create", 1), ("patch", 2), ("patch", 30)]
        assert recorder.statistics().series_count == 1
        await asyncio.sleep(12 * 60)
        assert client.written[4:] == [("patch", 40)]
        assert recorder.statistics().series_count == 0
        # A new series begins.
        recorder.record(pod, **FAILED)
        await asyncio.sleep(1)
        assert client.written[5:] == [("create", 1)]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())


class SlowServer(Scripted):
    """Takes a while for each event, of which it has several at a time."""

    def __init__(self, cluster: MemoryCluster, delay_s: float) -> None:
        super().__init__(cluster)
        self.under_way = 0
        self.most = 0
        self._delay_s = delay_s

    async def create_event(self, event: Event) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(self._delay_s)
        self.under_way -= 1
        await super().create_event(event)


def test_a_burst_is_sent_in_full_as_fast_as_connections_allow(
    cluster: MemoryCluster, pod: ApiObject
):
    client = SlowServer(cluster, 0.02)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        recorder = EventRecorder(client, VirtualClock(loop), hostname="h")
        task = asyncio.create_task(recorder.run())
        for _ in range(3200):
            recorder.record(pod, **SCHEDULED)
        # 32 at a time: a hundred rounds.
        await asyncio.sleep(100 * 0.02 + 0.001)
        statistics = recorder.statistics()
        assert (statistics.sent_count, statistics.dropped_count) == (3200, 0)
        assert client.most == 32
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())
    assert len(stored_events(cluster)) == 3200


def test_events_that_wait_to_be_sent_again_delay_no_others(cluster: MemoryCluster, pod: ApiObject):
    client = Scripted(cluster)
    client.failures = [UnreachableError("broken off")] * 100

    async def main() -> None:
        loop = asyncio.get_running_loop()
        recorder = EventRecorder(client, VirtualClock(loop), hostname="h")
        task = asyncio.create_task(recorder.run())
        for _ in range(150):
            recorder.record(pod, **SCHEDULED)
        await asyncio.sleep(1)
        statistics = recorder.statistics()
        assert (statistics.sent_count, statistics.waiting_count) == (50, 100)
        await asyncio.sleep(15)
        statistics = recorder.statistics()
        assert (statistics.sent_count, statistics.waiting_count) == (150, 0)
        recorder.record(pod, **SCHEDULED)
        await asyncio.sleep(1)
        assert recorder.statistics().sent_count == 151
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())


def test_an_event_accepted_before_the_connection_broke_is_no_failure(
    cluster: MemoryCluster, pod: ApiObject, caplog: pytest.LogCaptureFixture
):
    class LosesAnswers(MemoryClient):
        calls = 0

        async def create_event(self, event: Event) -> None:
            self.calls += 1
            await super().create_event(event)
            raise UnreachableError("broken off")

    client = LosesAnswers(cluster)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        recorder = EventRecorder(client, VirtualClock(loop), hostname="h")
        task = asyncio.create_task(recorder.run())
        recorder.record(pod, **SCHEDULED)
        await asyncio.sleep(60)
        statistics = recorder.statistics()
        assert (statistics.sent_count, statistics.failed_count) == (1, 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())
    assert client.calls == 2
    assert len(stored_events(cluster)) == 1
    assert caplog.messages == []


def test_repetitions_wait_for_the_first(cluster: MemoryCluster, pod: ApiObject):
    client = SlowServer(cluster, 1.0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        recorder = EventRecorder(client, VirtualClock(loop), hostname="h")
        task = asyncio.create_task(recorder.run())
        recorder.record(pod, **FAILED)
        recorder.record(pod, **FAILED)
        await asyncio.sleep(0.5)
        assert client.under_way == 1
        await asyncio.sleep(1)
        assert client.written == [("create", 1), ("patch", 2)]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_in_virtual_time(main())
