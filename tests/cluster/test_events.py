"""The event recorder: what it writes, and that it never stands in the way."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.cluster.events import EventRecorder, cut_note
from kubestow.cluster.memory import MemoryCluster
from kubestow.cluster.memory_client import MemoryClient
from kubestow.cluster.resources import EVENTS, PODS
from kubestow.errors import ApiError
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


def test_an_event_says_who_what_and_about_what(
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
    cluster: MemoryCluster, client: MemoryClient, clock: ManualClock, pod: ApiObject
):
    recorder = EventRecorder(client, clock, hostname="h", buffer_max=2)
    for index in range(5):
        recorder.record(pod, **{**SCHEDULED, "note": str(index)})
    asyncio.run(recorder.flush())
    assert [event["note"] for event in stored_events(cluster)] == ["3", "4"]
    statistics = recorder.statistics()
    assert (statistics.recorded_count, statistics.dropped_count) == (5, 3)
    assert (statistics.sent_count, statistics.waiting_count) == (2, 0)


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
