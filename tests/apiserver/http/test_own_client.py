"""kubestow's own client against the embedded server."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from kubestow.api.coordination import Event, Lease, LeaseSpec
from kubestow.api.meta import Condition, JsonObject, ObjectMeta, ObjectReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition
from kubestow.api.pod_group import CompositePodGroup, PodGroupV1Beta1
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import SystemClock
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import load_kubeconfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.resources import EVENTS, LEASES, NODES, PODS
from kubestow.cluster.self_signed import self_signed
from kubestow.errors import ConflictError, GoneError, NotFoundError

Build = Callable[..., JsonObject]
T = TypeVar("T")
Talk = Callable[[Callable[[HttpClient], Awaitable[Any]]], Any]


@pytest.fixture
def talk(cluster: MemoryCluster, tmp_path: Path) -> Talk:
    """Runs a coroutine function with a client that found the server by its kubeconfig, over TLS."""

    def run(work: Callable[[HttpClient], Awaitable[T]]) -> T:
        async def inside() -> T:
            clock = SystemClock()
            made = self_signed(now_ns=clock.now_ns())
            server = ApiServer(cluster, clock, token="secret")
            port = await server.start(tls=made.server_context())
            path = tmp_path / "kubeconfig"
            url = f"https://127.0.0.1:{port}"
            KubeconfigFile(path).add(kubeconfig(url=url, authority=made.authority, token="secret"))
            config = load_kubeconfig(str(path), clock, environ={})
            session = ApiSession(config, clock, qps=10_000, burst=10_000, sleep=no_pause)
            try:
                async with asyncio.timeout(300):
                    return await work(HttpClient(session, rng=np.random.default_rng(0)))
            finally:
                session.close()
                await server.close()

        return asyncio.run(inside())

    return run


async def no_pause(_delay_s: float) -> None:
    """Replaces the delay before a repeated request."""
    await asyncio.sleep(0)


async def next_events(watch: Any, count: int) -> list[tuple[str, str]]:
    events: list[tuple[str, str]] = []
    while len(events) < count:
        batch = await watch.next_batch()
        assert batch, "the watch ended"
        events += [
            (event.type, event.object.metadata.name) for event in batch if event.type != "BOOKMARK"
        ]
    return events


def test_it_gets_lists_and_selects(talk: Talk, cluster: MemoryCluster, pod_document: Build):
    for index in range(1_100):  # more than two pages
        cluster.create(PODS, pod_document(f"p{index:04}"))
    cluster.create(PODS, pod_document("bound", nodeName="n1"))

    async def work(client: HttpClient):
        with pytest.raises(NotFoundError):
            await client.get(Pod, "default", "nobody")
        return (
            await client.get(Pod, "default", "p0003"),
            await client.list(Pod),
            await client.list(Pod, namespace="other"),
            await client.list(Pod, field_selector="spec.nodeName=n1"),
        )

    one, every, none, bound = talk(work)
    assert one == cluster.get(PODS, "default", "p0003").typed
    assert len(every) == 1_101
    assert every == [stored.typed for stored in cluster.list(PODS).items]
    assert none == []
    assert [pod.metadata.name for pod in bound] == ["bound"]


def test_it_lists_and_then_follows(talk: Talk, cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("old"))

    async def work(client: HttpClient):
        listing = await client.list_and_watch(Pod)
        cluster.create(PODS, pod_document("new"))
        cluster.bind("default", "new", "n1")
        cluster.delete(PODS, "default", "old")
        events = await next_events(listing.watch, 3)
        listing.watch.close()
        return [pod.metadata.name for pod in listing.items], events

    items, events = talk(work)
    assert items == ["old"]
    assert events == [("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "old")]


def test_it_continues_from_a_version_and_fails_when_that_is_too_old(
    talk: Talk, cluster: MemoryCluster, pod_document: Build
):
    for index in range(3):
        cluster.create(PODS, pod_document(f"p{index}"))

    async def work(client: HttpClient):
        version = str(cluster.version - 1)
        watch = await client.watch(Pod, resource_version=version)
        events = await next_events(watch, 1)
        watch.close()
        with pytest.raises(GoneError):
            await client.list_and_watch(Pod, resource_version=str(cluster.version + 1_000))
        return events

    assert talk(work) == [("ADDED", "p2")]


def test_it_binds_once(talk: Talk, cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("a"))

    async def work(client: HttpClient):
        pod = await client.get(Pod, "default", "a")
        await client.bind(pod, "n1")
        with pytest.raises(ConflictError, match="already assigned to node"):
            await client.bind(pod, "n2")

    talk(work)
    assert cluster.get(PODS, "default", "a").document["spec"]["nodeName"] == "n1"


def test_it_writes_a_status(talk: Talk, cluster: MemoryCluster, pod_document: Build):
    cluster.create(PODS, pod_document("a"))
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message="0/3 nodes are available",
        last_transition_time=datetime(2026, 1, 1, tzinfo=UTC),
    )

    async def work(client: HttpClient):
        pod = await client.get(Pod, "default", "a")
        await client.patch_pod_status(pod, condition=condition, nominated_node_name="n1")
        nominated = await client.get(Pod, "default", "a")
        await client.patch_pod_status(nominated, nominated_node_name="")
        return nominated, await client.get(Pod, "default", "a")

    nominated, last = talk(work)
    assert first_condition(nominated.status.conditions, "PodScheduled") == condition
    assert nominated.status.nominated_node_name == "n1"
    assert last.status.nominated_node_name == ""


def test_it_holds_a_lease(talk: Talk, cluster: MemoryCluster):
    lease = Lease(
        metadata=ObjectMeta(name="scheduler", namespace="default"),
        spec=LeaseSpec(holder_identity="me", lease_duration_seconds=15),
    )

    async def work(client: HttpClient):
        made = await client.create(lease)
        with pytest.raises(ConflictError) as caught:
            await client.create(lease)
        spec = msgspec.structs.replace(made.spec, holder_identity="you", lease_transitions=1)
        renewed = await client.update(made, msgspec.structs.replace(made, spec=spec))
        with pytest.raises(ConflictError):
            await client.update(made, msgspec.structs.replace(made, spec=lease.spec))
        return caught.value.reason, renewed

    reason, renewed = talk(work)
    assert reason == "AlreadyExists"
    assert renewed.spec.holder_identity == "you"
    assert cluster.get(LEASES, "default", "scheduler").document["spec"]["leaseTransitions"] == 1


def test_it_records_events_and_deletes_pods(
    talk: Talk, cluster: MemoryCluster, pod_document: Build
):
    cluster.create(PODS, pod_document("a", nodeName="n1"))
    event = Event(
        metadata=ObjectMeta(name="e", namespace="default"),
        event_time=datetime(2026, 1, 1, tzinfo=UTC),
        reason="Preempted",
        note="Preempted by a pod on node n1",
        type="Normal",
        regarding=ObjectReference(kind="Pod", namespace="default", name="a"),
    )

    async def work(client: HttpClient):
        await client.create_event(event)
        pod = await client.get(Pod, "default", "a")
        with pytest.raises(ConflictError):
            await client.delete(Pod, "default", "a", uid="another")
        await client.delete_pod(pod)

    talk(work)
    assert cluster.get(EVENTS, "default", "e").document["note"] == event.note
    assert "deletionTimestamp" in cluster.get(PODS, "default", "a").metadata


def test_it_updates_a_node_without_losing_undeclared_fields(
    talk: Talk, cluster: MemoryCluster, node_document: Build
):
    document = node_document("n1", nodeInfo={"kubeletVersion": "v1.36.0"})
    cluster.create(NODES, document)

    async def work(client: HttpClient):
        node = await client.get(Node, "", "n1")
        spec = msgspec.structs.replace(node.spec, unschedulable=True)
        return await client.update(node, msgspec.structs.replace(node, spec=spec))

    assert talk(work).spec.unschedulable
    stored = cluster.get(NODES, "", "n1").document
    assert stored["spec"]["unschedulable"] is True
    assert stored["status"]["nodeInfo"] == {"kubeletVersion": "v1.36.0"}


def test_all_kinds_the_scheduler_follows_can_be_followed(talk: Talk, cluster: MemoryCluster):
    async def work(client: HttpClient):
        newer = {PodGroupV1Beta1, CompositePodGroup}  # of a server that has them
        for kind in set(ClusterObjects().types()) - newer:
            listing = await client.list_and_watch(kind)
            listing.watch.close()

    talk(work)
