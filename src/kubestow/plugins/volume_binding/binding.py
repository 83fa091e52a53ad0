"""Executes the decisions about a pod's volumes (spec 07 §2.8, §2.9).

Reserve puts the decided volumes and claims into the assume cache, so that no other pod gets them.
PreBind writes them and waits until a volume controller has bound the chosen volume, or provisioned
one and bound it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from kubestow.api.meta import ApiObject, ObjectReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.volume_claims import (
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    is_claimed_by,
    is_fully_bound,
)
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.errors import ApiError, PluginError
from kubestow.plugins.volume_binding.affinity import MigratedNodes, affinity_of, mismatch
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.plugins.volume_binding.delayed import VolumePlan

POLL_INTERVAL_S: Final = 1.0
TIMED_OUT: Final = "context deadline exceeded"

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class PlannedChange(NamedTuple, Generic[T]):
    """An object as it is stored and as it is to be written."""

    stored: T
    decided: T


class Reservation(NamedTuple):
    """What is to be written for a pod on one node.

    `volumes[i]` is for the claim `bound_claims[i]`; one that names the claim already is unchanged.
    `claims` are those to provision for.
    """

    bound_claims: tuple[PersistentVolumeClaim, ...]
    volumes: tuple[PlannedChange[PersistentVolume], ...]
    claims: tuple[PlannedChange[PersistentVolumeClaim], ...]


class Written(NamedTuple):
    """The objects as returned by the API server, to compare with those from the watch."""

    bound_claims: tuple[PersistentVolumeClaim, ...]
    volumes: list[PersistentVolume]
    claims: list[PersistentVolumeClaim]


class VolumeBinder:
    """Reserves, writes and waits, for all pods."""

    def __init__(
        self,
        volumes: AssumeCache[PersistentVolume],
        claims: AssumeCache[PersistentVolumeClaim],
        objects: ClusterObjects,
        migrated: MigratedNodes,
        *,
        client: ClusterClient,
        clock: Clock,
        timeout_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._volumes = volumes
        self._claims = claims
        self._objects = objects
        self._migrated = migrated
        self._client = client
        self._clock = clock
        self._timeout_s = timeout_s
        self._sleep = sleep

    # --- Reserve ---

    def reserve(self, plan: VolumePlan, node_name: str) -> Reservation:
        """Assume what was decided; raises PluginError, with nothing assumed then."""
        volumes: list[PlannedChange[PersistentVolume]] = []
        claims: list[PlannedChange[PersistentVolumeClaim]] = []
        try:
            for claim, volume in plan.bindings:
                decided = claimed_volume(volume, claim)
                if decided is not volume:
                    self._volumes.assume(decided)
                volumes.append(PlannedChange(_stored(self._volumes, decided), decided))
            for provision in plan.provisions:
                decided_claim = with_selected_node(provision.claim, node_name)
                self._claims.assume(decided_claim)
                claims.append(PlannedChange(_stored(self._claims, decided_claim), decided_claim))
        except PluginError:
            self._restore(volumes, claims)
            raise
        bound_claims = tuple(binding.claim for binding in plan.bindings)
        return Reservation(bound_claims, tuple(volumes), tuple(claims))

    def unreserve(self, reservation: Reservation) -> None:
        """Give back everything that is not written yet."""
        self._restore(reservation.volumes, reservation.claims)

    def _restore(
        self,
        volumes: Sequence[PlannedChange[PersistentVolume]],
        claims: Sequence[PlannedChange[PersistentVolumeClaim]],
    ) -> None:
        for change in volumes:
            self._volumes.restore(change.decided)
        for claim_change in claims:
            self._claims.restore(claim_change.decided)

    # --- PreBind ---

    async def bind(self, reservation: Reservation, pod: Pod, node_name: str) -> None:
        """Write what is reserved and wait until all claims are bound.

        Raises ApiError if something cannot be written, PluginError if the wait fails.
        """
        written = await self._write(reservation)
        try:
            await self._wait_bound(written, pod, node_name)
        except PluginError as error:
            raise PluginError(f"binding volumes: {error}") from error

    async def _write(self, reservation: Reservation) -> Written:
        volumes: list[PersistentVolume] = []
        claims: list[PersistentVolumeClaim] = []
        try:
            for stored, decided in reservation.volumes:
                volumes.append(await self._client.update(stored, decided))
            for stored_claim, decided_claim in reservation.claims:
                claims.append(await self._client.update(stored_claim, decided_claim))
        except ApiError:
            # What is written stays; the rest, the failed one included, is free again.
            self._restore(reservation.volumes[len(volumes) :], reservation.claims[len(claims) :])
            raise
        return Written(reservation.bound_claims, volumes, claims)

    async def _wait_bound(self, written: Written, pod: Pod, node_name: str) -> None:
        deadline_s = self._clock.monotonic_s() + self._timeout_s
        while True:
            left_s = deadline_s - self._clock.monotonic_s()
            if left_s <= POLL_INTERVAL_S:
                await self._sleep(max(left_s, 0))
                raise PluginError(TIMED_OUT)
            await self._sleep(POLL_INTERVAL_S)
            if self._are_bound(written, pod, node_name):
                return

    def _are_bound(self, written: Written, pod: Pod, node_name: str) -> bool:
        """Whether the wait is over; raises PluginError if it has failed."""
        node = self._objects.nodes.get(node_name)
        if node is None:
            raise PluginError(f'failed to get node "{node_name}": node "{node_name}" not found')
        meta = pod.metadata
        if self._objects.pods.get(meta.namespace, meta.name) is None:
            raise PluginError(f'pod does not exist any more: pod "{meta.name}" not found')
        for claim, volume in zip(written.bound_claims, written.volumes, strict=True):
            if not self._is_bound(claim, volume, node):
                return False
        return all(self._is_provisioned(claim, node) for claim in written.claims)

    def _is_bound(
        self, claim: PersistentVolumeClaim, written: PersistentVolume, node: Node
    ) -> bool:
        volume = self._volumes.stored("", written.metadata.name)
        current_claim = self._claims.stored(claim.metadata.namespace, claim.metadata.name)
        if volume is None:
            missing = self._volumes.not_found("", written.metadata.name)
            raise PluginError(f"failed to check binding: {missing}")
        if current_claim is None:
            missing = self._claims.not_found(claim.metadata.namespace, claim.metadata.name)
            raise PluginError(f"failed to check binding: {missing}")
        if _is_older(volume, written):
            return False
        self._require_reach(volume, node, "failed to translate pv to csi: ")
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            raise PluginError(f'ClaimRef got reset for pv "{volume.metadata.name}"')
        return is_fully_bound(current_claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, node: Node) -> bool:
        meta = written.metadata
        claim = self._claims.stored(meta.namespace, meta.name)
        if claim is None:
            missing = self._claims.not_found(meta.namespace, meta.name)
            raise PluginError(f"failed to check provisioning pvc: {missing}")
        if _is_older(claim, written):
            return False
        if not claim.metadata.annotations:
            raise PluginError(f'selectedNode annotation reset for PVC "{meta.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION) != node.metadata.name:
            # The provisioner removes the annotation if it cannot provision there.
            raise PluginError(f'provisioning failed for PVC "{meta.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.stored("", claim.spec.volume_name)
            if volume is None:
                return False
            self._require_reach(volume, node, "")
        return is_fully_bound(claim)

    def _require_reach(self, volume: PersistentVolume, node: Node, error_prefix: str) -> None:
        """PluginError if the volume cannot be reached from the node."""
        affinity = affinity_of(volume)
        selector = affinity.selector
        name = node.metadata.name
        if affinity.plugin and self._migrated.is_migrated(name, affinity.plugin):
            if affinity.error:
                raise PluginError(error_prefix + affinity.error)
            selector = affinity.migrated
        why = mismatch(selector, node)
        if why:
            raise PluginError(
                f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{name}": {why}'
            )


def claimed_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume bound to the claim; the same object if it is already."""
    decided = volume
    ref, meta = volume.spec.claim_ref, claim.metadata
    if ref is None or (ref.name, ref.namespace, ref.uid) != (meta.name, meta.namespace, meta.uid):
        spec = msgspec.structs.replace(volume.spec, claim_ref=reference_to(claim))
        decided = msgspec.structs.replace(decided, spec=spec)
    annotations = volume.metadata.annotations
    if not is_claimed_by(volume, claim) and BOUND_BY_CONTROLLER_ANNOTATION not in annotations:
        decided = _annotated(decided, BOUND_BY_CONTROLLER_ANNOTATION, "yes")
    return decided


def with_selected_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim with the annotation that selects the node to provision for."""
    return _annotated(claim, SELECTED_NODE_ANNOTATION, node_name)


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    meta = claim.metadata
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def _annotated(api_object: T, key: str, value: str) -> T:
    meta = api_object.metadata
    annotated = msgspec.structs.replace(meta, annotations={**meta.annotations, key: value})
    return msgspec.structs.replace(api_object, metadata=annotated)


def _stored(cache: AssumeCache[T], decided: T) -> T:
    stored = cache.stored(decided.metadata.namespace, decided.metadata.name)
    assert stored is not None, decided.metadata.name
    return stored


def _is_older(known: ApiObject, written: ApiObject) -> bool:
    """Whether the version from the watch is older than the one written."""
    return int(known.metadata.resource_version) < int(written.metadata.resource_version)
