"""The cluster of a run and a complete scheduler on it, with informers that never lag behind."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import numpy as np

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import Watch
from kubestow.apiserver.writes.patch import merge_patch
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import NANOSECONDS
from kubestow.cluster.informer import Informer
from kubestow.cluster.resources import POD_GROUPS, PODS, ApiResource
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import CORE
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition
from kubestow.engine.watching import ClusterWatcher
from kubestow.errors import NotFoundError
from kubestow.queue.queue import SchedulingQueue
from kubestow.simulator.conformance.runs.api import RunApi, RunClient
from kubestow.simulator.conformance.runs.observed import Observed
from kubestow.simulator.conformance.runs.parts import FailReserve, RunObserver, run_factory
from kubestow.simulator.virtual_time import VirtualClock

EPOCH_NS: Final = round(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * NANOSECONDS
GRACE_PERIOD_S: Final = 30
# As the recording names kinds, in the order in which they are created at first.
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "namespaces": ("v1", "Namespace"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "storageclasses": ("storage.k8s.io/v1", "StorageClass"),
    "csidrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "csinodes": ("storage.k8s.io/v1", "CSINode"),
    "csistoragecapacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "volumeattachments": ("storage.k8s.io/v1", "VolumeAttachment"),
    "deviceclasses": ("resource.k8s.io/v1", "DeviceClass"),
    "resourceslices": ("resource.k8s.io/v1", "ResourceSlice"),
    "nodes": ("v1", "Node"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "resourceclaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "pdbs": ("policy/v1", "PodDisruptionBudget"),
    "services": ("v1", "Service"),
    "compositepodgroups": ("scheduling.k8s.io/v1alpha3", "CompositePodGroup"),
    "podgroups": ("scheduling.k8s.io/v1alpha2", "PodGroup"),
    "pods": ("v1", "Pod"),
}


class StepError(Exception):
    """A step that cannot be done and changes nothing, as the recording words it."""


class RunWorld:
    """Everything of one run. Made inside a `SteppedLoop`."""

    def __init__(
        self, scenario: JsonObject, loop: asyncio.AbstractEventLoop, edition: Edition = CORE
    ) -> None:
        rules = rules_of(edition)
        gates = FeatureGates(dict.fromkeys(scenario.get("gates", ()), True), edition)
        self.clock = VirtualClock(loop, EPOCH_NS)
        self.observed = Observed()
        self._removes_at_once = scenario["deletion"] == "remove"
        self.cluster = MemoryCluster(self.clock, admission=False, gates=gates)
        self.api = RunApi(self.cluster, self.deliver)
        # Pod → steps to do while it is tried next.
        self.during: dict[str, list[JsonObject]] = {}
        self.failing_reserves: dict[str, int] = {}
        # The snapshot's own entries, while a cycle goes on with copies.
        self._live_infos: list[NodeInfo] | None = None
        client = RunClient(self.cluster, self.api, self._delete_pod)
        factory = run_factory(rules.factory)(
            config=_config_of(scenario),
            client=client,
            objects=ClusterObjects(),
            events=lambda profile_name: self.observed,
            clock=self.clock,
            gates=gates,
            registry={**rules.registry, FailReserve.name: FailReserve},
            observers=[RunObserver(self.api, self.observed, self._run_during)],
        )
        factory.api = self.api
        self.scheduler = factory.build()
        for profile in self.scheduler.profiles.values():
            plugin = profile.plugins.get(FailReserve.name)
            if isinstance(plugin, FailReserve):
                plugin.failing = self.failing_reserves
        assert isinstance(self.scheduler.queue, SchedulingQueue)
        self.queue = self.scheduler.queue
        watcher = ClusterWatcher(client, self.scheduler, self.clock, np.random.default_rng(0))
        # Any: informers of different kinds in one list.
        self._watches: list[tuple[Informer[Any], Watch]] = [
            (informer, self._watch(informer)) for informer in watcher.informers
        ]

    # --- steps ---

    def create(self, kind: str, document: JsonObject) -> None:
        resource = self.resource(kind)
        metadata = document["metadata"]
        if self.cluster.find(resource, metadata.get("namespace", ""), metadata["name"]):
            raise StepError("already exists")
        self.cluster.create(resource, document)
        self.deliver()

    def patch(self, kind: str, name: str, patch: JsonObject) -> None:
        resource = self.resource(kind)
        old = self.cluster.find(resource, *_split(name))
        if old is None:
            raise StepError("not found")
        is_binding = kind == "pods" and "nodeName" in (patch.get("spec") or {})
        if is_binding and old.document["spec"].get("nodeName"):
            raise StepError("already bound")
        document = merge_patch(old.document, patch)
        if "spec" in patch:
            metadata = document["metadata"]
            generation = metadata.get("generation", 0) + 1
            document = {**document, "metadata": {**metadata, "generation": generation}}
        self.put(kind, document)

    def put(self, kind: str, document: JsonObject) -> None:
        """Store an object as it is, new or not."""
        resource, metadata = self.resource(kind), document["metadata"]
        if self.cluster.find(resource, metadata.get("namespace", ""), metadata["name"]) is None:
            self.cluster.create(resource, document)
        else:
            self.cluster.replace(resource, document)
        self.deliver()

    def delete(self, kind: str, name: str) -> None:
        namespace, bare_name = _split(name)
        try:
            if kind == "pods":
                self._delete_pod(namespace, bare_name)
            else:
                self.cluster.delete(self.resource(kind), namespace, bare_name)
        except NotFoundError:
            raise StepError("not found") from None
        self.deliver()

    def reap(self) -> list[str]:
        """Remove the pods that are being deleted; their keys, in the order of creation."""
        reaped = [
            stored
            for stored in self.cluster.objects_of(PODS)
            if "deletionTimestamp" in stored.metadata
        ]
        for stored in reaped:
            self.cluster.finish_termination(*stored.key)
            self.deliver()
        return ["/".join(stored.key) for stored in reaped]

    def resource(self, kind: str) -> ApiResource:
        if kind == "podgroups":  # of the version that the edition has
            return self.cluster.resources.named(POD_GROUPS.qualified_name)
        return self.cluster.resources.of_kind(*KINDS[kind])

    @contextmanager
    def cycle(self) -> Generator[None]:
        """Run one scheduling cycle inside: its writes are served at once."""
        self.api.is_in_cycle = True
        try:
            yield
        finally:
            self.api.is_in_cycle = False
            if self._live_infos is not None:
                self.scheduler.snapshot.node_infos = self._live_infos
                self._live_infos = None

    def take(self) -> JsonObject:
        """What the scheduler did since the last call."""
        writes, self.api.writes = self.api.writes, []
        return self.observed.take(writes)

    # --- inside ---

    def _delete_pod(self, namespace: str, name: str) -> None:
        stored = self.cluster.get(PODS, namespace, name)
        stays = stored.document["spec"].get("nodeName") and not self._removes_at_once
        grace_period_s = GRACE_PERIOD_S if stays else 0
        self.cluster.delete(PODS, namespace, name, grace_period_s=grace_period_s)

    def _watch(self, informer: Informer[Any]) -> Watch:
        """A watch of all objects of the kind: the recorder's API server selects none, so that a pod
        which has ended stays known."""
        return self.cluster.watch(self.cluster.resources.of_type(informer.cls))

    def deliver(self) -> None:
        for informer, watch in self._watches:
            informer.deliver(watch.events_nowait())

    def _run_during(self, pod: str) -> None:
        """Do what the recording did right after the search for a node for this pod.

        The snapshot shares pod lists with the cache, since nothing changes during our cycles. Here
        something does, and PostFilter must still see the lists of before.
        """
        steps = self.during.pop(pod, None)
        if steps is None:
            return
        snapshot = self.scheduler.snapshot
        self._live_infos = snapshot.node_infos
        snapshot.node_infos = [info.clone() for info in snapshot.node_infos]
        for step in steps:
            with suppress(StepError):  # Such steps change nothing.
                self.do(step)

    def do(self, step: JsonObject) -> None:
        """Create, patch or delete."""
        match step["do"]:
            case "create":
                self.create(step["kind"], step["object"])
            case "patch":
                self.patch(step["kind"], step["name"], step["patch"])
            case "delete":
                self.delete(step["kind"], step["name"])
            case unknown:
                raise ValueError(f"unknown step {unknown!r}")


def _config_of(scenario: JsonObject) -> SchedulerConfig:
    profiles = [scenario.get("config", {}), *scenario.get("otherProfiles", ())]
    return SchedulerConfig(
        # As recorded.
        parallelism=1,
        percentage_of_nodes_to_score=100,
        profiles=tuple(msgspec.convert(profile, ProfileConfig) for profile in profiles),
    )


def _split(name: str) -> tuple[str, str]:
    namespace, _, bare_name = name.rpartition("/")
    return namespace, bare_name
