"""What the devices of a claim must have in common, or must not (spec 08 B7.7).

The search adds and removes devices as it tries them: `add` returns whether the device satisfies the
constraint together with the earlier ones, and keeps it if so; `remove` undoes the latest `add`.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kubestow.api.device import DeviceAttribute
from kubestow.errors import PluginError
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestPlan

# Type and value: values of different types are never equal.
AttributeValue = tuple[str, int | str | bool]


class ConstraintCheck(Protocol):
    def add(self, plan: RequestPlan, published: PublishedDevice) -> bool: ...

    def remove(self, plan: RequestPlan, published: PublishedDevice) -> None: ...


# Makes a check of an attribute's name, for the requests of these names (for all if there are none).
NewConstraint = Callable[[str, Sequence[str]], ConstraintCheck]
# The attribute of a device that a request sees under a name.
Lookup = Callable[[RequestPlan, PublishedDevice, str], DeviceAttribute | None]


def lookup_attribute(published: PublishedDevice, name: str) -> DeviceAttribute | None:
    """An attribute by its full name; the driver's own may be published without a domain."""
    attributes = published.device.attributes
    found = attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == published.of.spec.driver:
            found = attributes.get(identifier)
    return found


def lookup_published(
    plan: RequestPlan, published: PublishedDevice, name: str
) -> DeviceAttribute | None:
    """The attribute as its driver publishes it, for any request."""
    return lookup_attribute(published, name)


class MatchAttribute:
    """All devices have the same value of an attribute; the first one fixes it."""

    def __init__(
        self, attribute: str, requests: Sequence[str], lookup: Lookup = lookup_published
    ) -> None:
        self._attribute = attribute
        self._lookup = lookup
        self._requests = frozenset(requests)
        self._value: AttributeValue | None = None
        self._count = 0

    def add(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        if not applies(self._requests, plan):
            return True
        attribute = self._lookup(plan, published, self._attribute)
        if attribute is None:
            return False
        value = value_of(attribute)
        if self._count == 0:
            self._value = value
        elif value is None or value != self._value:
            return False
        self._count += 1
        return True

    def remove(self, plan: RequestPlan, published: PublishedDevice) -> None:
        if applies(self._requests, plan):
            self._count -= 1


class DistinctAttribute:
    """No two devices have the same value of an attribute, among the values kept.

    Spec 08 B7.7: one value is kept per request, that of its latest device, and it is forgotten when
    any device of the request is undone.
    """

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._values: dict[str, AttributeValue | None] = {}

    def add(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        if not applies(self._requests, plan):
            return True
        attribute = lookup_attribute(published, self._attribute)
        if attribute is None:
            return False
        value = value_of(attribute)
        # A value of no known type differs from none.
        if self._values and (value is None or value in self._values.values()):
            return False
        self._values[plan.parent_name] = value
        return True

    def remove(self, plan: RequestPlan, published: PublishedDevice) -> None:
        if applies(self._requests, plan):
            self._values.pop(plan.parent_name, None)


def make_constraints(
    plan: ClaimPlan, match: NewConstraint, distinct: NewConstraint | None
) -> list[ConstraintCheck]:
    """The constraints of a claim, without devices; raises PluginError for an unknown one.

    `distinct` is None where attributes cannot be required to differ.
    """
    constraints: list[ConstraintCheck] = []
    for index, constraint in enumerate(plan.constraints):
        if constraint.match_attribute is not None:
            constraints.append(match(constraint.match_attribute, constraint.requests))
        elif constraint.distinct_attribute is not None and distinct is not None:
            constraints.append(distinct(constraint.distinct_attribute, constraint.requests))
        else:
            raise PluginError(f"claim {plan.name}, constraint #{index}: {_EMPTY}")
    return constraints


_EMPTY: Final = "empty constraint (unsupported constraint type?)"


def value_of(attribute: DeviceAttribute) -> AttributeValue | None:
    """The value with its type; None for a list or an absent value, which equal no other."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value  # compared as text
    return None


def applies(requests: frozenset[str], plan: RequestPlan) -> bool:
    return not requests or plan.parent_name in requests or plan.full_name in requests
