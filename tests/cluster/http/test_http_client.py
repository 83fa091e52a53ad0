"""The client against servers with scripted answers (spec 09 §4.3 and §4.6)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from aiohttp import web

from kubestow.api.coordination import Event, EventSeries, Lease, LeaseSpec
from kubestow.api.meta import Condition, JsonObject, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.http.http_client import HttpClient, list_path, object_path
from kubestow.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from kubestow.errors import ApiError, ConflictError, GoneError, NotFoundError, UnreachableError

POD = Pod(metadata=ObjectMeta(name="web-1", namespace="prod", uid="u1", resource_version="5"))


def run(
    serve: Any,
    connect: Any,
    answers: list[Any],
    body: Callable[[HttpClient, Any], Awaitable[None]],
) -> None:
    async def main() -> None:
        async with serve(*answers) as server:
            client = connect(server.url)
            try:
                await body(client, server)
            finally:
                client.close()

    asyncio.run(main())


def pod_document(name: str = "web-1", version: int = 1, **parts: Any) -> JsonObject:
    metadata = {"name": name, "namespace": "prod", "resourceVersion": str(version), "uid": "u1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **parts}


def refuse(code: int, reason: str = "", message: str = "no", **headers: str) -> Any:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(status, status=code, headers=headers)

    return answer


def say(document: Any, code: int = 200) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(document, status=code)

    return answer


def stream(*frames: tuple[str, JsonObject], held: asyncio.Event | None = None) -> Any:
    """A watch that sends these frames and then ends, or waits."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for type, document in frames:
            await response.write(msgspec.json.encode({"type": type, "object": document}) + b"\n")
        if held is not None:
            await held.wait()
        return response

    return answer


def end_of_list(version: int) -> tuple[str, JsonObject]:
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return "BOOKMARK", {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}}


def page(*items: JsonObject, version: int = 9, more: str = "") -> Any:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return say({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(items)})


def names(items: Any) -> list[str]:
    return [item.metadata.name for item in items]


def test_it_is_a_cluster_client(connect: Any):
    client: HttpClient = connect("http://x")
    typed: ClusterClient = client  # for the type checker: assigning is the test
    assert typed is client


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (list_path(PODS), "/api/v1/pods"),
        (list_path(PODS, "prod"), "/api/v1/namespaces/prod/pods"),
        (list_path(NODES, "ignored"), "/api/v1/nodes"),
        (object_path(NODES, "", "n1"), "/api/v1/nodes/n1"),
        (object_path(PODS, "", "a", "status"), "/api/v1/namespaces/default/pods/a/status"),
        (
            object_path(RESOURCE_CLAIMS, "x", "c"),
            "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/c",
        ),
        (object_path(PODS, "../x", "a/b"), "/api/v1/namespaces/..%2Fx/pods/a%2Fb"),
    ],
)
def test_paths(path: str, expected: str):
    assert path == expected


# --- Reading ----------------------------------------------------------------------------------


def test_get(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        pod = await client.get(Pod, "prod", "web-1")
        assert pod.spec.node_name == "n1"
        assert server.requests[0].path == "/api/v1/namespaces/prod/pods/web-1"
        with pytest.raises(NotFoundError, match='pods "x" not found'):
            await client.get(Pod, "prod", "x")
        with pytest.raises(ApiError, match='cannot decode Pod "prod/web-1": spec is 5'):
            await client.get(Pod, "prod", "web-1")

    answers = [
        say(pod_document(spec={"nodeName": "n1"})),
        refuse(404, "NotFound", 'pods "x" not found'),
        say(pod_document(spec=5)),
    ]
    run(serve, connect, answers, body)


def test_a_list_comes_in_pages_and_every_item_has_its_kind(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        nodes = await client.list(Node, label_selector="a=b")
        assert names(nodes) == ["n1", "n2"]
        assert {(node.api_version, node.kind) for node in nodes} == {("v1", "Node")}
        assert [seen.query for seen in server.requests] == [
            {"labelSelector": "a=b", "limit": "500"},
            {"labelSelector": "a=b", "limit": "500", "continue": "next"},
        ]

    answers = [
        page({"metadata": {"name": "n1"}}, more="next"),
        page({"metadata": {"name": "n2"}}),
    ]
    run(serve, connect, answers, body)


def test_pages_that_expire_are_read_in_one_piece(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        assert names(await client.list(Pod, namespace="prod")) == ["a", "b"]
        assert [seen.query for seen in server.requests] == [
            {"limit": "500"},
            {"limit": "500", "continue": "next"},
            {},
        ]

    answers = [
        page(pod_document("a"), more="next"),
        refuse(410, "Expired"),
        page(pod_document("a"), pod_document("b")),
    ]
    run(serve, connect, answers, body)


def test_an_invalid_item_is_named_and_left_out(
    serve: Any, connect: Any, caplog: pytest.LogCaptureFixture
):
    async def body(client: HttpClient, server: Any) -> None:
        with caplog.at_level(logging.ERROR):
            assert names(await client.list(Pod)) == ["a", "c"]
        assert 'cannot decode Pod "prod/b": spec.priority is "high"' in caplog.text
        assert await client.list(Pod) == []
        for message in ("is not JSON", "is no list"):
            with pytest.raises(ApiError, match=message):
                await client.list(Pod)

    async def nonsense(_: web.Request) -> web.Response:
        return web.Response(body=b"<html>")

    odd = pod_document("b", spec={"priority": "high"})
    null = pod_document("c", spec={"containers": None})
    answers = [
        page(pod_document("a"), odd, null),
        say({"metadata": {}, "items": None}),
        nonsense,
        say({"metadata": 5}),
    ]
    run(serve, connect, answers, body)


def test_a_list_is_the_beginning_of_a_watch(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        listing = await client.list_and_watch(Pod, field_selector="x=y", resource_version="7")
        assert names(listing.items) == ["a", "c"]
        assert listing.items[0].metadata.resource_version == "3"
        assert listing.resource_version == "9"
        events = await listing.watch.next_batch()
        assert [(event.type, event.resource_version) for event in events] == [("ADDED", "10")]
        (seen,) = server.requests
        assert 300 <= int(seen.query.pop("timeoutSeconds")) < 600
        assert seen.query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "resourceVersion": "7",
            "fieldSelector": "x=y",
        }
        listing.watch.close()

    answer = stream(
        ("ADDED", pod_document("a", 1)),
        ("ADDED", pod_document("b", 2)),
        ("MODIFIED", pod_document("a", 3)),
        ("DELETED", pod_document("b", 4)),
        ("ADDED", pod_document("c", 5)),
        end_of_list(9),
        ("ADDED", pod_document("d", 10)),
    )
    run(serve, connect, [answer], body)


def test_a_list_that_is_cut_off_is_read_in_pages(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        listing = await client.list_and_watch(Pod, resource_version="0")
        assert names(listing.items) == ["a", "b"]
        listing.watch.close()
        assert [sorted(seen.query) for seen in server.requests[1:]] == [
            ["limit", "resourceVersion"],
            ["allowWatchBookmarks", "resourceVersion", "timeoutSeconds", "watch"],
        ]

    answers = [
        stream(("ADDED", pod_document("a", 1))),
        page(pod_document("a"), pod_document("b")),
        stream(),
    ]
    run(serve, connect, answers, body)


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        pytest.param("", {"limit": "500"}, id="nothing-known"),
        pytest.param("0", {"limit": "500", "resourceVersion": "0"}, id="any-will-do"),
        pytest.param("7", {"resourceVersion": "7"}, id="at-least-this"),
    ],
)
def test_a_server_that_cannot_stream_lists_and_then_watches(
    serve: Any, connect: Any, asked: str, listed: dict[str, str]
):
    async def body(client: HttpClient, server: Any) -> None:
        listing = await client.list_and_watch(Pod, resource_version=asked)
        assert names(listing.items) == ["a"]
        assert listing.resource_version == "9"
        first, second, third = (seen.query for seen in server.requests)
        assert first["sendInitialEvents"] == "true"
        assert first.get("resourceVersion", "") == asked.replace("0", "")
        assert second == listed
        third.pop("timeoutSeconds")
        assert third == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "9"}
        assert [event.object.metadata.name for event in await listing.watch.next_batch()] == ["b"]

    answers = [
        refuse(422, "Invalid", "sendInitialEvents is forbidden"),
        page(pod_document("a")),
        stream(("ADDED", pod_document("b", 10))),
    ]
    run(serve, connect, answers, body)


TOO_LARGE = refuse(504, "Timeout", "Timeout: Too large resource version: 9, current: 5")


@pytest.mark.parametrize(
    ("answers", "error", "request_count"),
    [
        pytest.param([refuse(410, "Expired")], GoneError, 1, id="forgotten"),
        pytest.param([TOO_LARGE], GoneError, 1, id="not-yet-known"),
        pytest.param([refuse(422), TOO_LARGE], GoneError, 2, id="not-yet-known-to-the-list"),
        pytest.param([refuse(429, "TooManyRequests")], ApiError, 1, id="busy"),
        pytest.param([refuse(403, "Forbidden")], ApiError, 2, id="forbidden-both-ways"),
        pytest.param(
            [stream(("ERROR", {"kind": "Status", "code": 410, "message": "old"}))],
            GoneError,
            1,
            id="forgotten-in-the-stream",
        ),
    ],
)
def test_a_list_that_fails(
    serve: Any, connect: Any, answers: list[Any], error: type[ApiError], request_count: int
):
    async def body(client: HttpClient, server: Any) -> None:
        with pytest.raises(error):
            await client.list_and_watch(Pod, resource_version="9")
        assert len(server.requests) == request_count

    run(serve, connect, answers, body)


def test_a_watch_continues_from_the_given_version(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        watch = await client.watch(Pod, resource_version="7", label_selector="a=b")
        (event,) = await watch.next_batch()
        assert (event.type, event.object.metadata.name) == ("ADDED", "a")
        assert await watch.next_batch() == []
        query = server.requests[0].query
        query.pop("timeoutSeconds")
        assert query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "7",
            "labelSelector": "a=b",
        }
        with pytest.raises(GoneError):
            await client.watch(Pod, resource_version="1")

    answers = [stream(("ADDED", pod_document("a", 8))), refuse(410, "Expired")]
    run(serve, connect, answers, body)


def test_closing_a_watch_ends_the_request(serve_raw: Any, connect: Any):
    async def main() -> None:
        ended: asyncio.Queue[None] = asyncio.Queue()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                await reader.read()
            finally:
                ended.put_nowait(None)

        async with serve_raw(talk) as server:
            client = connect(server.url)
            watch = await client.watch(Pod, resource_version="1")
            watch.close()
            await ended.get()
            another = await client.watch(Pod, resource_version="1")
            reading = asyncio.create_task(another.next_batch())
            client.close()
            assert await reading == []
            await ended.get()

    asyncio.run(main())


# --- Writing ----------------------------------------------------------------------------------


def test_a_binding_names_the_pod_by_uid(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        await client.bind(POD, "n1")
        (seen,) = server.requests
        assert (seen.method, seen.path) == ("POST", "/api/v1/namespaces/prod/pods/web-1/binding")
        assert seen.body == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "web-1", "namespace": "prod", "uid": "u1"},
            "target": {"kind": "Node", "name": "n1"},
        }
        with pytest.raises(ConflictError, match="already assigned"):
            await client.bind(POD, "n1")

    answers = [say({"kind": "Status"}, 201), refuse(409, "Conflict", "already assigned")]
    run(serve, connect, answers, body)


CONDITION = Condition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message="0/1 nodes are available: 1 Insufficient cpu.",
    observed_generation=1,
    last_transition_time=datetime(2024, 1, 1, tzinfo=UTC),
)


def test_a_status_is_patched_and_only_when_it_changes(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        await client.patch_pod_status(POD, condition=CONDITION)
        (seen,) = server.requests
        assert (seen.method, seen.path) == ("PATCH", "/api/v1/namespaces/prod/pods/web-1/status")
        assert seen.headers["Content-Type"] == "application/strategic-merge-patch+json"
        # Example 1 of spec 09 §4.6, and the UID.
        assert seen.body == {
            "metadata": {"uid": "u1"},
            "status": {
                "conditions": [
                    {
                        "lastProbeTime": None,
                        "lastTransitionTime": "2024-01-01T00:00:00Z",
                        "message": "0/1 nodes are available: 1 Insufficient cpu.",
                        "observedGeneration": 1,
                        "reason": "Unschedulable",
                        "status": "False",
                        "type": "PodScheduled",
                    }
                ]
            },
        }
        await client.patch_pod_status(POD, nominated_node_name="")
        assert len(server.requests) == 1
        await client.patch_pod_status(POD, nominated_node_name="n1")
        assert server.requests[1].body == {
            "metadata": {"uid": "u1"},
            "status": {"nominatedNodeName": "n1"},
        }

    run(serve, connect, [say({})], body)


@pytest.mark.parametrize("code", [409, 500, 503])
def test_a_status_is_sent_four_times_at_most(serve: Any, connect: Any, pauses: Any, code: int):
    async def body(client: HttpClient, server: Any) -> None:
        with pytest.raises(ApiError):
            await client.patch_pod_status(POD, nominated_node_name="n1")
        assert len(server.requests) == 4
        for delay_s, base_s in zip(pauses.delays_s, (0.01, 0.05, 0.25), strict=True):
            assert base_s <= delay_s <= 1.1 * base_s

    run(serve, connect, [refuse(code)], body)


def test_a_status_is_repeated_until_it_succeeds(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        await client.patch_pod_status(POD, nominated_node_name="n1")
        assert len(server.requests) == 3

    run(serve, connect, [refuse(409), refuse(503), say({})], body)


def test_a_status_that_is_refused_is_not_repeated(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        with pytest.raises(NotFoundError):
            await client.patch_pod_status(POD, nominated_node_name="n1")
        assert len(server.requests) == 1

    run(serve, connect, [refuse(404)], body)


def test_a_status_is_repeated_after_a_refused_connection(serve: Any, connect: Any, pauses: Any):
    async def main() -> None:
        async with serve(say({})) as server:
            url = server.url
        with pytest.raises(UnreachableError):
            await connect(url).patch_pod_status(POD, nominated_node_name="n1")
        assert len(pauses.delays_s) == 3

    asyncio.run(main())


def test_the_status_of_another_pod_of_this_name_is_not_patched_again(serve: Any, connect: Any):
    """409 as kube-apiserver v1.36 words it; other conflicts are worth another try."""
    text = (
        'Operation cannot be fulfilled on pods "web-1": StorageError: invalid object, Code: 4, '
        "Key: /registry/pods/prod/web-1, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        "failed: UID in precondition: u1, UID in object meta: u2"
    )

    async def body(client: HttpClient, server: Any) -> None:
        with pytest.raises(ConflictError) as raised:
            await client.patch_pod_status(POD, nominated_node_name="n1")
        assert raised.value.is_replaced
        assert len(server.requests) == 1

    run(serve, connect, [say({"kind": "Status", "message": text}, 409)], body)


def test_deletions(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        await client.delete_pod(POD)
        await client.delete(Node, "", "n1", grace_period_s=0)
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        assert [(seen.method, seen.path, seen.body) for seen in server.requests] == [
            (
                "DELETE",
                "/api/v1/namespaces/prod/pods/web-1",
                {**options, "preconditions": {"uid": "u1"}},
            ),
            ("DELETE", "/api/v1/nodes/n1", {**options, "gracePeriodSeconds": 0}),
        ]

    run(serve, connect, [say({})], body)


def test_an_update_sends_the_difference(serve: Any, connect: Any):
    old = PersistentVolumeClaim(
        metadata=ObjectMeta(name="c", namespace="x", uid="u", resource_version="3")
    )
    annotations = {"volume.kubernetes.io/selected-node": "n1"}
    metadata = msgspec.structs.replace(old.metadata, annotations=annotations)

    async def body(client: HttpClient, server: Any) -> None:
        new = await client.update(old, msgspec.structs.replace(old, metadata=metadata))
        assert new.metadata.resource_version == "4"
        (seen,) = server.requests
        assert (seen.method, seen.path) == (
            "PATCH",
            "/api/v1/namespaces/x/persistentvolumeclaims/c",
        )
        assert seen.headers["Content-Type"] == "application/merge-patch+json"
        assert seen.body == {
            "metadata": {"annotations": annotations, "resourceVersion": "3", "uid": "u"}
        }
        assert await client.update(old, old) is old
        assert len(server.requests) == 1

    run(serve, connect, [say({"metadata": {"name": "c", "resourceVersion": "4"}})], body)


def test_leases_are_written_whole_and_times_to_the_microsecond(serve: Any, connect: Any):
    whole = datetime(2024, 1, 1, tzinfo=UTC)
    spec = LeaseSpec(
        holder_identity="", acquire_time=whole, renew_time=whole.replace(microsecond=120)
    )
    metadata = ObjectMeta(name="kube-scheduler", namespace="kube-system", resource_version="3")
    lease = Lease(metadata=metadata, spec=spec)
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

    async def body(client: HttpClient, server: Any) -> None:
        await client.create(lease)
        await client.update(lease, lease)
        created, updated = server.requests
        assert (created.method, created.path) == ("POST", path)
        assert (updated.method, updated.path) == ("PUT", f"{path}/kube-scheduler")
        assert created.body == updated.body
        assert created.body == {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "kube-scheduler",
                "namespace": "kube-system",
                "resourceVersion": "3",
            },
            "spec": {
                "holderIdentity": "",
                "acquireTime": "2024-01-01T00:00:00.000000Z",
                "renewTime": "2024-01-01T00:00:00.000120Z",
            },
        }

    run(serve, connect, [say({"kind": "Lease"})], body)


def test_events(serve: Any, connect: Any):
    whole = datetime(2024, 1, 1, tzinfo=UTC)
    event = Event(
        metadata=ObjectMeta(name="e", namespace="x"),
        event_time=whole,
        series=EventSeries(count=2, last_observed_time=whole),
        note='"eventTime":"2024-01-01T00:00:00Z"',
    )

    async def body(client: HttpClient, server: Any) -> None:
        await client.create_event(event)
        (seen,) = server.requests
        assert seen.path == "/apis/events.k8s.io/v1/namespaces/x/events"
        assert seen.body["eventTime"] == "2024-01-01T00:00:00.000000Z"
        assert seen.body["series"]["lastObservedTime"] == "2024-01-01T00:00:00.000000Z"
        assert seen.body["note"] == event.note
        assert (seen.body["apiVersion"], seen.body["kind"]) == ("events.k8s.io/v1", "Event")

    run(serve, connect, [say({})], body)


def test_documents_of_any_kind(serve: Any, connect: Any):
    async def body(client: HttpClient, server: Any) -> None:
        assert await client.get_document("/apis/events.k8s.io/v1") == {"a": 1}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        assert await client.create_document(path, {"spec": {}}) == {"a": 1}
        assert server.requests[1].body == {"spec": {}}

    run(serve, connect, [say({"a": 1})], body)
