"""Which devices are allocated, and how much of those that are shared (spec 08 B3).

Invariant: the versions of a claim that are counted with the same devices count once, those with
other devices each for itself.
Not here: which claims count (`claims`).
"""

from collections.abc import Callable

from kubestow.api.device import DeviceRequestAllocationResult, ResourceClaim
from kubestow.index.devices.inventory import DeviceId, PoolKey

# Capacity name → amount, in nano-units.
Consumed = dict[str, int]
_Results = tuple[DeviceRequestAllocationResult, ...]
# UID of a claim, and the devices and shares that it has.
_Allocated = tuple[str, tuple[tuple[DeviceId, str | None], ...]]
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
        # With the number of reasons to count it.
        self._reasons: dict[_Allocated, int] = {}

    def is_in_use(self, device: DeviceId) -> bool:
        return device in self.dedicated or device in self._shared

    def consumed(self, device: DeviceId) -> Consumed:
        """What is taken of the capacities of a shared device."""
        return self._consumed.get(device, _NOTHING)

    def is_shared(self, device: DeviceId) -> bool:
        """Whether some claim has a share of the device."""
        return device in self._shared

    def lists_capacities(self, device: DeviceId) -> bool:
        """Whether some share of the device lists capacities, be it of nothing."""
        return device in self._listing

    def count(self, claim: ResourceClaim) -> None:
        """Count the claim's devices as taken, for one more reason."""
        results = _results_of(claim)
        allocated = _identity(claim, results)
        reasons = self._reasons.get(allocated, 0)
        self._reasons[allocated] = reasons + 1
        if reasons == 0:
            self._change(results, 1)

    def uncount(self, claim: ResourceClaim) -> None:
        """Remove one reason to count this version; after the last one its devices are free."""
        results = _results_of(claim)
        allocated = _identity(claim, results)
        reasons = self._reasons.pop(allocated)
        if reasons > 1:
            self._reasons[allocated] = reasons - 1
        else:
            self._change(results, -1)

    def _change(self, results: _Results, sign: int) -> None:
        for pool in {(result.driver, result.pool) for result in results}:
            self._on_change(pool)
        for result in results:
            if result.admin_access:
                continue
            device = _device(result)
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


def _results_of(claim: ResourceClaim) -> _Results:
    allocation = claim.status.allocation
    assert allocation is not None, claim.metadata.name
    return allocation.devices.results


def _identity(claim: ResourceClaim, results: _Results) -> _Allocated:
    return claim.metadata.uid, tuple((_device(each), each.share_id) for each in results)


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return result.driver, result.pool, result.device


def _add(counts: dict[DeviceId, int], device: DeviceId, sign: int) -> None:
    count = counts.get(device, 0) + sign
    if count:
        counts[device] = count
    else:
        del counts[device]
