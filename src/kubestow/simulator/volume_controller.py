"""Binds claims to volumes and makes volumes for claims.

The scheduler only chooses the volume of a claim, or the node for which one should be made; it then
waits until a controller has done it. Here that is done at once: there are no disks, so making a
volume means writing the object.

    claim, volume chosen for it ─────────────────────────────► bound
    claim, Immediate ──── free volume that fits? ─── yes ────► bound
                                └─ no, class provisions ─────► volume made, bound
                                └─ neither: waits for a volume or a class
    claim, WaitForFirstConsumer ── selected-node annotation ─► volume made for that node, bound
    claim gone ──► its volume is released, or deleted by its reclaim policy
    volume gone ─► its claim is lost

Every action follows a change, and always uses the newest state of the changed object.
Not here: claims for ephemeral volumes (`ephemeral_volume_controller`), attaching and mounting, the
content of a new volume (`provisioned_volume`).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.node import Node
from kubestow.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.api.volume_claims import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    is_claimed_by,
    is_fully_bound,
    volume_class,
)
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import Watch, WatchEvent
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.client import update_patch
from kubestow.cluster.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    ApiResource,
)
from kubestow.errors import PluginError
from kubestow.plugins.volume_binding.affinity import selector_of
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.plugins.volume_binding.binding import claimed_volume
from kubestow.plugins.volume_binding.free_matching import FreeMatcher
from kubestow.plugins.volume_binding.free_volumes import AVAILABLE, VolumesByClass
from kubestow.plugins.volume_binding.matching import UnboundClaim
from kubestow.simulator.provisioned_volume import can_provision, provisioned_volume
from kubestow.simulator.standing import NOTHING_STANDS, StandingObjects

BOUND: Final = "Bound"
RELEASED: Final = "Released"
LOST: Final = "Lost"
DELETE: Final = "Delete"

T = TypeVar("T", bound=ApiObject)
_Key = tuple[str, str]


class VolumeController:
    """Simulates the volume binder and all provisioners of a cluster."""

    def __init__(
        self, cluster: MemoryCluster, *, standing: StandingObjects = NOTHING_STANDS
    ) -> None:
        """Claims among `standing` are left as they are, and so are volumes, unless
        another claim is bound to one."""
        self._cluster = cluster
        self._standing = standing
        self._guard = Guard("volume-controller")
        self._volumes = ObjectStore[PersistentVolume]()
        self._by_class = VolumesByClass(
            AssumeCache[PersistentVolume](self._volumes, "persistentvolumes")
        )
        self._volume_watch: Watch | None = None
        # Claims that wait for any volume of their class, by class, in the order they came.
        self._waiting: dict[str, dict[_Key, None]] = {}

    async def run(self) -> None:
        """Serve the claims until cancelled."""
        volumes = self._volume_watch = self._cluster.watch(PERSISTENT_VOLUMES)
        classes = self._cluster.watch(STORAGE_CLASSES)
        claims = self._cluster.watch(PERSISTENT_VOLUME_CLAIMS)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(volumes, self._after_volume))
                tasks.create_task(self._follow(classes, self._after_class))
                tasks.create_task(self._follow(claims, self._after_claim))
        finally:
            for watch in (volumes, classes, claims):
                watch.close()
            self._guard.close()

    # --- events ---

    async def _follow(self, watch: Watch, handle: Callable[[WatchEvent], None]) -> None:
        # A batch may be empty although the watch is open: `_after_claim` reads the volumes too.
        while not watch.is_closed:
            for event in await watch.next_batch():
                self._guard.run(event.stored, partial(handle, event))

    def _after_volume(self, event: WatchEvent) -> None:
        self._sync_volume(event.object.metadata.name)

    def _after_class(self, event: WatchEvent) -> None:
        self._serve_waiting(event.object.metadata.name)

    def _after_claim(self, event: WatchEvent) -> None:
        # Handle the volumes that were created before the claim first.
        assert self._volume_watch is not None
        for earlier in self._volume_watch.events_nowait():
            self._guard.run(earlier.stored, partial(self._after_volume, earlier))
        claim = event.object
        assert isinstance(claim, PersistentVolumeClaim), claim
        current = self._find(PersistentVolumeClaim, *_key(claim))
        if current is not None:
            self._sync_claim(current)
        if current is None or current.metadata.uid != claim.metadata.uid:
            self._stop_waiting(claim)
            for volume in self._by_class.of_class(claim_class(claim)).prebound_to(claim):
                self._sync_volume(volume.metadata.name)

    # --- volumes ---

    def _sync_volume(self, name: str) -> None:
        volume = self._find(PersistentVolume, "", name)
        if volume is None:
            gone = self._volumes.remove(name)
            claim = None if gone is None else self._claim_of(gone)
            if claim is not None:
                self._sync_claim(claim)
            return
        self._volumes.put(volume)
        ref = volume.spec.claim_ref
        claim = self._claim_of(volume)
        is_standing = volume in self._standing
        if claim is not None:
            self._sync_claim(claim)
        elif ref is not None and ref.uid:
            if not is_standing:
                self._release(volume)
        else:
            # Free, or reserved for a claim that does not exist yet.
            if not is_standing:
                self._set_volume_phase(volume, AVAILABLE)
            if ref is None:
                self._serve_waiting(volume_class(volume))

    def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that the volume names, if it exists."""
        ref = volume.spec.claim_ref
        claim = None if ref is None else self._find(PersistentVolumeClaim, ref.namespace, ref.name)
        return claim if claim is not None and is_claimed_by(volume, claim) else None

    def _release(self, volume: PersistentVolume) -> None:
        if volume.spec.persistent_volume_reclaim_policy == DELETE:
            self._cluster.delete(PERSISTENT_VOLUMES, "", volume.metadata.name)
        else:
            self._set_volume_phase(volume, RELEASED)

    # --- claims ---

    def _serve_waiting(self, class_name: str) -> None:
        """Try the waiting claims of a class again, as long as a volume is free or can be made."""
        for namespace, name in list(self._waiting.get(class_name, ())):
            claim = self._find(PersistentVolumeClaim, namespace, name)
            if claim is not None:
                self._sync_claim(claim)
            if not self._by_class.of_class(class_name).groups and not self._provisions(class_name):
                return

    def _sync_claim(self, claim: PersistentVolumeClaim) -> None:
        if claim.metadata.deletion_timestamp is not None or claim in self._standing:
            return
        if is_fully_bound(claim):
            volume = self._find(PersistentVolume, "", claim.spec.volume_name)
            if volume is None or not (
                volume.spec.claim_ref is None or is_claimed_by(volume, claim)
            ):
                self._set_claim_status(claim, {"phase": LOST})
                return
        else:
            volume = self._volume_for(claim)
        if volume is None:
            return
        self._stop_waiting(claim)
        self._bind(volume, claim)

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume for the claim, made if necessary; None if there is none yet."""
        if claim.spec.volume_name:
            volume = self._find(PersistentVolume, "", claim.spec.volume_name)
            is_ours = volume is not None and (
                volume.spec.claim_ref is None or is_claimed_by(volume, claim)
            )
            return volume if is_ours else None
        class_name = claim_class(claim)
        for volume in self._by_class.of_class(class_name).prebound_to(claim):
            if is_claimed_by(volume, claim):
                return volume
        storage_class = self._find(StorageClass, "", class_name) if class_name else None
        if (
            storage_class is not None
            and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        ):
            return self._provision_on_selected_node(claim, storage_class)
        volume = self._free_volume_for(claim)
        if volume is None and storage_class is not None and can_provision(storage_class):
            volume = self._provision(claim, storage_class, None)
        if volume is None:
            self._waiting.setdefault(class_name, {})[_key(claim)] = None
        return volume

    def _free_volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        volumes = self._by_class.of_class(claim_class(claim))
        try:
            unbound = UnboundClaim(claim, volumes)
        except PluginError:
            return None  # The selector is invalid and matches no volume.
        if unbound.prebound:
            first = unbound.prebound[0]
            return first if selector_of(first.spec.node_affinity) is None else None
        # There is no pod yet, so any node is accepted.
        matches = FreeMatcher(volumes, [unbound.demand]).match(tuple(volumes.groups))
        return matches[0].volume if matches else None

    def _provision_on_selected_node(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> PersistentVolume | None:
        node_name = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
        if node_name is None or not can_provision(storage_class):
            return None
        node = self._find(Node, "", node_name)
        if node is None:
            # A provisioner removes the annotation to request another node.
            patch: JsonObject = {"metadata": {"annotations": {SELECTED_NODE_ANNOTATION: None}}}
            self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, *_key(claim), patch, "merge")
            return None
        return self._provision(claim, storage_class, node)

    def _provisions(self, class_name: str) -> bool:
        storage_class = self._find(StorageClass, "", class_name)
        return storage_class is not None and can_provision(storage_class)

    def _provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None
    ) -> PersistentVolume:
        csi_node = None if node is None else self._find(CSINode, "", node.metadata.name)
        wanted = provisioned_volume(claim, storage_class, node, csi_node)
        made = self._find(PersistentVolume, "", wanted.metadata.name)
        if made is None:
            self._cluster.create(PERSISTENT_VOLUMES, to_document(wanted))
            made = self._find(PersistentVolume, "", wanted.metadata.name)
            assert made is not None
        return made

    # --- writing ---

    def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Write the binding into both the volume and the claim."""
        volume = self._write(PERSISTENT_VOLUMES, volume, claimed_volume(volume, claim))
        self._set_volume_phase(volume, BOUND)
        claim = self._write(PERSISTENT_VOLUME_CLAIMS, claim, _bound_claim(claim, volume))
        if claim.status.phase != BOUND:
            shown = to_document(volume.spec)
            status = {
                "phase": BOUND,
                "accessModes": shown.get("accessModes", []),
                "capacity": shown.get("capacity", {}),
            }
            self._set_claim_status(claim, status)

    def _set_volume_phase(self, volume: PersistentVolume, phase: str) -> None:
        if volume.status.phase != phase:
            self._cluster.patch(
                PERSISTENT_VOLUMES,
                *_key(volume),
                {"status": {"phase": phase}},
                "merge",
                subresource="status",
            )
        # Stored at once, before the watch event: the next claim must not get the same volume.
        current = self._find(PersistentVolume, *_key(volume))
        if current is not None:
            self._volumes.put(current)

    def _set_claim_status(self, claim: PersistentVolumeClaim, status: JsonObject) -> None:
        self._cluster.patch(
            PERSISTENT_VOLUME_CLAIMS,
            *_key(claim),
            {"status": status},
            "merge",
            subresource="status",
        )

    def _write(self, resource: ApiResource, old: T, new: T) -> T:
        patch = update_patch(old, new)
        if not patch:
            return old
        written = self._cluster.patch(resource, *_key(old), patch, "merge").typed
        assert isinstance(written, type(old)), written
        return written

    def _find(self, cls: type[T], namespace: str, name: str) -> T | None:
        found = self._cluster.find(self._cluster.resources.of_type(cls), namespace, name)
        typed = None if found is None else found.typed
        assert typed is None or isinstance(typed, cls), typed
        return typed

    def _stop_waiting(self, claim: PersistentVolumeClaim) -> None:
        self._waiting.get(claim_class(claim), {}).pop(_key(claim), None)


def _bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    if is_fully_bound(claim):
        return claim
    annotations = {**claim.metadata.annotations, BIND_COMPLETED_ANNOTATION: "yes"}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER_ANNOTATION] = "yes"
    return msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, annotations=annotations),
        spec=msgspec.structs.replace(claim.spec, volume_name=volume.metadata.name),
    )


def _key(api_object: ApiObject) -> _Key:
    return api_object.metadata.namespace, api_object.metadata.name
