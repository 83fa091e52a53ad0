"""What makes a device fit in v1.37 (spec 12 §10.2, §10.3)."""

from collections.abc import Callable
from functools import partial
from typing import Final

from kubestow.api.device import DeviceAttribute, DeviceConstraint
from kubestow.api.node import Node
from kubestow.editions.v1_37.plugins.dynamic_resources.constraints import (
    CommonValue,
    DistinctFromAll,
    NoCommonValue,
)
from kubestow.editions.v1_37.plugins.dynamic_resources.consumable import (
    CapacityError,
    amounts_taken,
)
from kubestow.editions.v1_37.plugins.dynamic_resources.counters import GroupedCounters
from kubestow.editions.v1_37.plugins.dynamic_resources.features import FeaturesV137
from kubestow.errors import PluginError
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.index.devices.selectors import SelectorFailure, Waiter, derive
from kubestow.plugins.dynamic_resources.constraints import (
    ConstraintCheck,
    MatchAttribute,
    lookup_attribute,
    make_constraints,
)
from kubestow.plugins.dynamic_resources.consumable import Amounts, is_enough
from kubestow.plugins.dynamic_resources.draft import Fitness, PoolCounters
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, FailedSelector, RequestPlan

# A node that declares it need not prepare every device.
NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
_RUNTIME_ERROR: Final = "CEL runtime error: "
_NO_SUCH_KEY: Final = "no such key:"
_ADVICE: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields"
)


class FitnessV137(Fitness):
    def __init__(
        self,
        allocated: AllocatedDevices,
        node: Node,
        features: Features,
        check_time: Callable[[], None],
        waiter: Waiter | None = None,
    ) -> None:
        super().__init__(allocated, node, features, check_time, waiter)
        assert isinstance(features, FeaturesV137), features
        self._gates = features
        # The variant of the search without alpha gates does not look at it.
        self._skips_operations = not features.is_experimental or (
            features.node_operations and NODE_OPERATIONS in node.status.declared_features
        )

    # --- requests ---

    def check(self, plan: RequestPlan) -> None:
        if plan.derived and not self._gates.derived_attributes:
            raise plan.error(
                "cannot handle request with derived attributes, the feature is disabled"
            )
        super().check(plan)

    # --- devices ---

    def is_supported(self, published: PublishedDevice) -> bool:
        if published.of.spec.skip_node_operations and not self._skips_operations:
            return False
        return super().is_supported(published)

    def is_charged(self, published: PublishedDevice) -> bool:
        """Any share counts, whether it lists capacities or not."""
        return self.allocated.is_shared(published.id)

    def new_counters(self) -> PoolCounters:
        if self._gates.compatibility_groups:
            return GroupedCounters(self.allocated)
        return super().new_counters()

    def _selector_error(self, failed: FailedSelector, published: PublishedDevice) -> str:
        text = failed.failure
        if not text.startswith(_RUNTIME_ERROR):
            return str(failed)
        advice = _ADVICE if _NO_SUCH_KEY in text else ""
        return f"{failed.place} on device {published}: {text}{advice}"

    # --- capacity ---

    def may_have_capacity(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        """Whether the device has enough, if nothing of it is taken. That is looked at later."""
        if not self.features.consumable_capacity:
            return True
        if not plan.capacity and published.is_taken_as_whole:
            return True
        amounts = self._amounts_of(plan, published, published.device.name)
        return amounts is not None and is_enough(published, amounts, {}, {})

    def _amounts(self, plan: RequestPlan, published: PublishedDevice) -> Amounts | None:
        return self._amounts_of(plan, published, str(published))

    def _amounts_of(
        self, plan: RequestPlan, published: PublishedDevice, name: str
    ) -> Amounts | None:
        fractional = self._gates.fractional_ranges
        try:
            return amounts_taken(plan.capacity, published.device.capacity, fractional=fractional)
        except CapacityError as error:
            raise plan.error(f"checking capacity for device {name}: {error}") from error

    # --- constraints ---

    def new_constraints(self, claim: ClaimPlan) -> list[ConstraintCheck]:
        if not claim.constraints:
            return []
        if self._gates.list_attributes:
            match = partial(CommonValue, lookup=self._lookup)
            distinct = partial(NoCommonValue, lookup=self._lookup)
            return make_constraints(claim, match, distinct)
        match = partial(MatchAttribute, lookup=self._lookup)
        distinct = partial(DistinctFromAll, lookup=self._lookup)
        return make_constraints(claim, match, None if self.features.is_basic else distinct)

    def compared_attribute(self, constraint: DeviceConstraint) -> str | None:
        return constraint.match_attribute or constraint.distinct_attribute

    def _lookup(
        self, plan: RequestPlan, published: PublishedDevice, name: str
    ) -> DeviceAttribute | None:
        """The attribute; one that the request computes hides one that the driver publishes."""
        expression = plan.derived.get(name)
        if expression is None:
            return lookup_attribute(published, name)
        self._check_time()
        try:
            return derive(expression, published, self._waiter)
        except SelectorFailure as failure:
            raise PluginError(_derived_error(name, published, str(failure))) from failure


def _derived_error(name: str, published: PublishedDevice, failure: str) -> str:
    stage, _, reason = failure.partition(": ")
    if stage == "CEL compile error":
        return f"compile derived attribute {name} failed: {reason}"
    return f"evaluate derived attribute {name} on device {published} failed: {reason}"
