"""Counters of pools whose devices name groups (spec 12 §10.3, DRADeviceCompatibilityGroups).

Of the devices that draw from a counter set, all or none have groups, and those that have them have
one in common.
"""

from kubestow.api.device import DeviceCounterConsumption
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.draft import PoolCounters
from kubestow.plugins.dynamic_resources.pools import Pool

# Counter set → what the devices that draw from it have in common; None if they have no groups. A
# set from which no device draws is not in it.
_Groups = dict[str, frozenset[str] | None]


class GroupedCounters(PoolCounters):
    def __init__(self, allocated: AllocatedDevices) -> None:
        super().__init__(allocated)
        self._allocated_devices = allocated
        # With the devices of this attempt.
        self._groups: dict[Pool, _Groups] = {}
        # What the devices of this attempt replaced, the latest last.
        self._replaced: list[_Groups] = []

    def charge(self, pool: Pool, published: PublishedDevice) -> bool:
        groups = self._groups.get(pool)
        if groups is None:
            groups = self._groups[pool] = self._of_allocated(pool)
        joined = _joined(groups, published)
        if joined is None or not super().charge(pool, published):
            return False
        self._replaced.append(groups)
        self._groups[pool] = joined
        return True

    def refund(self, pool: Pool, published: PublishedDevice) -> None:
        """Undo the latest `charge`."""
        super().refund(pool, published)
        self._groups[pool] = self._replaced.pop()

    def _of_allocated(self, pool: Pool) -> _Groups:
        groups: _Groups = {}
        for published in (*pool.devices, *pool.elsewhere):
            if self._allocated_devices.is_in_use(published.id):
                for consumption in published.device.consumes_counters:
                    _join(groups, consumption)
        return groups


def _joined(groups: _Groups, device: PublishedDevice) -> _Groups | None:
    """The groups with another device; None if it may not be among the others."""
    joined = dict(groups)
    for consumption in device.device.consumes_counters:
        if not _may_join(joined, consumption):
            return None
        _join(joined, consumption)
    return joined


def _may_join(groups: _Groups, consumption: DeviceCounterConsumption) -> bool:
    if consumption.counter_set not in groups:
        return True
    common, own = groups[consumption.counter_set], consumption.compatibility_groups
    if common is None or not own:
        return common is None and not own
    return not common.isdisjoint(own)


def _join(groups: _Groups, consumption: DeviceCounterConsumption) -> None:
    own = frozenset(consumption.compatibility_groups)
    if consumption.counter_set not in groups:
        groups[consumption.counter_set] = own or None
        return
    common = groups[consumption.counter_set]
    # Allocated devices that may not be together: as upstream, the first of them decide.
    if common is not None and own:
        groups[consumption.counter_set] = common & own
