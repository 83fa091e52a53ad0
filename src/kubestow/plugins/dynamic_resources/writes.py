"""What DynamicResources writes: allocations and reservations of claims (spec 08 B9, 09 W9 to W13).

Binding waits for its writes. Devices are given back beside the loop: the scheduling cycle cannot
wait, and the claim's own event queues the pods that may use them.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.device import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from kubestow.api.meta import ObjectMeta, object_ref
from kubestow.api.pod import Pod, PodExtendedResourceClaimStatus
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.client import ClusterClient
from kubestow.errors import ApiError, ConflictError, NotFoundError, PluginError
from kubestow.plugins.dynamic_resources.extended_resources import Mappings

log = logging.getLogger(__name__)

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
TRIES_MAX: Final = 5  # after conflicts
RETRY_S: Final = 0.01  # pause before each further one

Spawn = Callable[[Coroutine[Any, Any, None]], None]


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for)


class ClaimWriter:
    def __init__(
        self, client: ClusterClient, clock: Clock, spawn: Spawn, *, sets_timestamp: bool
    ) -> None:
        """`sets_timestamp`: claims get an allocation timestamp, for binding conditions."""
        self._client = client
        self._clock = clock
        self._spawn = spawn
        self._sets_timestamp = sets_timestamp

    # --- for binding ---

    async def create_special(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim for extended resources, which so far existed in memory only."""
        metadata = claim.metadata
        new = msgspec.structs.replace(
            claim,
            metadata=ObjectMeta(
                namespace=metadata.namespace,
                generate_name=metadata.generate_name,
                annotations=metadata.annotations,
                owner_references=metadata.owner_references,
            ),
            status=ResourceClaimStatus(),
        )
        try:
            return await self._client.create(new)
        except ApiError as error:
            # The claim has no name yet.
            text = f"create claim for extended resources {metadata.namespace}/: {error}"
            raise PluginError(text) from error

    async def bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        consumer: ResourceClaimConsumerReference,
    ) -> ResourceClaim:
        """Write the allocation, if there is one, and reserve the claim."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                return await self._bind_once(claim, allocation, consumer)
            except _Conflict as conflict:
                if attempt == TRIES_MAX:
                    raise PluginError(str(conflict)) from conflict
                await asyncio.sleep(RETRY_S)
                claim = await self._get(claim)
        raise AssertionError("unreachable")

    async def write_mappings(self, pod: Pod, claim: ResourceClaim, mappings: Mappings) -> None:
        """Write for the kubelet which container gets which devices of the special claim."""
        if not mappings:
            raise PluginError(
                f"nil or empty request mappings, no update of pod {object_ref(pod.metadata)} "
                "ExtendedResourceClaimStatus"
            )
        status = PodExtendedResourceClaimStatus(
            request_mappings=mappings, resource_claim_name=claim.metadata.name
        )
        patch = {"status": {"extendedResourceClaimStatus": to_document(status)}}
        meta = pod.metadata
        try:
            await self._client.patch(Pod, meta.namespace, meta.name, patch, subresource="status")
        except ApiError as error:
            text = f"update pod {object_ref(meta)} ExtendedResourceClaimStatus: {error}"
            raise PluginError(text) from error

    async def _get(self, claim: ResourceClaim) -> ResourceClaim:
        meta = claim.metadata
        try:
            return await self._client.get(ResourceClaim, meta.namespace, meta.name)
        except ApiError as error:
            text = f"get updated claim {object_ref(meta)} after conflict: {error}"
            raise PluginError(text) from error

    async def _bind_once(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        consumer: ResourceClaimConsumerReference,
    ) -> ResourceClaim:
        name = object_ref(claim.metadata)
        if claim.metadata.deletion_timestamp is not None:
            raise PluginError(f"claim {name} got deleted in the meantime")
        what = "reservation"
        if allocation is not None:
            if claim.status.allocation is not None:
                raise PluginError(f"claim {name} got allocated elsewhere in the meantime")
            what = "allocation and reservation"
            if FINALIZER not in claim.metadata.finalizers:
                claim = await self._update(
                    claim, with_finalizer(claim), f"add finalizer to claim {name}"
                )
        status = self._bound_status(claim, allocation, consumer)
        return await self._update(
            claim,
            msgspec.structs.replace(claim, status=status),
            f"add {what} to claim {name}",
            is_status=True,
        )

    def _bound_status(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        consumer: ResourceClaimConsumerReference,
    ) -> ResourceClaimStatus:
        allocation = claim.status.allocation if allocation is None else allocation
        if self._sets_timestamp:
            if allocation is None:
                name = object_ref(claim.metadata)
                raise PluginError(f"claim {name} got deallocated elsewhere in the meantime")
            if allocation.allocation_timestamp is None:
                now = datetime.fromtimestamp(self._clock.now_ns() // NANOSECONDS, UTC)
                allocation = msgspec.structs.replace(allocation, allocation_timestamp=now)
        return msgspec.structs.replace(
            claim.status, allocation=allocation, reserved_for=(*claim.status.reserved_for, consumer)
        )

    async def _update(
        self, old: ResourceClaim, new: ResourceClaim, what: str, *, is_status: bool = False
    ) -> ResourceClaim:
        try:
            return await self._client.update(old, new, subresource="status" if is_status else "")
        except ConflictError as error:
            raise _Conflict(f"{what}: {error}") from error
        except ApiError as error:
            raise PluginError(f"{what}: {error}") from error

    # --- giving back, beside the loop ---

    def drop_reservation(self, claim: ResourceClaim, pod: Pod) -> None:
        """Remove the pod from the claim; other pods may use it, so the devices stay allocated."""
        self.drop_consumer(claim, pod.metadata.uid, f"pod {object_ref(pod.metadata)}")

    def drop_consumer(self, claim: ResourceClaim, uid: str, what: str) -> None:
        """Remove a pod or a group from what the claim is reserved for."""
        patch = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]},
        }
        meta = claim.metadata
        self._spawn_write(
            f"remove {what} from claim {object_ref(meta)}",
            lambda: self._client.patch(
                ResourceClaim, meta.namespace, meta.name, patch, subresource="status"
            ),
        )

    def deallocate(self, claim: ResourceClaim) -> None:
        """Give back the devices of a claim that no other pod uses."""
        new = msgspec.structs.replace(claim, status=ResourceClaimStatus())
        self._spawn_write(
            f"deallocate claim {object_ref(claim.metadata)}",
            lambda: self._client.update(claim, new, subresource="status"),
        )

    def delete_special(self, claim: ResourceClaim) -> None:
        """Delete a claim that was made for extended resources."""
        self._spawn_write(f"delete claim {object_ref(claim.metadata)}", lambda: self._delete(claim))

    async def _delete(self, claim: ResourceClaim) -> None:
        meta = claim.metadata
        for attempt in range(1, TRIES_MAX + 1):
            # Read again: the finalizer may have been added after this version was read.
            latest = await self._client.get(ResourceClaim, meta.namespace, meta.name)
            try:
                await self._client.update(latest, _without_finalizer(latest))
                break
            except ConflictError:
                if attempt == TRIES_MAX:
                    raise
        await self._client.delete(ResourceClaim, meta.namespace, meta.name, uid=meta.uid)

    def _spawn_write(self, what: str, write: Callable[[], Coroutine[Any, Any, object]]) -> None:
        async def run() -> None:
            try:
                await write()
            except NotFoundError:
                pass  # The claim is gone, so there is nothing to write.
            except ApiError as error:
                log.error("cannot %s: %s", what, error)

        self._spawn(run())


class _Conflict(Exception):
    """Another client changed the claim meanwhile."""


def with_finalizer(claim: ResourceClaim) -> ResourceClaim:
    finalizers = (*claim.metadata.finalizers, FINALIZER)
    metadata = msgspec.structs.replace(claim.metadata, finalizers=finalizers)
    return msgspec.structs.replace(claim, metadata=metadata)


def _without_finalizer(claim: ResourceClaim) -> ResourceClaim:
    finalizers = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
    metadata = msgspec.structs.replace(claim.metadata, finalizers=finalizers)
    return msgspec.structs.replace(claim, metadata=metadata)
