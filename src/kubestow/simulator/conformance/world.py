"""The cluster of a scenario, set up as in the recording.

No queue runs here and nothing is written to an API server: the recorded sequence determines which
pod is tried next and its result.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubestow.api.decode import KINDS, convert, to_document
from kubestow.api.device import ResourceClaim, ResourceClaimStatus
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminal
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.resources import RESOURCE_CLAIMS
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import CORE
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition
from kubestow.engine.deciding import DecidingHalf, NoQueue, drop_work
from kubestow.engine.profiles import Registry
from kubestow.framework.profile import Profile

# Key in `objects` → store of ClusterObjects and kind; nodes and pods are handled on their own.
_STORES: Mapping[str, tuple[str, str]] = {
    "namespaces": ("namespaces", "Namespace"),
    "services": ("services", "Service"),
    "replicationcontrollers": ("replication_controllers", "ReplicationController"),
    "replicasets": ("replica_sets", "ReplicaSet"),
    "statefulsets": ("stateful_sets", "StatefulSet"),
    "pdbs": ("pod_disruption_budgets", "PodDisruptionBudget"),
    "pvs": ("persistent_volumes", "PersistentVolume"),
    "pvcs": ("persistent_volume_claims", "PersistentVolumeClaim"),
    "storageclasses": ("storage_classes", "StorageClass"),
    "csinodes": ("csi_nodes", "CSINode"),
    "csidrivers": ("csi_drivers", "CSIDriver"),
    "csistoragecapacities": ("csi_storage_capacities", "CSIStorageCapacity"),
    "volumeattachments": ("volume_attachments", "VolumeAttachment"),
    "priorityclasses": ("priority_classes", "PriorityClass"),
    "deviceclasses": ("device_classes", "DeviceClass"),
    "resourceslices": ("resource_slices", "ResourceSlice"),
    "resourceclaims": ("resource_claims", "ResourceClaim"),
    "devicetaintrules": ("device_taint_rules", "DeviceTaintRule"),
}


class World:
    """Cache, stores, profiles and nominations of one scenario."""

    def __init__(
        self,
        scenario: JsonObject,
        *,
        clock: Clock,
        edition: Edition = CORE,
        registry: Registry | None = None,
    ) -> None:
        rules = rules_of(edition)
        self.objects = ClusterObjects()
        self.cache = rules.factory.cache_type()
        queue = NoQueue(self.objects)
        self.nominator, self.incoming = queue.nominator, queue.waiting
        self._spawned: list[Coroutine[Any, Any, None]] = []
        self._clock = clock
        # Receives the writes of plugins; the results of pods come from the recorded sequence.
        self._cluster = MemoryCluster(clock, admission=False)
        self._follows_claims = bool(scenario["objects"].get("deviceclasses"))
        self._load(scenario)
        deciding = DecidingHalf(
            config=_config_of(scenario),
            objects=self.objects,
            clock=clock,
            client=MemoryClient(self._cluster),
            make_queue=lambda _: queue,
            registry=rules.registry if registry is None else registry,
            gates=FeatureGates(dict.fromkeys(scenario.get("gates", ()), True), edition),
            cache=self.cache,
            # Elsewhere the effect of spawned work, such as evictions, is part of the sequence.
            spawn=self._spawned.append if self._follows_claims else drop_work,
        )
        self.snapshot, self.profiles = deciding.snapshot, deciding.profiles
        self.decider = deciding.decider

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ns() / NANOSECONDS, UTC)

    def profile_of(self, pod: PodInfo) -> Profile:
        return self.profiles[pod.pod.spec.scheduler_name]

    # --- what the recorded sequence does to the cluster ---

    def assume(self, pod: PodInfo, node_name: str) -> PodInfo:
        assumed = pod.assigned_to(node_name)
        self.cache.assume_pod(assumed)
        self.nominator.delete(pod.pod)
        return assumed

    def replace_incoming(self, pod: Pod) -> None:
        """Set a new version of a waiting pod, with another status."""
        info = self.cache.info_of(pod)
        self.incoming[info.key] = info
        self.objects.pods.put(pod)

    def replace_running(self, old: Pod, new: Pod) -> None:
        # An assumed pod cannot be updated: the API has to confirm it first.
        if self.cache.is_assumed(old):
            self.cache.add_pod(self.cache.info_of(old))
        self.cache.update_pod(old, self.cache.info_of(new))
        self.objects.pods.put(new)

    def remove_running(self, pod: Pod) -> None:
        self.cache.remove_pod(pod)
        self.objects.pods.remove(pod.metadata.namespace, pod.metadata.name)

    def forget(self, assumed: PodInfo) -> None:
        """Undo `assume`."""
        self.cache.forget_pod(assumed.pod)

    def run_spawned(self) -> None:
        """Run the work that plugins spawned, such as releasing a claim."""
        while self._spawned:
            asyncio.get_event_loop().run_until_complete(self._spawned.pop(0))
        self.follow_cluster()

    def drop_spawned(self) -> None:
        """Leave out the work that plugins spawned: its effect is part of the recording."""
        while self._spawned:
            self._spawned.pop().close()

    def deallocate(self, claim: ResourceClaim | None) -> None:
        """The recorded scheduler took a claim's allocation away, if the claim exists here."""
        if claim is not None:
            new = msgspec.structs.replace(claim, status=ResourceClaimStatus())
            self._cluster.update(RESOURCE_CLAIMS, to_document(new), subresource="status")
            self.follow_cluster()

    def delete_claim(self, claim: ResourceClaim | None) -> None:
        """The recorded scheduler deleted a claim, if it exists here."""
        if claim is not None:
            metadata = msgspec.structs.replace(claim.metadata, finalizers=())
            new = msgspec.structs.replace(claim, metadata=metadata)
            self._cluster.update(RESOURCE_CLAIMS, to_document(new))
            self._cluster.delete(RESOURCE_CLAIMS, metadata.namespace, metadata.name)
            self.follow_cluster()

    def follow_cluster(self) -> None:
        """Update the store of claims from the cluster, as an informer would."""
        store = self.objects.resource_claims
        written = {stored.key: stored.typed for stored in self._cluster.objects_of(RESOURCE_CLAIMS)}
        for claim in store.list():
            if (claim.metadata.namespace, claim.metadata.name) not in written:
                store.remove(claim.metadata.namespace, claim.metadata.name)
        for (namespace, name), claim in written.items():
            if isinstance(claim, ResourceClaim) and store.get(namespace, name) is not claim:
                store.put(claim)

    # --- setting up ---

    def _load(self, scenario: JsonObject) -> None:
        recorded: Mapping[str, list[JsonObject]] = scenario["objects"]
        if self._follows_claims:
            # PreBind writes claims and pods, so they must exist in the cluster.
            self._cluster.load([*recorded.get("resourceclaims", ()), *scenario["incoming"]])
            self.follow_cluster()
        for key, (store, kind) in _STORES.items():
            if kind == "ResourceClaim" and self._follows_claims:
                continue
            for obj in self._typed(kind, recorded.get(key, ())):
                getattr(self.objects, store).put(obj)
        for node in self._typed("Node", recorded.get("nodes", ())):
            assert isinstance(node, Node)
            self.objects.nodes.put(node)
            self.cache.add_node(node)
        for pod in self._typed("Pod", recorded.get("pods", ())):
            assert isinstance(pod, Pod)
            if not is_terminal(pod):
                self.objects.pods.put(pod)
                self.cache.add_pod(self.cache.info_of(pod))
        for pod in self._typed("Pod", scenario["incoming"]):
            assert isinstance(pod, Pod)
            self.replace_incoming(pod)
            self.nominator.add(pod)

    def _typed(self, kind: str, documents: Iterable[JsonObject]) -> Iterable[ApiObject]:
        return [convert(KINDS[kind], document) for document in documents]


def _config_of(scenario: JsonObject) -> SchedulerConfig:
    profiles = (scenario.get("config", {}), *scenario.get("otherProfiles", ()))
    return SchedulerConfig(
        percentage_of_nodes_to_score=scenario.get("scheduler", {}).get(
            "percentageOfNodesToScore", 100
        ),
        profiles=tuple(msgspec.convert(profile, ProfileConfig) for profile in profiles),
    )
