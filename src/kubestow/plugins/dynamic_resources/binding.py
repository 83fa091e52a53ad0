"""Reserve, Unreserve and PreBind: takes devices and gives them back (spec 08 B9, B10)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import NAMESPACE_OID, uuid5

import msgspec

from kubestow.api.device import AllocationResult, ResourceClaim, ResourceClaimStatus
from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import PluginError
from kubestow.framework.handle import EventSink
from kubestow.framework.metrics import NO_PLUGIN_METRICS, PluginMetrics
from kubestow.index.devices.claims import Claims
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt, TakenDevices
from kubestow.plugins.dynamic_resources.binding_conditions import (
    FAILED_PREFIX,
    Readiness,
    binding_state,
    has_timed_out,
    waiting_results,
)
from kubestow.plugins.dynamic_resources.extended_resources import Mappings, is_in_memory
from kubestow.plugins.dynamic_resources.filtering import allocations_on
from kubestow.plugins.dynamic_resources.group_claims import GroupClaims, pod_consumer
from kubestow.plugins.dynamic_resources.results import ClaimAllocation, with_share_ids
from kubestow.plugins.dynamic_resources.writes import ClaimWriter, is_reserved_for, with_finalizer

POLL_INTERVAL_S: Final = 5.0
_TIMEOUT: Final = "device binding timeout"


class ClaimBinder:
    def __init__(
        self,
        claims: Claims,
        group_claims: GroupClaims,
        writer: ClaimWriter,
        clock: Clock,
        events: EventSink,
        *,
        binding_timeout_ns: int | None,
        metrics: PluginMetrics = NO_PLUGIN_METRICS,
        profile_name: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`binding_timeout_ns` None: binding conditions are off."""
        self._claims = claims
        self._group_claims = group_claims
        self._writer = writer
        self._clock = clock
        self._events = events
        self._binding_timeout_ns = binding_timeout_ns
        self._metrics = metrics
        self._profile_name = profile_name
        self._sleep = sleep

    # --- Reserve ---

    def reserve(self, attempt: DeviceAttempt, node_name: str) -> None:
        """Take the devices found for this node; raises PluginError if none were."""
        if not attempt.unallocated:
            return
        taken = attempt.taken.get(node_name)
        if taken is None:
            taken = self._found(attempt, node_name)
            if taken is None:
                if attempt.unallocated == [attempt.special]:
                    return  # A device plugin serves what the special claim would request.
                raise PluginError("claim allocation not found for node")
            attempt.taken[node_name] = taken
        attempt.mappings = taken.mappings
        for index, claim in taken.claims.items():
            attempt.claims[index] = claim
            result = attempt.reserved[index] = taken.results[index]
            self._start_allocation(as_allocated(claim, result))

    def _start_allocation(self, claim: ResourceClaim) -> None:
        self._claims.start_allocation(claim)

    def _found(self, attempt: DeviceAttempt, node_name: str) -> TakenDevices | None:
        """What Filter found for this node; None if it found nothing."""
        found = attempt.allocations.get(node_name)
        allocations = allocations_on(attempt, found)
        if not allocations:
            return None
        claims = {index: attempt.claims[index] for index in attempt.unallocated}
        mappings: Mappings = ()
        if attempt.searched:
            assert found is not None, node_name
            claims |= dict(zip(attempt.searched, found.claims, strict=True))
            mappings = found.mappings
        results = {
            index: with_share_ids(allocation, self._share_ids(claim, allocation))
            for (index, claim), allocation in zip(claims.items(), allocations, strict=True)
        }
        return TakenDevices(claims, results, mappings)

    def _share_ids(self, claim: ResourceClaim, allocation: ClaimAllocation) -> list[str]:
        if not allocation.shared:
            return []
        seed = f"{claim.metadata.uid} {self._clock.now_ns()}"
        return [str(uuid5(NAMESPACE_OID, f"{seed} {index}")) for index in allocation.shared]

    # --- Unreserve ---

    def unreserve(self, attempt: DeviceAttempt, pod: Pod, taken: set[str] | None = None) -> None:
        """Give back what the pod took; claims that were written already stay allocated.

        Claims whose devices no member of the group uses any more are removed from `taken`.
        """
        for index, claim in enumerate(attempt.claims):
            if index == attempt.special:
                self._unreserve_special(attempt, claim)
                continue
            meta = claim.metadata
            if self._claims.end_allocation(meta.uid):
                self._claims.restore(meta.namespace, meta.name)
                if taken is not None:
                    taken.discard(meta.uid)
            if claim.status.allocation is not None and is_reserved_for(claim, pod.metadata.uid):
                self._writer.drop_reservation(claim, pod)

    def _unreserve_special(self, attempt: DeviceAttempt, claim: ResourceClaim) -> None:
        self._claims.end_allocation(attempt.special_uid)
        if attempt.special in attempt.reserved and not is_in_memory(claim):
            self._writer.delete_special(claim)

    # --- PreBind ---

    async def bind(self, attempt: DeviceAttempt, pod: Pod, node_name: str) -> None:
        """Write allocations and reservations, and wait for devices that have to be prepared."""
        for index in range(len(attempt.claims)):
            if not self._group_claims.is_reserved(attempt.claims[index], pod):
                await self._bind_claim(attempt, index, pod)
        if self._binding_timeout_ns is not None:
            await self._wait_for_devices(attempt, pod, node_name, self._binding_timeout_ns)

    async def _bind_claim(self, attempt: DeviceAttempt, index: int, pod: Pod) -> None:
        allocation = attempt.reserved.get(index)
        claim = attempt.claims[index]
        in_flight_uid = claim.metadata.uid
        if index == attempt.special:
            if allocation is None:
                return  # Devices serve nothing on this node.
            if is_in_memory(claim):
                claim = attempt.claims[index] = await self._create_special(claim)
        consumer = attempt.consumers[index] if index < len(attempt.consumers) else None
        try:
            bound = await self._writer.bind(claim, allocation, consumer or pod_consumer(pod))
        except BaseException:
            if allocation is not None:
                self._binding_failed(in_flight_uid)
            raise
        # No other task runs in between: the devices are never counted as free.
        self._claims.assume(bound)
        self._claim_bound(attempt, in_flight_uid)
        attempt.claims[index] = bound
        if index == attempt.special:
            await self._writer.write_mappings(pod, bound, attempt.mappings)

    def _binding_failed(self, in_flight_uid: str) -> None:
        """Spec 11 §10: counted here and again by Unreserve, as upstream; other members may go on
        with these devices."""
        self._claims.end_allocation(in_flight_uid)

    def _claim_bound(self, attempt: DeviceAttempt, in_flight_uid: str) -> None:
        """The claim is written with its devices, and so no longer in flight."""
        self._claims.end_allocation(in_flight_uid, force=True)

    async def _create_special(self, claim: ResourceClaim) -> ResourceClaim:
        try:
            created = await self._writer.create_special(claim)
        except PluginError:
            self._metrics.claim_created(is_success=False)
            raise
        self._metrics.claim_created(is_success=True)
        return created

    async def _wait_for_devices(
        self, attempt: DeviceAttempt, pod: Pod, node_name: str, timeout_ns: int
    ) -> None:
        if not any(map(waiting_results, attempt.claims)):
            return
        started_s = self._clock.monotonic_s()
        outcome = "error"
        try:
            await self._poll_devices(attempt, pod, node_name, timeout_ns)
            outcome = "success"
        except PluginError as error:
            outcome = _outcome(str(error))
            raise
        finally:
            self._report_wait(attempt, outcome, self._clock.monotonic_s() - started_s)

    def _report_wait(self, attempt: DeviceAttempt, outcome: str, duration_s: float) -> None:
        """The duration counts once per device, the wait once per device with conditions."""
        for claim in attempt.claims:
            allocation = claim.status.allocation
            for result in () if allocation is None else allocation.devices.results:
                self._metrics.device_wait_ended(
                    self._profile_name, result.driver, outcome, duration_s
                )
            for result in waiting_results(claim):
                self._metrics.device_conditions_ended(self._profile_name, result.driver, outcome)

    async def _poll_devices(
        self, attempt: DeviceAttempt, pod: Pod, node_name: str, timeout_ns: int
    ) -> None:
        self._events.record(
            pod,
            type="Normal",
            reason="BindingConditionsPending",
            action="Scheduling",
            note=f"waiting for binding conditions for device on node {node_name}",
        )
        end_s = self._clock.monotonic_s() + timeout_ns / NANOSECONDS
        while not self._are_ready(attempt, timeout_ns):
            left_s = end_s - self._clock.monotonic_s()
            if left_s <= 0:
                raise PluginError(f"{_TIMEOUT}: context deadline exceeded")
            await self._sleep(min(POLL_INTERVAL_S, left_s))

    def _are_ready(self, attempt: DeviceAttempt, timeout_ns: int) -> bool:
        """Whether all claims are ready; the first that is not decides."""
        for index, claim in enumerate(attempt.claims):
            meta = claim.metadata
            current = self._claims.get(meta.namespace, meta.name)
            if current is None:
                raise PluginError(f'could not find ResourceClaim "{object_ref(meta)}"')
            attempt.claims[index] = current
            state = binding_state(current)
            if state.readiness is Readiness.FAILED:
                raise PluginError(state.error)
            if state.readiness is Readiness.PENDING:
                if has_timed_out(current, now_ns=self._clock.now_ns(), timeout_ns=timeout_ns):
                    raise PluginError(f"{_TIMEOUT}: claim={meta.name}")
                return False
        return True


def _outcome(error: str) -> str:
    """The metric label for the end of a wait for devices."""
    if error.startswith(_TIMEOUT):
        return "timeout"
    return "failure" if error.startswith(FAILED_PREFIX) else "error"


def as_allocated(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    """The claim as it will be once it is written."""
    return msgspec.structs.replace(
        with_finalizer(claim), status=ResourceClaimStatus(allocation=allocation)
    )
