"""A store with controllers and fake kubelets, in virtual time; pods are bound by hand.

`World` has the controllers of workloads; `ServedWorld` has all that `demo --serve` runs, and nodes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.garbage_collector import GarbageCollector
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchGroup
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import EVENTS, NAMESPACES, NODES, PODS
from kubestow.simulator.controllers.daemon_set import DaemonSetController
from kubestow.simulator.controllers.deployment import DeploymentController
from kubestow.simulator.controllers.disruption import DisruptionController
from kubestow.simulator.controllers.job import JobController
from kubestow.simulator.controllers.replica_set import ReplicaSetController
from kubestow.simulator.controllers.stateful_set import StatefulSetController
from kubestow.simulator.event_log import EventLog
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.served import ServedOptions, controllers_for
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


class Binder:
    """The simplest scheduler: it binds every pod to its named node, or to the one node."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.is_paused = False
        self._cluster = cluster

    async def run(self) -> None:
        watch = self._cluster.watch(PODS)
        while batch := await watch.next_batch():
            for event in batch:
                stored = self._cluster.find(PODS, *event.stored.key)
                if self.is_paused or stored is None or "deletionTimestamp" in stored.metadata:
                    continue
                if not value_at(stored.document, "spec", "nodeName"):
                    self._cluster.bind(*stored.key, "n1")


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.cluster = MemoryCluster(self.clock)
        self.binder = Binder(self.cluster)
        parts = (self.cluster, self.clock, EventLog(self.cluster, self.clock))
        self.kubelets = FakeKubelets(self.cluster, self.clock, start_delay_s=1, stop_s=1)
        self._runners: list[Any] = [
            self.binder,
            self.kubelets,
            GarbageCollector(self.cluster),
            DeploymentController(*parts),
            ReplicaSetController(*parts),
            StatefulSetController(*parts),
            DaemonSetController(*parts),
            JobController(*parts),
            DisruptionController(self.cluster, self.clock),
        ]

    async def run(self, work: "Callable[[World], Awaitable[None]]") -> None:
        tasks = [asyncio.create_task(runner.run()) for runner in self._runners]
        try:
            await work(self)
            for task in tasks:
                assert not task.done(), task
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    # --- For tests ----------------------------------------------------------------------------

    def make(self, document: JsonObject) -> StoredObject:
        (stored,) = self.cluster.load([document])
        return stored

    def get(self, resource: str, name: str) -> JsonObject:
        return self.cluster.get(self.cluster.resources.named(resource), "default", name).document

    def all(self, resource: str) -> list[JsonObject]:
        named = self.cluster.resources.named(resource)
        return [stored.document for stored in self.cluster.list(named).items]

    def pods(self, *, alive: bool = True) -> list[JsonObject]:
        return [
            pod
            for pod in self.all("pods")
            if not alive or "deletionTimestamp" not in pod["metadata"]
        ]

    def patch(self, resource: str, name: str, patch: JsonObject) -> None:
        named = self.cluster.resources.named(resource)
        self.cluster.patch(named, "default", name, patch, "merge")

    def delete(self, resource: str, name: str) -> None:
        named = self.cluster.resources.named(resource)
        self.cluster.delete(named, "default", name)

    def notes(self, reason: str) -> list[str]:
        """The notes of the events with a reason, in order."""
        found = [stored.document for stored in self.cluster.objects_of(EVENTS)]
        found.sort(key=lambda event: event["metadata"]["name"].rsplit(".")[-1])
        return [event["note"] for event in found if event["reason"] == reason]


class NodeBinder(Binder):
    """Binds every pod to the first node without taints that has the fewest pods."""

    async def run(self) -> None:
        group = WatchGroup((self._cluster.watch(NODES), self._cluster.watch(PODS)))
        while True:
            await group.wait()
            group.events_nowait()
            for stored in list(self._cluster.objects_of(PODS)):
                if not value_at(stored.document, "spec", "nodeName") and (node := self._choose()):
                    self._cluster.bind(*stored.key, node)

    def _choose(self) -> str:
        used = [
            value_at(pod.document, "spec", "nodeName") for pod in self._cluster.objects_of(PODS)
        ]
        free = [
            stored.name
            for stored in self._cluster.list(NODES).items
            if not value_at(stored.document, "spec", "taints")
        ]
        return min(free, key=used.count, default="")


class ServedWorld(World):
    """The nodes n1, n2 and n3 in zones of their own."""

    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.cluster = MemoryCluster(self.clock, namespace_lifecycle=True)
        for name in ("default", "kube-node-lease"):
            self.cluster.create(NAMESPACES, {"metadata": {"name": name}})
        for name in ("n1", "n2", "n3"):
            self.make_node(name)
        options = ServedOptions(start_delay_s=1, stop_s=1)
        controllers = controllers_for(self.cluster, self.clock, options, b"PEM")
        self._runners = [NodeBinder(self.cluster), *controllers]

    def make_node(self, name: str, **status: Any) -> StoredObject:
        metadata = {"name": name, "labels": {"topology.kubernetes.io/zone": f"zone-{name}"}}
        return self.cluster.create(NODES, {"metadata": metadata, "status": status})

    def node(self, name: str) -> JsonObject:
        return self.cluster.get(NODES, "", name).document

    def taint(self, name: str, *taints: JsonObject) -> None:
        patch: JsonObject = {"spec": {"taints": list(taints)}}
        self.cluster.patch(NODES, "", name, patch, "merge")

    def taints(self, name: str) -> set[tuple[str, str]]:
        found = self.node(name).get("spec", {}).get("taints", [])
        return {(taint["key"], taint["effect"]) for taint in found}

    def stop_kubelet(self, name: str, *, stop: bool = True) -> None:
        annotation = {"kubestow.io/kubelet": "stopped" if stop else None}
        patch: JsonObject = {"metadata": {"annotations": annotation}}
        self.cluster.patch(NODES, "", name, patch, "merge")

    def condition(self, document: JsonObject, type: str) -> JsonObject:
        found = [one for one in document["status"]["conditions"] if one["type"] == type]
        return found[0] if found else {}

    def make_pod(self, name: str, node_name: str, **spec: Any) -> None:
        containers = [{"name": "main", "image": "nginx"}]
        metadata = {"name": name, "namespace": "default"}
        spec = {"containers": containers, "nodeName": node_name, **spec}
        self.cluster.create(PODS, {"metadata": metadata, "spec": spec})


Play = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def play() -> Play:
    """Runs a coroutine function with a world of its own, in virtual time."""

    def run(work: Callable[[World], Awaitable[None]]) -> None:
        async def inside() -> None:
            await World().run(work)

        run_in_virtual_time(inside())

    return run


@pytest.fixture
def serve() -> Play:
    """Runs a coroutine function with a served world of its own, in virtual time."""

    def run(work: Callable[[Any], Awaitable[None]]) -> None:
        async def inside() -> None:
            await ServedWorld().run(work)

        run_in_virtual_time(inside())

    return run


def workload(kind: str, *, template: JsonObject | None = None, **spec: Any) -> JsonObject:
    labels = {"app": "web"}
    is_job = kind == "Job"
    pod_spec: JsonObject = {
        "containers": [{"name": "main", "image": "nginx"}],
        "terminationGracePeriodSeconds": 5,
        **({"restartPolicy": "Never"} if is_job else {}),
        **(template or {}),
    }
    selector: JsonObject = {} if is_job else {"selector": {"matchLabels": labels}}
    return {
        "apiVersion": "batch/v1" if is_job else "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            **selector,
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
            **spec,
        },
    }


@pytest.fixture(name="workload")
def workload_fixture() -> Callable[..., JsonObject]:
    return workload
