"""Every controller survives a fault in one object, and handles it once the fault is gone.

The fault is in the store: writing objects called `bad` raises what a field of a wrong type causes
deep inside. So no controller can avoid it by checking its input.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import NAMESPACES, NODES, PODS
from kubestow.simulator.served import ServedOptions, controllers_for
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

Build = Callable[..., JsonObject]


class FaultyCluster(MemoryCluster):
    """Raises TypeError for objects called `bad` while it is switched on."""

    is_faulty = False

    def _check(self, name: str) -> None:
        if self.is_faulty and name.startswith("bad"):
            raise TypeError("'<' not supported between instances of 'str' and 'int'")

    def get(self, resource: Any, namespace: str, name: str) -> StoredObject:
        # Every change of an object begins with this, but for that below.
        self._check(name)
        return super().get(resource, namespace, name)

    def write_status(self, old: StoredObject, status: Any, edit: Any) -> StoredObject:
        self._check(old.name)
        return super().write_status(old, status, edit)

    def create(self, resource: Any, document: JsonObject, **options: Any) -> StoredObject:
        metadata = document["metadata"]
        self._check(metadata.get("name") or metadata.get("generateName", ""))
        return super().create(resource, document, **options)


def play(work: Callable[[FaultyCluster], Any]) -> None:
    async def inside() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        cluster = FaultyCluster(clock, namespace_lifecycle=True)
        for name in ("default", "kube-node-lease"):
            cluster.create(NAMESPACES, {"metadata": {"name": name}})
        controllers = controllers_for(cluster, clock, ServedOptions(), b"PEM")
        tasks = [asyncio.create_task(controller.run()) for controller in controllers]
        await asyncio.sleep(1)
        try:
            await work(cluster)
            for task, controller in zip(tasks, controllers, strict=True):
                assert not task.done(), controller
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    run_in_virtual_time(inside())


def pod_template() -> JsonObject:
    spec = {"containers": [{"name": "main", "image": "nginx"}], "nodeName": "n1"}
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def workload(api_version: str, kind: str, name: str, **spec: Any) -> JsonObject:
    template = pod_template()
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "template": template},
    }


WORKLOADS = [
    ("apps/v1", "Deployment", {"replicas": 2}),
    ("apps/v1", "ReplicaSet", {"replicas": 2}),
    ("apps/v1", "StatefulSet", {"replicas": 2}),
    ("apps/v1", "DaemonSet", {}),
    ("batch/v1", "Job", {}),
]


@pytest.mark.parametrize(("api_version", "kind", "spec"), WORKLOADS, ids=lambda one: str(one))
def test_a_workload_with_a_fault_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture, api_version: str, kind: str, spec: JsonObject
):
    def pods_of(cluster: MemoryCluster, prefix: str) -> int:
        return sum(stored.name.startswith(prefix) for stored in cluster.objects_of(PODS))

    async def work(cluster: FaultyCluster) -> None:
        cluster.load([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}])
        cluster.load([workload(api_version, kind, "bad", **spec)])
        cluster.is_faulty = True
        await asyncio.sleep(1)
        cluster.load([workload(api_version, kind, "good", **spec)])
        await asyncio.sleep(30)
        assert pods_of(cluster, "good") == spec.get("replicas", 1)
        assert pods_of(cluster, "bad") == 0
        cluster.is_faulty = False
        # The pause after this long is half a minute at most.
        await asyncio.sleep(35)
        assert pods_of(cluster, "bad") == spec.get("replicas", 1)

    with caplog.at_level(logging.ERROR):
        play(work)
    assert any(f"{kind} default/bad: TypeError" in record.getMessage() for record in caplog.records)


def test_a_changed_workload_is_tried_at_once():
    async def work(cluster: FaultyCluster) -> None:
        deployments = cluster.resources.named("deployments.apps")
        cluster.load([workload("apps/v1", "Deployment", "bad", replicas=1)])
        cluster.is_faulty = True
        await asyncio.sleep(120)
        cluster.is_faulty = False
        await asyncio.sleep(1)
        assert not list(cluster.objects_of(PODS))
        cluster.patch(deployments, "default", "bad", {"spec": {"replicas": 2}}, "merge")
        await asyncio.sleep(0.1)
        assert len(list(cluster.objects_of(PODS))) == 2

    play(work)


def test_kubelets_go_on_with_the_other_pods():
    def phase(cluster: MemoryCluster, name: str) -> str:
        return cluster.get(PODS, "default", name).document["status"]["phase"]

    async def work(cluster: FaultyCluster) -> None:
        for name in ("bad", "good"):
            document = {**pod_template(), "metadata": {"name": name, "namespace": "default"}}
            cluster.create(PODS, document)
        cluster.is_faulty = True
        await asyncio.sleep(5)
        assert phase(cluster, "good") == "Running"
        cluster.is_faulty = False
        assert phase(cluster, "bad") == "Pending"
        await asyncio.sleep(5)
        assert phase(cluster, "bad") == "Running"

    play(work)


def test_nodes_are_registered_and_renewed_beside_a_faulty_one():
    async def work(cluster: FaultyCluster) -> None:
        leases = cluster.resources.named("leases.coordination.k8s.io")
        cluster.is_faulty = True
        cluster.create(NODES, {"metadata": {"name": "n1"}})
        cluster.is_faulty = False
        cluster.create(NODES, {"metadata": {"name": "bad"}})
        cluster.is_faulty = True
        await asyncio.sleep(30)
        good = cluster.get(NODES, "", "n1").document
        assert {one["status"] for one in good["status"]["conditions"]} == {"True", "False"}
        assert cluster.get(leases, "kube-node-lease", "n1")
        cluster.is_faulty = False
        await asyncio.sleep(30)
        assert cluster.get(leases, "kube-node-lease", "bad")
        assert cluster.get(NODES, "", "bad").document["status"]["conditions"]

    play(work)


def test_namespaces_are_emptied_beside_a_faulty_one():
    async def work(cluster: FaultyCluster) -> None:
        for name in ("bad", "good"):
            cluster.create(NAMESPACES, {"metadata": {"name": name}})
        await asyncio.sleep(1)
        for name in ("bad", "good"):
            cluster.delete(NAMESPACES, "", name)
        cluster.is_faulty = True
        await asyncio.sleep(5)
        names = {stored.name for stored in cluster.objects_of(NAMESPACES)}
        assert "bad" in names
        assert "good" not in names
        cluster.is_faulty = False
        await asyncio.sleep(10)
        assert "bad" not in {stored.name for stored in cluster.objects_of(NAMESPACES)}

    play(work)


def test_dependents_are_collected_beside_a_faulty_one():
    async def work(cluster: FaultyCluster) -> None:
        maps = cluster.resources.named("configmaps")
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
        for name in ("bad", "good"):
            metadata = {"name": name, "namespace": "default", "ownerReferences": [owner]}
            cluster.create(maps, {"metadata": metadata})
        cluster.is_faulty = True
        await asyncio.sleep(0.5)
        names = {stored.name for stored in cluster.objects_of(maps)}
        assert "good" not in names
        assert "bad" in names
        cluster.is_faulty = False
        await asyncio.sleep(5)
        assert "bad" not in {stored.name for stored in cluster.objects_of(maps)}

    play(work)


def test_volumes_and_budgets_are_served_beside_faulty_ones():
    async def work(cluster: FaultyCluster) -> None:
        claims = cluster.resources.named("persistentvolumeclaims")
        budgets = cluster.resources.named("poddisruptionbudgets.policy")
        cluster.load(
            [
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": "fast"},
                    "provisioner": "kubestow.io/pretended",
                }
            ]
        )
        for name in ("bad", "good"):
            metadata = {"name": name, "namespace": "default"}
            spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
            spec["resources"] = {"requests": {"storage": "1Gi"}}
            cluster.create(claims, {"metadata": metadata, "spec": spec})
            selector = {"matchLabels": {"app": "web"}}
            cluster.create(budgets, {"metadata": metadata, "spec": {"selector": selector}})
        cluster.is_faulty = True
        await asyncio.sleep(0.5)
        assert cluster.get(claims, "default", "good").document["status"]["phase"] == "Bound"
        assert "expectedPods" in cluster.get(budgets, "default", "good").document["status"]
        cluster.is_faulty = False
        await asyncio.sleep(5)
        assert cluster.get(claims, "default", "bad").document["status"]["phase"] == "Bound"

    play(work)
