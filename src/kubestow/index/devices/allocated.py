"""Which devices are allocated, and how much of those that are shared (spec 08 B3).

Invariant: what a claim took is recorded when it is counted, and exactly that is given back, so a
claim that changed in between cannot make the counts wrong.
Not here: which claims count (`claims`).
"""

from collections.abc import Callable

from kubestow.api.device import DeviceRequestAllocationResult, ResourceClaim
from kubestow.index.devices.inventory import DeviceId, PoolKey

# Capacity name → amount, in nano-units.
Consumed = dict[str, int]
_Results = tuple[DeviceRequestAllocationResult, ...]
_NOTHING: Consumed = {}


class AllocatedDevices:
    """The devices of all allocated claims.

    dedicated   devices one claim has for itself, with the number of such claims
    in_use      those, and devices that are shared
    """

    def __init__(
        self, on_change: Callable[[PoolKey], None], *, consumable_capacity: bool = True
    ) -> None:
        """`on_change` is called with every pool in which a device is taken or given back.

        `consumable_capacity` is the gate: without it no device is shared.
        """
        self._on_change = on_change
        self._consumable_capacity = consumable_capacity
        self.dedicated: dict[DeviceId, int] = {}
        self._shared: dict[DeviceId, int] = {}
        self._consumed: dict[DeviceId, Consumed] = {}
        # Device → number of its shares that list what they take of its capacities.
        self._listing: dict[DeviceId, int] = {}
        # By UID, with the number of reasons to count it: a claim counts once.
        self._claims: dict[str, tuple[_Results, int]] = {}

    def is_in_use(self, device: DeviceId) -> bool:
        return device in self.dedicated or device in self._shared

    def consumed(self, device: DeviceId) -> Consumed:
        """What is taken of the capacities of a shared device."""
        return self._consumed.get(device, _NOTHING)

    def lists_capacities(self, device: DeviceId) -> bool:
        """Whether some share of the device lists capacities, be it of nothing."""
        return device in self._listing

    def count(self, claim: ResourceClaim) -> None:
        """Count the claim's devices as taken, for one more reason."""
        allocation = claim.status.allocation
        assert allocation is not None, claim.metadata.name
        uid = claim.metadata.uid
        results, reasons = self._claims.get(uid, (allocation.devices.results, 0))
        self._claims[uid] = results, reasons + 1
        if reasons == 0:
            self._change(results, 1)

    def uncount(self, uid: str) -> None:
        """Remove one reason; after the last one the devices are free."""
        results, reasons = self._claims.pop(uid)
        if reasons > 1:
            self._claims[uid] = results, reasons - 1
        else:
            self._change(results, -1)

    def _change(self, results: _Results, sign: int) -> None:
        for pool in {(result.driver, result.pool) for result in results}:
            self._on_change(pool)
        for result in results:
            if result.admin_access:
                continue
            device: DeviceId = (result.driver, result.pool, result.device)
            if result.share_id is None or not self._consumable_capacity:
                _add(self.dedicated, device, sign)
                continue
            _add(self._shared, device, sign)
            if result.consumed_capacity:
                _add(self._listing, device, sign)
            consumed = self._consumed.setdefault(device, {})
            for name, quantity in result.consumed_capacity.items():
                consumed[name] = consumed.get(name, 0) + sign * quantity.nano
            if device not in self._shared:
                del self._consumed[device]


def _add(counts: dict[DeviceId, int], device: DeviceId, sign: int) -> None:
    count = counts.get(device, 0) + sign
    if count:
        counts[device] = count
    else:
        del counts[device]
