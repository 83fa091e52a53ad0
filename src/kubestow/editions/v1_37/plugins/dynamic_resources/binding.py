"""Reserve, Unreserve and PreBind of v1.37 (spec 12 §10.2 j)."""

from kubestow.api.device import ResourceClaim
from kubestow.api.pod import Pod
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.binding import ClaimBinder
from kubestow.plugins.dynamic_resources.extended_resources import is_in_memory


class ClaimBinderV137(ClaimBinder):
    """Claims are in flight until all of PreBind has succeeded."""

    async def bind(self, attempt: DeviceAttempt, pod: Pod, node_name: str) -> None:
        attempt.bound.clear()
        await super().bind(attempt, pod, node_name)
        for uid in attempt.bound:
            self._claims.end_allocation(uid, force=True)

    def _start_allocation(self, claim: ResourceClaim) -> None:
        """A claim that was allocated since PreFilter is not in flight."""
        metadata = claim.metadata
        known = self._claims.get(metadata.namespace, metadata.name)
        is_allocated = (
            not is_in_memory(claim)
            and known is not None
            and known.metadata.uid == metadata.uid
            and known.status.allocation is not None
        )
        # One that is in flight gets another sharer all the same.
        if not is_allocated or self._claims.in_flight(metadata.uid) is not None:
            super()._start_allocation(claim)

    def _binding_failed(self, in_flight_uid: str) -> None:
        """Unreserve ends it."""

    def _claim_bound(self, attempt: DeviceAttempt, in_flight_uid: str) -> None:
        attempt.bound.append(in_flight_uid)
