"""Which objects are deleted with their owner, and which stay."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.garbage_collector import FOREGROUND, ORPHAN, GarbageCollector
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import PODS, ApiResource

Build = Callable[..., JsonObject]


@pytest.fixture
def replica_sets(cluster: MemoryCluster) -> ApiResource:
    return cluster.resources.named("replicasets.apps")


def owner_reference(owner: StoredObject, **more: Any) -> JsonObject:
    return {
        "apiVersion": owner.document["apiVersion"],
        "kind": owner.document["kind"],
        "name": owner.name,
        "uid": owner.uid,
        **more,
    }


def make_owner(cluster: MemoryCluster, name: str = "rs", **metadata: Any) -> StoredObject:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }
    document = {
        "metadata": {"name": name, **metadata},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    return cluster.create(cluster.resources.named("replicasets.apps"), document)


def while_collecting(cluster: MemoryCluster, work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        collecting = asyncio.create_task(GarbageCollector(cluster).run())
        await asyncio.sleep(0)
        try:
            await work()
            await settle()
        finally:
            collecting.cancel()
            with suppress(asyncio.CancelledError):
                await collecting

    asyncio.run(run())


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def pod_names(cluster: MemoryCluster) -> list[str]:
    return [stored.name for stored in cluster.list(PODS).items]


@pytest.mark.parametrize("is_running_first", [True, False], ids=["follows", "finds-at-start"])
def test_dependents_are_deleted_with_their_owner(
    cluster: MemoryCluster,
    replica_sets: ApiResource,
    pod_document: Build,
    is_running_first: bool,
):
    owner = make_owner(cluster)
    references = {"ownerReferences": [owner_reference(owner)]}
    cluster.create(PODS, pod_document("owned", metadata=references))
    cluster.create(PODS, pod_document("free"))
    if not is_running_first:
        cluster.delete(replica_sets, "default", "rs")

    async def work() -> None:
        if is_running_first:
            await settle()
            assert pod_names(cluster) == ["free", "owned"]
            cluster.delete(replica_sets, "default", "rs")

    while_collecting(cluster, work)
    assert pod_names(cluster) == ["free"]


def test_a_chain_of_owners_is_deleted_one_by_one(cluster: MemoryCluster, pod_document: Build):
    config_maps = cluster.resources.named("configmaps")
    top = cluster.create(config_maps, {"metadata": {"name": "top"}})
    middle = make_owner(cluster, ownerReferences=[owner_reference(top)])
    cluster.create(PODS, pod_document("p", metadata={"ownerReferences": [owner_reference(middle)]}))

    async def work() -> None:
        cluster.delete(config_maps, "default", "top")

    while_collecting(cluster, work)
    assert cluster.statistics().object_counts == {}


def test_a_second_owner_keeps_the_dependent_and_its_own_reference(
    cluster: MemoryCluster, replica_sets: ApiResource, pod_document: Build
):
    owners = [make_owner(cluster, name) for name in ("a", "b")]
    references = {"ownerReferences": [owner_reference(owner) for owner in owners]}
    cluster.create(PODS, pod_document("p", metadata=references))

    async def work() -> None:
        await settle()
        cluster.delete(replica_sets, "default", "a")

    while_collecting(cluster, work)
    (reference,) = cluster.get(PODS, "default", "p").metadata["ownerReferences"]
    assert reference["name"] == "b"


def test_an_owner_that_came_back_under_another_uid_is_another_owner(
    cluster: MemoryCluster, replica_sets: ApiResource, pod_document: Build
):
    owner = make_owner(cluster)
    references = {"ownerReferences": [owner_reference(owner)]}
    cluster.create(PODS, pod_document("p", metadata=references))

    async def work() -> None:
        cluster.delete(replica_sets, "default", "rs")
        make_owner(cluster)

    while_collecting(cluster, work)
    assert pod_names(cluster) == []


def test_an_owner_of_an_unknown_kind_counts_as_existing(
    cluster: MemoryCluster, pod_document: Build
):
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u"}
    cluster.create(PODS, pod_document("p", metadata={"ownerReferences": [reference]}))

    async def work() -> None: ...

    while_collecting(cluster, work)
    assert pod_names(cluster) == ["p"]


def test_orphaned_dependents_stay_without_the_reference(
    cluster: MemoryCluster, replica_sets: ApiResource, pod_document: Build
):
    owner = make_owner(cluster)
    references = {"ownerReferences": [owner_reference(owner)]}
    cluster.create(PODS, pod_document("p", metadata=references))

    async def work() -> None:
        cluster.delete(replica_sets, "default", "rs", finalizer=ORPHAN)

    while_collecting(cluster, work)
    assert cluster.find(replica_sets, "default", "rs") is None
    assert "ownerReferences" not in cluster.get(PODS, "default", "p").metadata


def test_a_foreground_deletion_waits_for_dependents_that_block_it(
    cluster: MemoryCluster, replica_sets: ApiResource, pod_document: Build
):
    owner = make_owner(cluster)
    blocking = [owner_reference(owner, blockOwnerDeletion=True)]
    cluster.create(
        PODS, pod_document("slow", nodeName="n1", metadata={"ownerReferences": blocking})
    )

    async def work() -> None:
        await settle()
        cluster.delete(replica_sets, "default", "rs", finalizer=FOREGROUND)
        await settle()
        assert "deletionTimestamp" in cluster.get(PODS, "default", "slow").metadata
        assert cluster.find(replica_sets, "default", "rs") is not None
        cluster.finish_termination("default", "slow")

    while_collecting(cluster, work)
    assert cluster.find(replica_sets, "default", "rs") is None


def test_a_foreground_deletion_does_not_wait_for_others(
    cluster: MemoryCluster, replica_sets: ApiResource, pod_document: Build
):
    owner = make_owner(cluster)
    references = {"ownerReferences": [owner_reference(owner)]}
    cluster.create(PODS, pod_document("slow", nodeName="n1", metadata=references))

    async def work() -> None:
        cluster.delete(replica_sets, "default", "rs", finalizer=FOREGROUND)

    while_collecting(cluster, work)
    assert cluster.find(replica_sets, "default", "rs") is None
    assert "deletionTimestamp" in cluster.get(PODS, "default", "slow").metadata


def test_custom_resources_are_followed_from_their_definition_on(
    cluster: MemoryCluster, pod_document: Build
):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.acme.example.com"},
        "spec": {
            "group": "acme.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    widget = {
        "apiVersion": "acme.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
    }

    async def work() -> None:
        (stored,) = cluster.load([definition])
        await settle()
        (owner,) = cluster.load([widget])
        references = {"ownerReferences": [owner_reference(owner)]}
        cluster.create(PODS, pod_document("owned", metadata=references))
        await settle()
        assert pod_names(cluster) == ["owned"]
        cluster.delete(owner.resource, *owner.key)
        await settle()
        assert pod_names(cluster) == []
        # The end of the watch with its resource does not end the collection.
        cluster.delete(stored.resource, "", stored.name)
        await settle()
        parent = make_owner(cluster)
        references = {"ownerReferences": [owner_reference(parent)]}
        cluster.create(PODS, pod_document("next", metadata=references))
        cluster.delete(parent.resource, *parent.key)
        await settle()
        assert pod_names(cluster) == []

    while_collecting(cluster, work)
