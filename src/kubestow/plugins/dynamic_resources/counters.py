"""Counters that the devices of a pool share (spec 08 B7.5). Amounts are in nano-units."""

from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.pools import Counters, Pool


class PoolCounters:
    """What one attempt draws from the counters of the pools, besides what is drawn already."""

    def __init__(self, allocated: AllocatedDevices) -> None:
        self._allocated = allocated
        # What is left in each pool, after this attempt's own consumption.
        self._left: dict[Pool, Counters] = {}

    def charge(self, pool: Pool, published: PublishedDevice) -> bool:
        """Draw what the device needs; False, and nothing is drawn, if some counter is too low.

        Spec 08 B7.5: all counters of the pool are checked, so one that is negative already blocks
        every device that draws from any.
        """
        left = self._left.get(pool)
        if left is None:
            left = self._left[pool] = self._available(pool)
        _draw(left, published, 1)
        if all(amount >= 0 for counters in left.values() for amount in counters.values()):
            return True
        _draw(left, published, -1)
        return False

    def refund(self, pool: Pool, published: PublishedDevice) -> None:
        _draw(self._left[pool], published, -1)

    def _available(self, pool: Pool) -> Counters:
        left = {name: dict(counters) for name, counters in pool.counters.items()}
        for published in (*pool.devices, *pool.elsewhere):
            if self._allocated.is_in_use(published.id):
                _draw(left, published, 1)
        return left


def _draw(left: Counters, published: PublishedDevice, sign: int) -> None:
    for consumption in published.device.consumes_counters:
        counters = left[consumption.counter_set]
        for name, counter in consumption.counters.items():
            counters[name] -= sign * counter.value.nano
