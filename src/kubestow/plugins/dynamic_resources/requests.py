"""The requests of a claim, prepared once per pod for all nodes (spec 08 B7.2)."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from kubestow.api.device import (
    ALL,
    EXACT_COUNT,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubestow.api.meta import object_ref
from kubestow.api.quantity import Quantity
from kubestow.api.taints import TolerationTable
from kubestow.errors import PluginError
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.index.devices.selectors import SelectorFailure, Waiter, selects

FindClass = Callable[[str], DeviceClass | None]


class FailedSelector(Exception):
    """An expression gave no answer for a device. `place` names it: `class gpu: selector #0`."""

    def __init__(self, place: str, failure: SelectorFailure) -> None:
        super().__init__(f"{place}: {failure}")
        self.place = place
        self.failure = str(failure)


class RequestPlan:
    """One request, or one alternative of a request.

    name          in errors: an alternative's own, without that of its request
    full_name     in results: `request` or `request/alternative`
    parent_name   the request
    problem       why it cannot be served at all; the search reports it when it comes to it
    """

    __slots__ = (
        "_claim",
        "_details",
        "_expressions",
        "_profile",
        "admin_access",
        "capacity",
        "count",
        "derived",
        "device_class",
        "full_name",
        "is_all",
        "name",
        "names_capacity",
        "parent_name",
        "problem",
        "tolerations",
    )

    def __init__(
        self,
        claim: ResourceClaim,
        parent: DeviceRequest,
        details: ExactDeviceRequest | DeviceSubRequest,
        find_class: FindClass,
    ) -> None:
        self._claim = claim
        self._details = details
        self.parent_name = self.name = self.full_name = parent.name
        self.admin_access = False
        if isinstance(details, DeviceSubRequest):
            self.name = details.name
            self.full_name = f"{parent.name}/{details.name}"
        else:
            self.admin_access = bool(details.admin_access)
        self.device_class = find_class(details.device_class_name)
        self.is_all = details.allocation_mode == ALL
        self.count = details.count
        self.tolerations = TolerationTable[DeviceToleration](details.tolerations)
        self.names_capacity = details.capacity is not None
        self.capacity: dict[str, Quantity] = (
            {} if details.capacity is None else details.capacity.requests
        )
        # Attributes that are computed: name → expression.
        self.derived = {each.name: each.expression for each in details.derived_attributes}
        self.problem = self._problem(details)
        # Of the class, then of the request.
        self._expressions = tuple(
            [selector.cel.expression for selector in self._selectors() if selector.cel is not None]
        )
        self._profile: Hashable = None

    @property
    def claim_name(self) -> str:
        return object_ref(self._claim.metadata)

    @property
    def profile(self) -> Hashable:
        """Equal for requests to which every device looks the same, apart from constraints."""
        if self._profile is None:
            self._profile = (
                self.admin_access,
                self._expressions,
                self.tolerations.entries,
                frozenset(self.capacity.items()),
            )
        return self._profile

    def error(self, text: str) -> PluginError:
        return PluginError(f"claim {self.claim_name}, request {self.name}: {text}")

    def selects(
        self, published: PublishedDevice, check_time: Callable[[], None], waiter: Waiter | None
    ) -> bool:
        """Whether class and request both select the device; raises FailedSelector if one fails.

        `check_time` is called before every expression: without a waiter one may take a second.
        """
        for position, expression in enumerate(self._expressions):
            check_time()
            try:
                if not selects(expression, published, waiter):
                    return False
            except SelectorFailure as failure:
                raise FailedSelector(self._place(position), failure) from failure
        return True

    def _selectors(self) -> Sequence[DeviceSelector]:
        of_class = () if self.device_class is None else self.device_class.spec.selectors
        return (*of_class, *self._details.selectors)

    def _place(self, position: int) -> str:
        """The name of an expression in errors: `class gpu: selector #0`."""
        class_count = len(self._selectors()) - len(self._details.selectors)
        numbers = [number for number, each in enumerate(self._selectors()) if each.cel is not None]
        number = numbers[position]
        if number < class_count:
            return f"class {self._details.device_class_name}: selector #{number}"
        return f"claim {self.claim_name}: selector #{number - class_count}"

    def _problem(self, details: ExactDeviceRequest | DeviceSubRequest) -> PluginError | None:
        for index, selector in enumerate(details.selectors):
            if selector.cel is None:
                return PluginError(
                    f"claim {self.claim_name}, request {self.name}, selector #{index}: "
                    "CEL expression empty (unsupported selector type?)"
                )
        if self.device_class is None:
            name = details.device_class_name
            return self.error(
                f"could not retrieve device class {name}: "
                f'deviceclass.resource.k8s.io "{name}" not found'
            )
        if not self.is_all and details.allocation_mode != EXACT_COUNT:
            return self.error(f"unsupported count mode {details.allocation_mode}")
        return None


class RequestEntry(NamedTuple):
    """A request: one plan, or with `is_list` alternatives in order of preference."""

    request: DeviceRequest
    plans: tuple[RequestPlan, ...]
    is_list: bool


class ClaimPlan(NamedTuple):
    claim: ResourceClaim
    requests: tuple[RequestEntry, ...]
    constraints: tuple[DeviceConstraint, ...]

    @property
    def name(self) -> str:
        return object_ref(self.claim.metadata)


def plan_claim(claim: ResourceClaim, find_class: FindClass) -> ClaimPlan:
    """Prepare a claim; what is wrong with a request is part of its plan."""
    devices = claim.spec.devices
    entries = tuple([_entry(claim, request, find_class) for request in devices.requests])
    return ClaimPlan(claim, entries, devices.constraints)


def _entry(claim: ResourceClaim, request: DeviceRequest, find_class: FindClass) -> RequestEntry:
    details: Sequence[ExactDeviceRequest | DeviceSubRequest] = request.first_available
    if request.exactly is not None:
        details = (request.exactly,)
    plans = tuple([RequestPlan(claim, request, each, find_class) for each in details])
    return RequestEntry(request, plans, is_list=request.exactly is None)
