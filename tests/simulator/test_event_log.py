"""Events of controllers: events with the same text are counted as one."""

from typing import Any

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import EVENTS, NAMESPACES, NODES
from kubestow.simulator.event_log import EventLog
from kubestow.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000)


@pytest.fixture
def cluster(clock: ManualClock) -> MemoryCluster:
    return MemoryCluster(clock)


@pytest.fixture
def node(cluster: MemoryCluster) -> StoredObject:
    return cluster.create(NODES, {"metadata": {"name": "n1"}})


def events(cluster: MemoryCluster) -> list[dict[str, Any]]:
    return [stored.document for stored in cluster.list(EVENTS).items]


def test_the_same_text_is_one_event_with_a_count(
    cluster: MemoryCluster, clock: ManualClock, node: StoredObject
):
    log = EventLog(cluster, clock)
    for _ in range(3):
        log.record(node, reporter="me", reason="Because", note="of this")
        clock.advance_s(10)
    log.record(node, reporter="me", reason="Because", note="of that")
    first, second = events(cluster)
    assert (first["note"], first["deprecatedCount"]) == ("of this", 3)
    assert first["deprecatedFirstTimestamp"] == "2023-11-14T22:13:20Z"
    assert first["deprecatedLastTimestamp"] == "2023-11-14T22:13:40Z"
    assert (second["note"], second["deprecatedCount"]) == ("of that", 1)
    assert first["regarding"]["uid"] == node.uid
    assert first["metadata"]["namespace"] == "default"


def test_a_deleted_event_is_created_again(
    cluster: MemoryCluster, clock: ManualClock, node: StoredObject
):
    log = EventLog(cluster, clock)
    log.record(node, reporter="me", reason="Because", note="of this")
    for stored in cluster.list(EVENTS).items:
        cluster.delete(EVENTS, *stored.key)
    log.record(node, reporter="me", reason="Because", note="of this")
    assert [event["deprecatedCount"] for event in events(cluster)] == [1]


def test_where_no_event_can_be_written_none_is(clock: ManualClock):
    cluster = MemoryCluster(clock, namespace_lifecycle=True)
    going = cluster.create(NAMESPACES, {"metadata": {"name": "going"}})
    EventLog(cluster, clock).record(going, reporter="me", reason="Because", note="of this")
    assert events(cluster) == []


def test_only_the_latest_events_are_counted(
    cluster: MemoryCluster, clock: ManualClock, node: StoredObject, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kubestow.simulator.event_log.KEPT_MAX", 2)
    log = EventLog(cluster, clock)
    for note in "abacab":
        log.record(node, reporter="me", reason="Because", note=note)
    counts = sorted((event["note"], event["deprecatedCount"]) for event in events(cluster))
    assert counts == [("a", 3), ("b", 1), ("b", 1), ("c", 1)]
