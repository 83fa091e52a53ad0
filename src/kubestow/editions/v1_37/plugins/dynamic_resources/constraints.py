"""What the devices of a claim must have in common, or must not, in v1.37 (spec 12 §10.2 b, §10.3).

Each check keeps what it has accepted, in order, so that `remove` takes back exactly the latest.
"""

from collections.abc import Sequence

from kubestow.api.device import DeviceAttribute
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.constraints import (
    AttributeValue,
    Lookup,
    applies,
    lookup_published,
    value_of,
)
from kubestow.plugins.dynamic_resources.requests import RequestPlan

# Type and values: values of different types are never equal.
AttributeValues = tuple[str, frozenset[int | str | bool]]


class _KeepsAll:
    """Base of checks that keep something of every device they accept."""

    def __init__(
        self, attribute: str, requests: Sequence[str], lookup: Lookup = lookup_published
    ) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._lookup = lookup

    def add(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        if not applies(self._requests, plan):
            return True
        attribute = self._lookup(plan, published, self._attribute)
        return attribute is not None and self._accepts(attribute)

    def remove(self, plan: RequestPlan, published: PublishedDevice) -> None:
        if applies(self._requests, plan):
            self._take_back()

    def _accepts(self, attribute: DeviceAttribute) -> bool:
        """Whether a device with this value is accepted; then it is kept."""
        raise NotImplementedError

    def _take_back(self) -> None:
        """Forget the latest that was kept."""
        raise NotImplementedError


class DistinctFromAll(_KeepsAll):
    """No two devices have the same value of an attribute."""

    def __init__(
        self, attribute: str, requests: Sequence[str], lookup: Lookup = lookup_published
    ) -> None:
        super().__init__(attribute, requests, lookup)
        self._values: list[AttributeValue | None] = []

    def _accepts(self, attribute: DeviceAttribute) -> bool:
        value = value_of(attribute)
        # A value of no known type is accepted as the first one only.
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def _take_back(self) -> None:
        self._values.pop()


class CommonValue(_KeepsAll):
    """All devices have a value in common; one with a single value is like a list of one."""

    def __init__(
        self, attribute: str, requests: Sequence[str], lookup: Lookup = lookup_published
    ) -> None:
        super().__init__(attribute, requests, lookup)
        # What the devices up to each one have in common.
        self._common: list[AttributeValues] = []

    def _accepts(self, attribute: DeviceAttribute) -> bool:
        values = values_of(attribute)
        if values is None:
            return False
        kind, common = values
        if self._common:
            kept_kind, kept = self._common[-1]
            common &= kept
            if kind != kept_kind or not common:
                return False
        self._common.append((kind, common))
        return True

    def _take_back(self) -> None:
        self._common.pop()


class NoCommonValue(_KeepsAll):
    """No two devices have a value in common."""

    def __init__(
        self, attribute: str, requests: Sequence[str], lookup: Lookup = lookup_published
    ) -> None:
        super().__init__(attribute, requests, lookup)
        self._values: list[AttributeValues] = []

    def _accepts(self, attribute: DeviceAttribute) -> bool:
        values = values_of(attribute)
        if values is None:
            return False
        kind, own = values
        if any(kept_kind == kind and own & kept for kept_kind, kept in self._values):
            return False
        self._values.append(values)
        return True

    def _take_back(self) -> None:
        self._values.pop()


def values_of(attribute: DeviceAttribute) -> AttributeValues | None:
    """All values with their type; None if there are none."""
    lists: tuple[tuple[str, Sequence[int | str | bool] | None], ...] = (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    )
    for kind, values in lists:
        if values:
            return kind, frozenset(values)
    value = value_of(attribute)
    return None if value is None else (value[0], frozenset((value[1],)))
