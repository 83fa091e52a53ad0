"""Pods with ephemeral volumes get claims of their own, which are deleted with them."""

import asyncio
from contextlib import suppress

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.volume_claims import ownership_error
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


def pod_document(name: str) -> JsonObject:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "nginx"}],
            "volumes": [
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
                {"name": "other", "emptyDir": {}},
            ],
        },
    }


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def claims_of(cluster: MemoryCluster) -> list[PersistentVolumeClaim]:
    found = [stored.typed for stored in cluster.list(PERSISTENT_VOLUME_CLAIMS).items]
    return [claim for claim in found if isinstance(claim, PersistentVolumeClaim)]


def test_claims_are_created_and_deleted_with_their_pod() -> None:
    async def run() -> None:
        cluster = MemoryCluster(VirtualClock(asyncio.get_running_loop()))
        task = asyncio.create_task(EphemeralVolumeController(cluster).run())
        pod = cluster.create(PODS, pod_document("web-1")).typed
        assert isinstance(pod, Pod)
        await settle()
        (claim,) = claims_of(cluster)
        assert claim.metadata.name == "web-1-scratch"
        assert claim.metadata.labels == {"app": "web"}
        assert claim.spec.storage_class_name == "fast"
        assert ownership_error(pod, claim) == ""
        cluster.delete(PODS, "default", "web-1")
        await settle()
        assert claims_of(cluster) == []
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run_in_virtual_time(run())


def test_an_existing_claim_is_not_changed() -> None:
    async def run() -> None:
        cluster = MemoryCluster(VirtualClock(asyncio.get_running_loop()), admission=False)
        document: JsonObject = {"metadata": {"name": "web-1-scratch", "namespace": "default"}}
        cluster.create(PERSISTENT_VOLUME_CLAIMS, document)
        task = asyncio.create_task(EphemeralVolumeController(cluster).run())
        cluster.create(PODS, pod_document("web-1"))
        await settle()
        cluster.delete(PODS, "default", "web-1")
        await settle()
        (claim,) = claims_of(cluster)
        assert claim.metadata.owner_references == ()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run_in_virtual_time(run())
