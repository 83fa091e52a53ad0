"""Watches over HTTP."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.query import Query
from kubestow.apiserver.http.representation import Form
from kubestow.apiserver.http.routing import ApiPath
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.http.streaming import TIMEOUT_S, EventEncoder, WatchStreams
from kubestow.apiserver.http.verbs import ObjectRequest
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.served import ServedTable
from kubestow.cluster.resources import EVENTS, PODS
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]
Serve = Callable[..., Any]

DEFAULT_PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def names(events: list[JsonObject]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_a_watch_sends_the_changes_after_a_version(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("old"))

    async def work(client: Any):
        async with client.watch(DEFAULT_PODS, resourceVersion=cluster.version) as lines:
            cluster.create(PODS, pod_document("new"))
            cluster.bind("default", "new", "n1")
            cluster.delete(PODS, "default", "old")
            return [await lines.next() for _ in range(3)]

    events = serve(work)
    assert names(events) == [("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "old")]
    assert events[1]["object"]["spec"]["nodeName"] == "n1"
    assert events[2]["object"]["metadata"]["resourceVersion"] == str(cluster.version)


def test_a_watch_without_a_version_begins_with_existing_objects(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a"))

    async def work(client: Any):
        async with client.watch(DEFAULT_PODS) as lines:
            return [await lines.next()]

    assert names(serve(work)) == [("ADDED", "a")]


def test_initial_events_end_with_a_bookmark(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    for name in ("a", "b"):
        cluster.create(PODS, pod_document(name))

    async def work(client: Any):
        async with client.watch(
            DEFAULT_PODS,
            sendInitialEvents="true",
            allowWatchBookmarks="true",
            resourceVersionMatch="NotOlderThan",
        ) as lines:
            return [await lines.next() for _ in range(3)]

    events = serve(work)
    assert names(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    metadata = events[2]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert metadata["resourceVersion"] == str(cluster.version)


def test_bookmarks_are_sent_only_on_request(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    async def work(client: Any):
        version = cluster.version
        async with (
            client.watch(
                DEFAULT_PODS, resourceVersion=version, allowWatchBookmarks="true"
            ) as wanted,
            client.watch(DEFAULT_PODS, resourceVersion=version) as unwanted,
        ):
            cluster.send_bookmarks()
            cluster.create(PODS, pod_document("a"))
            return [await wanted.next(), await wanted.next(), await unwanted.next()]

    first, second, only = serve(work)
    assert [event["type"] for event in (first, second, only)] == ["BOOKMARK", "ADDED", "ADDED"]
    assert first["object"]["kind"] == "Pod"


@pytest.mark.parametrize(
    ("query", "expected_s"),
    [
        pytest.param({"timeoutSeconds": "400"}, 400, id="as-asked"),
        pytest.param({}, TIMEOUT_S, id="by-default"),
    ],
)
def test_a_watch_ends_at_its_timeout(
    cluster: MemoryCluster,
    clock: ManualClock,
    pod_document: Build,
    query: dict[str, str],
    expected_s: float,
):
    streams = WatchStreams(cluster, clock)
    path = ApiPath("", "v1", "pods")
    served = ServedTable(cluster.resources).find("", "v1", "pods")
    version = {"resourceVersion": str(cluster.version)}
    sent: list[bytes] = []

    async def send(raw: bytes) -> None:
        sent.append(raw)

    async def run() -> float:
        request = ObjectRequest(path=path, served=served, query=Query({**version, **query}))
        stream = streams.open(request)
        assert cluster.statistics().watch_count == 1
        loop = asyncio.get_running_loop()
        loop.call_later(100, cluster.create, PODS, pod_document("a"))
        await stream.send_all(send)
        return loop.time()

    assert run_in_virtual_time(run()) == expected_s
    assert len(sent) == 1
    assert cluster.statistics().watch_count == 0


def test_a_version_too_old_is_an_event_of_its_own(clock: ManualClock, pod_document: Build):
    cluster = MemoryCluster(clock, history_max=2)
    for index in range(5):
        cluster.create(PODS, pod_document(f"p{index}"))

    async def run() -> tuple[int, JsonObject]:
        server = ApiServer(cluster, clock)
        port = await server.start()
        try:
            async with (
                aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
                session.get("/api/v1/pods?watch=1&resourceVersion=1") as response,
            ):
                return response.status, await response.json(content_type=None)
        finally:
            await server.close()

    status, event = asyncio.run(run())
    assert status == 200
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_selections_turn_changes_into_added_and_deleted(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    async def work(client: Any):
        query = {"resourceVersion": cluster.version, "fieldSelector": "spec.nodeName="}
        async with client.watch("/api/v1/pods", **query) as lines:
            cluster.create(PODS, pod_document("a"))
            cluster.bind("default", "a", "n1")
            return [await lines.next(), await lines.next()]

    assert names(serve(work)) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watched_table_has_its_headers_once(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    async def work(client: Any):
        async with client.watch(DEFAULT_PODS, TABLE, resourceVersion=cluster.version) as lines:
            cluster.create(PODS, pod_document("a"))
            cluster.create(PODS, pod_document("b"))
            return [(await lines.next())["object"] for _ in range(2)]

    first, second = serve(work)
    assert first["columnDefinitions"][0]["name"] == "Name"
    assert second["columnDefinitions"] is None
    assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["a", "b"]


def test_a_client_that_disconnects_ends_its_watch(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    async def work(client: Any):
        async with client.watch(DEFAULT_PODS, resourceVersion=cluster.version) as lines:
            cluster.create(PODS, pod_document("a"))
            await lines.next()
            lines.leave()
            async with asyncio.timeout(300):
                # There is no event to wait for when the server notices the closed connection.
                while cluster.statistics().watch_count:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    serve(work)


def test_a_server_that_closes_ends_its_watches(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    own = cluster.watch(PODS)

    async def work(client: Any):
        async with client.watch(DEFAULT_PODS, resourceVersion=cluster.version) as lines:
            closing = asyncio.create_task(client.server.close())
            ended = await lines.next()
            await closing
            return ended

    assert serve(work) is None
    assert not own.is_closed


def test_a_burst_larger_than_one_write_arrives_whole_and_in_order(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    async def work(client: Any):
        async with client.watch(DEFAULT_PODS, resourceVersion=cluster.version) as lines:
            for index in range(1_000):
                cluster.create(PODS, pod_document(f"p{index}"))
            return [(await lines.next())["object"]["metadata"]["name"] for _ in range(1_000)]

    assert serve(work) == [f"p{index}" for index in range(1_000)]


# --- Encoding once ----------------------------------------------------------------------------


def test_an_event_is_encoded_once_for_all_watchers(cluster: MemoryCluster, pod_document: Build):
    watches = [cluster.watch(PODS, from_version=cluster.version) for _ in range(2)]
    cluster.create(PODS, pod_document("a"))
    served = ServedTable(cluster.resources).find("", "v1", "pods")
    encoder = EventEncoder()
    first, second = (
        encoder.line(event, served, Form.OBJECT)
        for watch in watches
        for event in watch.events_nowait()
    )
    assert first is second


@pytest.mark.parametrize("kept_max", [2, 3, 100])
def test_dropping_lines_changes_none(cluster: MemoryCluster, pod_document: Build, kept_max: int):
    watch = cluster.watch(PODS, from_version=cluster.version)
    for index in range(7):
        cluster.create(PODS, pod_document(f"p{index}"))
    events = watch.events_nowait()
    served = ServedTable(cluster.resources).find("", "v1", "pods")
    encoder, fresh = EventEncoder(kept_max), EventEncoder()
    for _ in range(2):
        for event in events:
            line = encoder.line(event, served, Form.OBJECT)
            assert line == fresh.line(event, served, Form.OBJECT)


def test_the_two_names_of_events_are_encoded_apart(cluster: MemoryCluster):
    watch = cluster.watch(EVENTS, from_version=cluster.version)
    cluster.create(EVENTS, {"metadata": {"name": "e"}, "note": "hello"})
    (event,) = watch.events_nowait()
    served = ServedTable(cluster.resources)
    encoder = EventEncoder()
    core = encoder.line(event, served.find("", "v1", "events"), Form.OBJECT)
    new = encoder.line(event, served.find("events.k8s.io", "v1", "events"), Form.OBJECT)
    assert b'"message":"hello"' in core
    assert b'"note":"hello"' in new
