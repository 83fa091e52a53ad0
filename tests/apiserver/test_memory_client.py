"""The client interface, answered by the embedded server."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import pytest

from kubestow.api.coordination import Event
from kubestow.api.meta import Condition, JsonObject, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.resources import EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from kubestow.errors import ApiError, ConflictError, NotFoundError

Build = Callable[..., JsonObject]
Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end without a loop: in process nothing waits."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


@pytest.fixture
def pod(cluster: MemoryCluster, pod_document: Build) -> Pod:
    stored = cluster.create(PODS, pod_document())
    assert isinstance(stored.typed, Pod)
    return stored.typed


def test_it_is_a_cluster_client(client: MemoryClient):
    # For the type checker: assigning is the test.
    typed: ClusterClient = client
    assert typed is client


def test_get_and_list_return_the_typed_objects_of_the_server(
    client: MemoryClient, cluster: MemoryCluster, pod: Pod
):
    assert run(client.get(Pod, "default", "web-1")) is pod
    assert list(run(client.list(Pod))) == [pod]
    assert list(run(client.list(Pod, namespace="other"))) == []
    assert list(run(client.list(Pod, field_selector="spec.nodeName=n1"))) == []
    with pytest.raises(NotFoundError):
        asyncio.run(client.get(Node, "", "n1"))


def test_list_and_watch_leaves_no_gap(
    client: MemoryClient, cluster: MemoryCluster, pod: Pod, pod_document: Build
):
    listing = run(client.list_and_watch(Pod))
    assert list(listing.items) == [pod]
    assert listing.resource_version == "1"
    cluster.create(PODS, pod_document("web-2"))
    (event,) = listing.watch.events_nowait()
    assert (event.type, event.object.metadata.name, event.resource_version) == (
        "ADDED",
        "web-2",
        "2",
    )
    resumed = run(client.watch(Pod, resource_version="1"))
    assert [event.object.metadata.name for event in resumed.events_nowait()] == ["web-2"]


def test_a_resource_version_must_be_one(client: MemoryClient):
    with pytest.raises(ApiError, match='resourceVersion: Invalid value: "x"'):
        asyncio.run(client.watch(Pod, resource_version="x"))


def test_create_returns_what_was_stored(client: MemoryClient):
    node = run(client.create(Node(metadata=ObjectMeta(name="n1"))))
    assert node.metadata.uid
    assert node.metadata.resource_version == "1"


def test_update_changes_only_the_difference_and_only_the_latest(
    client: MemoryClient, cluster: MemoryCluster
):
    document = {
        "metadata": {"name": "c", "annotations": {"other": "x"}},
        "spec": {"dataSourceRef": {"kind": "Unknown", "name": "kept"}},
    }
    cluster.create(PERSISTENT_VOLUME_CLAIMS, document)
    old = run(client.get(PersistentVolumeClaim, "default", "c"))
    annotations = {**old.metadata.annotations, "volume.kubernetes.io/selected-node": "n1"}
    metadata = msgspec.structs.replace(old.metadata, annotations=annotations)
    new = run(client.update(old, msgspec.structs.replace(old, metadata=metadata)))
    stored = cluster.get(PERSISTENT_VOLUME_CLAIMS, "default", "c")
    assert stored.typed is new
    assert stored.metadata["annotations"] == annotations
    assert stored.document["spec"]["dataSourceRef"] == {"kind": "Unknown", "name": "kept"}
    metadata = msgspec.structs.replace(old.metadata, annotations={})
    with pytest.raises(ConflictError, match="the object has been modified"):
        asyncio.run(client.update(old, msgspec.structs.replace(old, metadata=metadata)))
    assert run(client.update(old, old)) is old


def test_bind_names_the_pod_by_uid(client: MemoryClient, cluster: MemoryCluster, pod: Pod):
    recreated = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, uid="older")
    )
    with pytest.raises(ConflictError, match="UID in precondition: older"):
        asyncio.run(client.bind(recreated, "n1"))
    run(client.bind(pod, "n1"))
    assert cluster.get(PODS, "default", "web-1").document["spec"]["nodeName"] == "n1"


def test_patch_pod_status_writes_and_repeats_nothing(
    client: MemoryClient, cluster: MemoryCluster, pod: Pod
):
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message="no",
        last_transition_time=datetime(2024, 1, 1, tzinfo=UTC),
    )
    run(client.patch_pod_status(pod, condition=condition, nominated_node_name="n1"))
    patched = run(client.get(Pod, "default", "web-1"))
    assert patched.status.conditions == (condition,)
    assert patched.status.nominated_node_name == "n1"
    version = cluster.version
    run(client.patch_pod_status(patched, condition=condition, nominated_node_name="n1"))
    assert cluster.version == version
    run(client.patch_pod_status(patched, nominated_node_name=""))
    assert "nominatedNodeName" not in cluster.get(PODS, "default", "web-1").document["status"]


def test_delete_pod_by_identity(client: MemoryClient, cluster: MemoryCluster, pod: Pod):
    older = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, uid="older")
    )
    with pytest.raises(ConflictError):
        asyncio.run(client.delete_pod(older))
    run(client.delete_pod(pod))
    with pytest.raises(NotFoundError):
        asyncio.run(client.delete_pod(pod))


def test_delete_any_object(client: MemoryClient, cluster: MemoryCluster, node_document: Build):
    cluster.create(NODES, node_document())
    run(client.delete(Node, "", "n1"))
    assert cluster.find(NODES, "", "n1") is None


def test_events_are_stored(client: MemoryClient, cluster: MemoryCluster):
    run(client.create_event(Event(metadata=ObjectMeta(name="e", namespace="x"), note="hello")))
    assert cluster.get(EVENTS, "x", "e").document["note"] == "hello"
