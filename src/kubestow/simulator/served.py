"""An embedded cluster that kubectl can use, in real time.

The store, the scheduler, the controllers and the fake kubelets run on one loop, with the API server
in front. What is created over HTTP is scheduled, started, scaled and removed as in any cluster,
except that no container ever runs.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.garbage_collector import GarbageCollector
from kubestow.apiserver.controllers.namespace_controller import NamespaceController
from kubestow.apiserver.http.kubeconfig import kubeconfig, remove_kubeconfig, write_kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes import namespaces
from kubestow.clock import Clock
from kubestow.cluster.self_signed import LOOPBACK, self_signed
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.scheduler import DecisionListener
from kubestow.simulator.controllers.daemon_set import DaemonSetController
from kubestow.simulator.controllers.deployment import DeploymentController
from kubestow.simulator.controllers.disruption import DisruptionController
from kubestow.simulator.controllers.job import JobController
from kubestow.simulator.controllers.replica_set import ReplicaSetController
from kubestow.simulator.controllers.stateful_set import StatefulSetController
from kubestow.simulator.embedded import Controller, EmbeddedCluster
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.event_log import EventLog
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.node_registration import NodeRegistration
from kubestow.simulator.volume_controller import VolumeController

ZONES: Final = ("zone-a", "zone-b", "zone-c")
# Fast, but slow enough to be visible.
START_DELAY_S: Final = 0.4
STOP_S: Final = 0.6


class ServedOptions(msgspec.Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    # 0 takes a free one.
    port: int = 0
    nodes: int = 10
    # Without one, pods wait for a scheduler that connects over HTTP.
    has_scheduler: bool = True
    # How long pods take to start, and to stop.
    start_delay_s: float = START_DELAY_S
    stop_s: float = STOP_S


class ServedCluster:
    """Build it inside a running event loop, then use it as `async with cluster.serving(path)`."""

    def __init__(
        self,
        options: ServedOptions,
        clock: Clock,
        *,
        config: SchedulerConfig | None = None,
        listeners: Iterable[DecisionListener] = (),
    ) -> None:
        self._options = options
        self._clock = clock
        self._config = config or SchedulerConfig()
        self._listeners = tuple(listeners)
        self.store: Final = MemoryCluster(clock, namespace_lifecycle=True)
        self.store.load(first_objects(options.nodes))
        self._token = secrets.token_urlsafe(24)
        self.server: Final = ApiServer(self.store, clock, token=self._token)
        self.url = ""

    @asynccontextmanager
    async def serving(self, kubeconfig_path: Path) -> AsyncGenerator[None, None]:
        """Run everything and write the kubeconfig; on leaving, stop and remove the file."""
        host = self._options.host
        certificate = self_signed({*LOOPBACK, host}, now_ns=self._clock.now_ns())
        async with self._running():
            port = await self.server.start(
                host=host, port=self._options.port, tls=certificate.server_context()
            )
            self.url = f"https://{host}:{port}"
            config = kubeconfig(url=self.url, authority=certificate.authority, token=self._token)
            write_kubeconfig(kubeconfig_path, config)
            try:
                yield
            finally:
                remove_kubeconfig(kubeconfig_path)
                await self.server.close()

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None, None]:
        """Run the controllers, with a scheduler or without."""
        controllers = controllers_for(self.store, self._clock, self._options)
        if self._options.has_scheduler:
            embedded = EmbeddedCluster(
                self.store,
                self._config,
                self._clock,
                listeners=self._listeners,
                controllers=controllers,
            )
            async with embedded.running():
                yield
            return
        tasks = [asyncio.create_task(controller.run()) for controller in controllers]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def controllers_for(store: MemoryCluster, clock: Clock, options: ServedOptions) -> list[Controller]:
    """All controllers and simulated kubelets of the cluster."""
    log = EventLog(store, clock)
    return [
        NodeRegistration(store, clock),
        FakeKubelets(
            store, clock, start_delay_s=options.start_delay_s, stop_s=options.stop_s, log=log
        ),
        DeploymentController(store, clock, log),
        ReplicaSetController(store, clock, log),
        StatefulSetController(store, clock, log),
        DaemonSetController(store, clock, log),
        JobController(store, clock, log),
        DisruptionController(store, clock),
        VolumeController(store),
        EphemeralVolumeController(store),
        GarbageCollector(store),
        NamespaceController(store),
    ]


def first_objects(node_count: int) -> list[JsonObject]:
    """The initial objects: namespaces, nodes, a service, a storage class."""
    documents: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (namespaces.DEFAULT, *namespaces.SYSTEM)
    ]
    documents.append(_own_service())
    documents.append(_default_storage_class())
    return [*documents, *(_node(index) for index in range(node_count))]


def _own_service() -> JsonObject:
    """The name under which pods of a real cluster would find the API server."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": namespaces.DEFAULT},
        "spec": {"ports": [{"name": "https", "port": 443}]},
    }


def _default_storage_class() -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubestow.io/pretended",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _node(index: int) -> JsonObject:
    name = f"node-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
            },
        },
        "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
    }
