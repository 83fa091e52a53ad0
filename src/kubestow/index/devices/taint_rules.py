"""The taints that DeviceTaintRules add to published devices (spec 08 B2, 12 §10.1).

Rules are found by what they select, so a device is compared with no rule that is for other ones.
Loaded only where rules are read.
"""

from collections.abc import Iterator
from itertools import product
from typing import Final

from kubestow.api.device import DeviceTaint, DeviceTaintRule
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.inventory import (
    DeviceId,
    DeviceInventory,
    PoolKey,
    PublishedSlice,
)

# Driver, pool, device; None where the rule accepts any.
_Selection = tuple[str | None, str | None, str | None]
_CHOICES: Final = tuple(product((False, True), repeat=3))


class TaintRules:
    """All rules. Follows the store they are in; `inventory` has the devices."""

    def __init__(self, store: ObjectStore[DeviceTaintRule], inventory: DeviceInventory) -> None:
        self._inventory = inventory
        # Selection → name of the rule → its taint.
        self._taints: dict[_Selection, dict[str, DeviceTaint]] = {}
        for rule in store:
            self._put(rule)
        store.subscribe(self._changed)
        inventory.taint_source.added = self._added

    def changed_slices(
        self, old: DeviceTaintRule | None, new: DeviceTaintRule | None
    ) -> Iterator[PublishedSlice]:
        """The slices with devices whose taints are other ones after the change of a rule."""
        if old is not None and new is not None and old.spec == new.spec:
            return
        is_same_taint = old is not None and new is not None and old.spec.taint == new.spec.taint
        for published in self._inventory:
            for device in published.devices:
                before = old is not None and _is_selected(device.id, old)
                after = new is not None and _is_selected(device.id, new)
                if before != after or (before and not is_same_taint):
                    yield published
                    break

    def _added(self, device_id: DeviceId) -> Iterator[DeviceTaint]:
        driver, pool, name = device_id
        for by_driver, by_pool, by_name in _CHOICES:
            selection = (
                driver if by_driver else None,
                pool if by_pool else None,
                name if by_name else None,
            )
            yield from self._taints.get(selection, {}).values()

    def _changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None:
            self._remove(old)
        if new is not None:
            self._put(new)
        for rule in (old, new):
            if rule is not None:
                self._inventory.note_change(_pool_of(rule))

    def _put(self, rule: DeviceTaintRule) -> None:
        self._taints.setdefault(_selection(rule), {})[rule.metadata.name] = rule.spec.taint

    def _remove(self, rule: DeviceTaintRule) -> None:
        selection = _selection(rule)
        taints = self._taints[selection]
        del taints[rule.metadata.name]
        if not taints:
            del self._taints[selection]


def _pool_of(rule: DeviceTaintRule) -> PoolKey | None:
    """The only pool in which the rule selects devices; None if there may be several."""
    driver, pool, _ = _selection(rule)
    return None if driver is None or pool is None else (driver, pool)


def _is_selected(device_id: DeviceId, rule: DeviceTaintRule) -> bool:
    return all(
        wanted is None or wanted == given
        for wanted, given in zip(_selection(rule), device_id, strict=True)
    )


def _selection(rule: DeviceTaintRule) -> _Selection:
    """A rule without a selector is for all devices, as one with an empty selector."""
    selector = rule.spec.device_selector
    if selector is None:
        return None, None, None
    return selector.driver, selector.pool, selector.device
