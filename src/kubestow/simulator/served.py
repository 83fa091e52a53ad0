"""An embedded cluster that kubectl can use, in real time.

The store, the scheduler, the controllers and the fake kubelets run on one loop, with the API server
in front. What is created over HTTP is scheduled, started, scaled and removed as in any cluster,
except that no container ever runs.
"""

import asyncio
import errno
import os
import secrets
import ssl
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.emptying import DefinitionController, NamespaceController
from kubestow.apiserver.controllers.garbage_collector import GarbageCollector
from kubestow.apiserver.controllers.group_protection import GroupProtection
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes import namespaces
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object
from kubestow.cluster.self_signed import LOOPBACK, self_signed
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.engine.observer import DecisionListener
from kubestow.engine.profiles import Registry
from kubestow.errors import InputError
from kubestow.recording.recording import RecordTo
from kubestow.simulator.cluster_file import LoadReport, load_cluster_files
from kubestow.simulator.controllers.cron_job import CronJobController
from kubestow.simulator.controllers.daemon_set import DaemonSetController
from kubestow.simulator.controllers.deployment import DeploymentController
from kubestow.simulator.controllers.disruption import DisruptionController
from kubestow.simulator.controllers.job import JobController
from kubestow.simulator.controllers.namespace_content import NamespaceContent
from kubestow.simulator.controllers.node_lifecycle import NodeLifecycle
from kubestow.simulator.controllers.pod_gc import PodGC
from kubestow.simulator.controllers.replica_set import ReplicaSetController
from kubestow.simulator.controllers.stateful_set import StatefulSetController
from kubestow.simulator.controllers.taint_eviction import TaintEviction
from kubestow.simulator.defaults import NODE_COUNT, NODE_GRACE_S
from kubestow.simulator.embedded import Controller, EmbeddedCluster, run_part
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.event_log import EventLog
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.heartbeats import Heartbeats
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.node_registration import NodeRegistration
from kubestow.simulator.node_shapes import NodeShape, node_documents
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.volume_controller import VolumeController

# Fast, but slow enough to be visible.
START_DELAY_S: Final = 0.4
STOP_S: Final = 0.6


class ServedOptions(msgspec.Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    # 0 takes a free one.
    port: int = 0
    # How many nodes of each shape that gives no number; None: 10, or none if nodes were loaded.
    nodes: int | None = None
    shapes: tuple[NodeShape, ...] = (NodeShape(),)
    # Without one, pods wait for a scheduler that connects over HTTP.
    has_scheduler: bool = True
    # How long pods take to start, and to stop.
    start_delay_s: float = START_DELAY_S
    stop_s: float = STOP_S
    # How long a node may be silent before it counts as lost.
    node_grace_s: float = NODE_GRACE_S
    # Those of the API server and of the scheduler.
    gates: FeatureGates = DEFAULT_GATES
    # A file for what the scheduler sees and decides.
    record: RecordTo | None = None


class ServedCluster:
    """Build it inside a running event loop, then use it as `async with cluster.serving(path)`."""

    def __init__(
        self,
        options: ServedOptions,
        clock: Clock,
        *,
        config: SchedulerConfig | None = None,
        registry: Registry | None = None,
        listeners: Iterable[DecisionListener] = (),
        documents: Sequence[Document] = (),
        metrics: SchedulerMetrics = NO_SCHEDULER_METRICS,
    ) -> None:
        """`documents` are the objects to begin with, besides those that every cluster has."""
        self._options = options
        self._clock = clock
        self._config = config or SchedulerConfig()
        self._registry = registry
        self._listeners = tuple(listeners)
        self._metrics = metrics
        # UIDs differ from those of earlier runs, whose objects may be loaded.
        seed = secrets.randbits(64)
        self.store: Final = MemoryCluster(
            clock, namespace_lifecycle=True, seed=seed, gates=options.gates
        )
        self.loaded: Final = self._load(documents)
        self._token = secrets.token_urlsafe(24)
        self.server: Final = ApiServer(self.store, clock, token=self._token)
        self.url = ""
        self.kubeconfig: KubeconfigFile | None = None
        # The name of the context in the kubeconfig.
        self.context = ""
        # What acts on the cluster besides its controllers; while nothing runs it can be added to.
        self.parts: Final[list[Controller]] = []
        # While the cluster runs, and only with a scheduler.
        self.embedded: EmbeddedCluster | None = None

    def _load(self, documents: Sequence[Document]) -> LoadReport:
        options = self._options
        given = {_identity(document.raw) for document in documents}
        has_nodes = any(kind == "Node" for kind, _, _ in given)
        count = options.nodes
        if count is None:
            count = 0 if has_nodes else NODE_COUNT
        first = [*first_objects(), *node_documents(options.shapes, count)]
        own = [Document(one, "built-in") for one in first if _identity(one) not in given]
        own += definitions_for(self._config, (document.raw for document in documents))
        report = load_cluster_files(self.store, [*own, *documents])
        return report._replace(object_count=report.object_count - len(own))

    @asynccontextmanager
    async def serving(self, kubeconfig_path: Path) -> AsyncGenerator[None, None]:
        """Run everything and write the kubeconfig; on leaving, stop and take our part out of it.

        InputError if the kubeconfig or the port cannot be used.
        """
        file = self.kubeconfig = KubeconfigFile(kubeconfig_path)
        host = self._options.host
        certificate = self_signed({*LOOPBACK, host}, now_ns=self._clock.now_ns())
        async with self._running(certificate.authority):
            try:
                port = await self._listen(certificate.server_context())
                self.url = f"https://{host}:{port}"
                self.context = file.add(
                    kubeconfig(url=self.url, authority=certificate.authority, token=self._token)
                )
                yield
            finally:
                file.remove()
                await self.server.close()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run everything, without a port for kubectl."""
        certificate = self_signed(LOOPBACK, now_ns=self._clock.now_ns())
        async with self._running(certificate.authority):
            yield

    async def _listen(self, tls: ssl.SSLContext) -> int:
        host, port = self._options.host, self._options.port
        try:
            return await self.server.start(host=host, port=port, tls=tls)
        except OSError as error:
            is_taken = error.errno == errno.EADDRINUSE
            problem = "the port is in use" if is_taken else os.strerror(error.errno or 0)
            raise InputError(
                f'cannot serve on "{host}:{port}": {problem}; choose another port, or 0 for a free'
                " one"
            ) from error

    @asynccontextmanager
    async def _running(self, authority: bytes) -> AsyncGenerator[None, None]:
        """Run the controllers, with a scheduler or without."""
        controllers = [
            *controllers_for(self.store, self._clock, self._options, authority),
            *self.parts,
        ]
        if self._options.has_scheduler:
            self.embedded = embedded = EmbeddedCluster(
                self.store,
                self._config,
                self._clock,
                registry=self._registry,
                listeners=self._listeners,
                controllers=controllers,
                # The API server has to answer while an extender is asked.
                extenders_in_thread=True,
                gates=self._options.gates,
                record=self._options.record,
                metrics=self._metrics,
            )
            async with embedded.running(), _written(embedded):
                yield
            return
        tasks = [asyncio.create_task(run_part(controller)) for controller in controllers]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _written(embedded: EmbeddedCluster) -> AsyncGenerator[None, None]:
    """Write the recording, if there is one, to its file while the cluster runs."""
    if embedded.recording is None:
        yield
        return
    writing = asyncio.create_task(embedded.recording.run(embedded.scheduler))
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


def controllers_for(
    store: MemoryCluster, clock: Clock, options: ServedOptions, authority: bytes
) -> list[Controller]:
    """All controllers and simulated kubelets of the cluster."""
    log = EventLog(store, clock)
    return [
        NodeRegistration(store, clock),
        Heartbeats(store, clock),
        NodeLifecycle(store, clock, log, grace_s=options.node_grace_s),
        TaintEviction(store, clock, log),
        PodGC(store, clock),
        FakeKubelets(
            store, clock, start_delay_s=options.start_delay_s, stop_s=options.stop_s, log=log
        ),
        DeploymentController(store, clock, log),
        ReplicaSetController(store, clock, log),
        StatefulSetController(store, clock, log),
        DaemonSetController(store, clock, log),
        JobController(store, clock, log),
        CronJobController(store, clock, log),
        DisruptionController(store, clock),
        VolumeController(store),
        EphemeralVolumeController(store),
        ResourceClaimController(store),
        GarbageCollector(store),
        GroupProtection(store),
        NamespaceController(store),
        NamespaceContent(store, authority=authority),
        DefinitionController(store),
    ]


def first_objects() -> list[JsonObject]:
    """What every cluster has: namespaces, a service, a storage class."""
    documents: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (namespaces.DEFAULT, *namespaces.SYSTEM)
    ]
    documents.append(_own_service())
    documents.append(_default_storage_class())
    return documents


def _identity(document: JsonObject) -> tuple[str, str, str]:
    metadata = as_object(document.get("metadata"))
    kind: str = document.get("kind", "")
    return kind, metadata.get("namespace") or "", metadata.get("name") or ""


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
