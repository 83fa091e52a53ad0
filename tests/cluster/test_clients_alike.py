"""Both clients behave alike: in process, and over HTTP against the same embedded server.

So tests of the scheduler in memory also hold for a real server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from kubestow.api.coordination import Event, Lease
from kubestow.api.meta import ApiObject, Condition, JsonObject, ObjectMeta, ObjectReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim, StorageClass
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ObjectStore
from kubestow.clock import SystemClock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.election import LeaderElector
from kubestow.cluster.events import EventRecorder
from kubestow.cluster.http import session
from kubestow.cluster.http.credentials import FixedCredentials, bearer
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession, retry_after_s
from kubestow.cluster.informer import POD_FIELD_SELECTOR, Handler, Informer
from kubestow.cluster.resources import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ApiResource,
    ResourceTable,
)
from kubestow.errors import ApiError, ConflictError, GoneError, NotFoundError
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]
TOKEN = "let-me-in"


class Rig(NamedTuple):
    client: ClusterClient
    cluster: MemoryCluster
    clock: ManualClock


Body = Callable[[Rig], Awaitable[None]]
Run = Callable[..., None]


async def in_memory(cluster: MemoryCluster, clock: ManualClock, body: Body) -> None:
    await body(Rig(MemoryClient(cluster), cluster, clock))


async def over_http(cluster: MemoryCluster, clock: ManualClock, body: Body) -> None:
    server = ApiServer(cluster, clock, token=TOKEN)
    port = await server.start()
    config = ServerConfig(
        server=f"http://127.0.0.1:{port}", credentials=FixedCredentials(bearer(TOKEN))
    )
    client = HttpClient(ApiSession(config, SystemClock(), qps=-1.0), rng=np.random.default_rng(0))
    try:
        await body(Rig(client, cluster, clock))
    finally:
        client.close()
        await server.close()
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture(params=[in_memory, over_http])
def run(request: pytest.FixtureRequest, clock: ManualClock) -> Run:
    def start(body: Body, **options: Any) -> None:
        cluster = MemoryCluster(clock, **options)
        asyncio.run(request.param(cluster, clock, body))

    return start


def names(items: Any) -> list[str]:
    return sorted(item.metadata.name for item in items)


async def read(watch: Any, count: int) -> list[tuple[str, str, str]]:
    """The next events, bookmarks left out."""
    events: list[tuple[str, str, str]] = []
    while len(events) < count:
        batch = await watch.next_batch()
        assert batch, "the watch has ended"
        events += [
            (event.type, event.object.metadata.name, event.resource_version)
            for event in batch
            if event.type != "BOOKMARK"
        ]
    return events


# --- Reading ----------------------------------------------------------------------------------


def test_get_and_list(run: Run, pod_document: Build, node_document: Build):
    async def body(rig: Rig) -> None:
        rig.cluster.create(PODS, pod_document("a", nodeName="n1"))
        rig.cluster.create(PODS, pod_document("b", metadata={"labels": {"app": "web"}}))
        rig.cluster.create(PODS, pod_document("c", metadata={"namespace": "other"}))
        rig.cluster.create(NODES, node_document("n1"))
        client = rig.client
        pod = await client.get(Pod, "default", "a")
        assert (pod.kind, pod.api_version, pod.spec.node_name) == ("Pod", "v1", "n1")
        assert pod == rig.cluster.get(PODS, "default", "a").typed
        assert names(await client.list(Pod)) == ["a", "b", "c"]
        assert {item.kind for item in await client.list(Pod)} == {"Pod"}
        assert names(await client.list(Pod, namespace="other")) == ["c"]
        assert names(await client.list(Pod, field_selector="spec.nodeName=n1")) == ["a"]
        assert names(await client.list(Pod, label_selector="app in (web, db)")) == ["b"]
        assert names(await client.list(Node)) == ["n1"]

    run(body)


def test_a_long_list_is_complete(run: Run, node_document: Build):
    async def body(rig: Rig) -> None:
        for index in range(1203):
            rig.cluster.create(NODES, node_document(f"n{index}"))
        assert len(await rig.client.list(Node)) == 1203
        listing = await rig.client.list_and_watch(Node)
        assert len({node.metadata.name for node in listing.items}) == 1203
        listing.watch.close()

    run(body)


@pytest.mark.parametrize("version", ["", "0", "1"])
def test_a_list_and_its_watch_leave_no_gap(run: Run, pod_document: Build, version: str):
    async def body(rig: Rig) -> None:
        cluster = rig.cluster
        cluster.create(PODS, pod_document("a"))
        cluster.create(PODS, pod_document("done", status={"phase": "Succeeded"}))
        listing = await rig.client.list_and_watch(
            Pod, field_selector=POD_FIELD_SELECTOR, resource_version=version
        )
        assert names(listing.items) == ["a"]
        assert listing.resource_version == "2"
        cluster.create(PODS, pod_document("b"))
        cluster.bind("default", "a", "n1")
        cluster.patch(PODS, "default", "a", {"status": {"phase": "Failed"}}, subresource="status")
        cluster.delete(PODS, "default", "b")
        assert await read(listing.watch, 4) == [
            ("ADDED", "b", "3"),
            ("MODIFIED", "a", "4"),
            ("DELETED", "a", "5"),
            ("DELETED", "b", "6"),
        ]
        listing.watch.close()
        resumed = await rig.client.watch(
            Pod, resource_version="4", field_selector=POD_FIELD_SELECTOR
        )
        assert await read(resumed, 2) == [("DELETED", "a", "5"), ("DELETED", "b", "6")]
        resumed.close()

    run(body)


def test_a_version_no_longer_kept_is_gone(
    run: Run, pod_document: Build, monkeypatch: pytest.MonkeyPatch
):
    # The server asks for a second between the ten requests of a client.
    monkeypatch.setattr(
        session, "retry_after_s", lambda head: None if retry_after_s(head) is None else 0.0
    )

    async def body(rig: Rig) -> None:
        for name in "abcd":
            rig.cluster.create(PODS, pod_document(name))

        async def watch() -> None:
            found = await rig.client.watch(Pod, resource_version="1")
            await found.next_batch()  # a server may report it only here

        with pytest.raises(GoneError, match="too old resource version: 1"):
            await watch()
        with pytest.raises(GoneError, match="Too large resource version: 9, current: 4"):
            await rig.client.list_and_watch(Pod, resource_version="9")

    run(body, history_max=2)


def test_a_bookmark_moves_the_version(run: Run, pod_document: Build, node_document: Build):
    async def body(rig: Rig) -> None:
        watch = (await rig.client.list_and_watch(Pod)).watch
        rig.cluster.create(NODES, node_document())
        rig.cluster.send_bookmarks()
        (event,) = await watch.next_batch()
        assert (event.type, event.resource_version) == ("BOOKMARK", "1")
        watch.close()
        assert watch.is_closed
        assert list(await watch.next_batch()) == []

    run(body)


# --- Writing ----------------------------------------------------------------------------------


def test_create_update_delete(run: Run):
    async def body(rig: Rig) -> None:
        client = rig.client
        node = await client.create(Node(metadata=ObjectMeta(name="n1")))
        assert node.metadata.uid
        assert node.metadata.resource_version == "1"
        with pytest.raises(ConflictError) as caught:
            await client.create(Node(metadata=ObjectMeta(name="n1")))
        assert caught.value.reason == "AlreadyExists"
        labels = msgspec.structs.replace(node.metadata, labels={"zone": "a"})
        changed = msgspec.structs.replace(node, metadata=labels)
        newer = await client.update(node, changed)
        assert newer.metadata.labels == {"zone": "a"}
        assert await client.update(newer, newer) is newer
        other = msgspec.structs.replace(node.metadata, labels={"zone": "b"})
        with pytest.raises(ConflictError, match="the object has been modified"):
            await client.update(node, msgspec.structs.replace(node, metadata=other))
        with pytest.raises(ConflictError, match="Precondition failed: UID in precondition: x"):
            await client.delete(Node, "", "n1", uid="x")
        await client.delete(Node, "", "n1", uid=node.metadata.uid)
        with pytest.raises(NotFoundError):
            await client.get(Node, "", "n1")

    run(body)


def test_an_update_keeps_undeclared_fields(run: Run):
    async def body(rig: Rig) -> None:
        document = {
            "metadata": {"name": "c", "annotations": {"other": "x"}},
            "spec": {"dataSourceRef": {"kind": "Unknown", "name": "kept"}},
        }
        rig.cluster.create(PERSISTENT_VOLUME_CLAIMS, document)
        old = await rig.client.get(PersistentVolumeClaim, "default", "c")
        annotations = {**old.metadata.annotations, "volume.kubernetes.io/selected-node": "n1"}
        metadata = msgspec.structs.replace(old.metadata, annotations=annotations)
        await rig.client.update(old, msgspec.structs.replace(old, metadata=metadata))
        stored = rig.cluster.get(PERSISTENT_VOLUME_CLAIMS, "default", "c")
        assert stored.metadata["annotations"] == annotations
        assert stored.document["spec"]["dataSourceRef"] == {"kind": "Unknown", "name": "kept"}

    run(body)


def test_binding(run: Run, pod_document: Build):
    async def body(rig: Rig) -> None:
        rig.cluster.create(PODS, pod_document())
        pod = await rig.client.get(Pod, "default", "web-1")
        metadata = msgspec.structs.replace(pod.metadata, uid="older")
        with pytest.raises(ConflictError, match="UID in precondition: older"):
            await rig.client.bind(msgspec.structs.replace(pod, metadata=metadata), "n1")
        await rig.client.bind(pod, "n1")
        assert (await rig.client.get(Pod, "default", "web-1")).spec.node_name == "n1"
        with pytest.raises(ConflictError, match='already assigned to node "n1"'):
            await rig.client.bind(pod, "n2")

    run(body)


def test_a_status_is_written_when_it_changes(run: Run, pod_document: Build):
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message="no",
        last_transition_time=datetime(2024, 1, 1, tzinfo=UTC),
    )

    async def body(rig: Rig) -> None:
        rig.cluster.create(PODS, pod_document())
        client = rig.client
        pod = await client.get(Pod, "default", "web-1")
        await client.patch_pod_status(pod, condition=condition, nominated_node_name="n1")
        pod = await client.get(Pod, "default", "web-1")
        assert pod.status.conditions == (condition,)
        assert pod.status.nominated_node_name == "n1"
        version = rig.cluster.version
        await client.patch_pod_status(pod, condition=condition, nominated_node_name="n1")
        assert rig.cluster.version == version
        await client.patch_pod_status(pod, nominated_node_name="")
        pod = await client.get(Pod, "default", "web-1")
        assert pod.status.nominated_node_name == ""

    run(body)


def test_a_status_names_its_pod(run: Run, pod_document: Build):
    async def body(rig: Rig) -> None:
        rig.cluster.create(PODS, pod_document("a"))
        pod = await rig.client.get(Pod, "default", "a")
        older = msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, uid="older")
        )
        with pytest.raises(ConflictError) as raised:
            await rig.client.patch_pod_status(older, nominated_node_name="n1")
        assert raised.value.is_replaced
        assert (await rig.client.get(Pod, "default", "a")).status.nominated_node_name == ""

    run(body)


def test_deleting_pods(run: Run, pod_document: Build):
    async def body(rig: Rig) -> None:
        rig.cluster.create(PODS, pod_document("a", nodeName="n1"))
        pod = await rig.client.get(Pod, "default", "a")
        older = msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, uid="older")
        )
        with pytest.raises(ConflictError):
            await rig.client.delete_pod(older)
        # On a node it ends with its own grace period.
        await rig.client.delete_pod(pod)
        pod = await rig.client.get(Pod, "default", "a")
        assert pod.metadata.deletion_grace_period_seconds == 30
        await rig.client.delete(Pod, "default", "a", grace_period_s=0)
        with pytest.raises(NotFoundError):
            await rig.client.get(Pod, "default", "a")

    run(body)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda client: client.get(Pod, "default", "x"), id="get"),
        pytest.param(lambda client: client.list(Pod, field_selector="spec.x=1"), id="field"),
        pytest.param(lambda client: client.list(Pod, label_selector="a=b=c"), id="label"),
        pytest.param(lambda client: client.watch(Pod, resource_version="x"), id="version"),
        pytest.param(lambda client: client.delete(Node, "", "x"), id="delete"),
        pytest.param(lambda client: client.create(Node(metadata=ObjectMeta(name="A_"))), id="name"),
        pytest.param(
            lambda client: client.patch(Pod, "default", "x", {}, subresource="status"), id="patch"
        ),
        pytest.param(
            lambda client: client.bind(Pod(metadata=ObjectMeta(name="x", namespace="y")), "n"),
            id="bind",
        ),
    ],
)
def test_refusals_are_worded_alike(ask: Callable[[ClusterClient], Any], clock: ManualClock):
    async def refusal(rig: Rig, found: list[Any]) -> None:
        with pytest.raises(ApiError) as caught:
            await ask(rig.client)
        error = caught.value
        found.append((type(error), error.code, error.reason, str(error)))

    async def main() -> None:
        found: list[Any] = []
        for start in (in_memory, over_http):
            await start(MemoryCluster(clock), clock, lambda rig: refusal(rig, found))
        assert found[0] == found[1]

    asyncio.run(main())


class Widget(ApiObject, frozen=True, kw_only=True):
    """A kind that no server has, unless a test adds it."""


@pytest.mark.parametrize("cls", [Pod, PersistentVolumeClaim, StorageClass, Lease])
def test_kinds_that_are_served(run: Run, cls: type[ApiObject]):
    async def body(rig: Rig) -> None:
        assert await rig.client.is_served(cls)
        assert rig.client.host

    run(body)


def test_a_kind_that_is_not_served_has_no_list(run: Run):
    widgets = ApiResource(
        group="resource.k8s.io", version="v1", plural="widgets", kind="Widget", namespaced=True
    )
    gadgets = msgspec.structs.replace(widgets, group="example.com")

    async def body(rig: Rig) -> None:
        for resource in (widgets, gadgets):
            client = rig.client
            if isinstance(client, HttpClient):
                client = HttpClient(
                    client.session,
                    rng=np.random.default_rng(0),
                    resources=ResourceTable([resource]),
                )
            assert not await client.is_served(Widget)
            with pytest.raises(NotFoundError):
                await client.list_and_watch(Widget)

    run(body)


# --- What is built on a client ----------------------------------------------------------------


def test_events_and_their_series(run: Run, pod_document: Build):
    async def body(rig: Rig) -> None:
        rig.cluster.create(PODS, pod_document("web-0"))
        pod = await rig.client.get(Pod, "default", "web-0")
        recorder = EventRecorder(rig.client, rig.clock, hostname="cp1")
        for _ in range(3):
            recorder.record(
                pod,
                reporter="default-scheduler",
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note="no",
            )
            await recorder.flush()
        statistics = recorder.statistics()
        assert (statistics.sent_count, statistics.failed_count) == (2, 0)
        (stored,) = rig.cluster.list(EVENTS).items
        event = stored.typed
        assert isinstance(event, Event)
        assert event.series is not None
        assert event.series.count == 2
        assert event.regarding == ObjectReference(
            api_version="v1",
            kind="Pod",
            namespace="default",
            name="web-0",
            uid=pod.metadata.uid,
            resource_version=pod.metadata.resource_version,
        )

    run(body)


def test_a_lease_is_acquired_renewed_and_released(run: Run):
    async def body(rig: Rig) -> None:
        elector = LeaderElector(rig.client, rig.clock, identity="a", rng=np.random.default_rng(0))
        other = LeaderElector(rig.client, rig.clock, identity="b", rng=np.random.default_rng(1))
        assert await elector.try_once()
        assert not await other.try_once()
        rig.clock.advance_s(14)
        assert await elector.try_once()
        rig.clock.advance_s(1)
        assert not await other.try_once()
        await elector.release()
        assert await other.try_once()
        lease = await rig.client.get(Lease, "kube-system", "kube-scheduler")
        assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("b", 1)
        assert not await elector.try_once()

    run(body)


def test_an_informer_follows_through_closed_watches_and_gaps(run: Run, pod_document: Build):
    async def body(rig: Rig) -> None:
        cluster = rig.cluster
        events: asyncio.Queue[Any] = asyncio.Queue()

        async def sleep(_: float) -> None:
            await asyncio.sleep(0)

        informer = Informer(
            rig.client,
            Pod,
            ObjectStore[Pod](),
            rig.clock,
            rng=np.random.default_rng(0),
            field_selector=POD_FIELD_SELECTOR,
            sleep=sleep,
        )
        informer.add_handler(
            Handler(
                lambda new: events.put_nowait(("add", new.metadata.name)),
                lambda _, new: events.put_nowait(("update", new.metadata.name)),
                lambda old, is_unknown: events.put_nowait(
                    ("delete", old.metadata.name, is_unknown)
                ),
            )
        )
        cluster.create(PODS, pod_document("a"))
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        assert await events.get() == ("add", "a")
        cluster.create(PODS, pod_document("b"))
        assert await events.get() == ("add", "b")
        # A watch that ends in time is continued.
        rig.clock.advance_s(300)
        cluster.close_watches()
        cluster.bind("default", "a", "n1")
        assert await events.get() == ("update", "a")
        assert informer.statistics().list_count == 1
        # One that ends after more changes than the server keeps is not.
        rig.clock.advance_s(300)
        cluster.close_watches()
        cluster.delete(PODS, "default", "b")
        for name in "cdef":
            cluster.create(PODS, pod_document(name))
        assert await events.get() == ("delete", "b", True)
        assert {(await events.get())[1] for _ in range(4)} == {"c", "d", "e", "f"}
        assert informer.statistics().list_count == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(body, history_max=3)
