"""Random clusters and claims: the allocator gives what a plain reading of spec 08 B7 gives.

The reading is slow on purpose: one device at a time, plain recursion, nothing kept that can be
worked out again. It reads the objects of the API and shares no rule with the allocator.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from kubestow.api.device import (
    ALL,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceConstraint,
    DeviceRequestAllocationResult,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from kubestow.api.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.quantity import Quantity, parse_quantity
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import PluginError, SetAsideError
from kubestow.framework.attempt_timer import NoTimer
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources import search, walk
from kubestow.plugins.dynamic_resources.allocator import (
    DeviceAllocator,
    InvalidPools,
    NodeSearch,
)
from kubestow.plugins.dynamic_resources.features import features_of
from kubestow.plugins.dynamic_resources.requests import plan_claim
from kubestow.plugins.dynamic_resources.results import ClaimAllocation
from kubestow.testing import ManualClock, make_node
from kubestow.testing.devices import (
    make_alternative,
    make_alternatives,
    make_claim,
    make_device,
    make_device_class,
    make_request,
    make_slice,
)

NODE = make_node("n1", labels={"rack": "r1"})
QUICK_CASES = 400
ALL_CASES = 10_000
READING_STEPS_MAX = 20_000

# --- The reading ------------------------------------------------------------------------------


class ReadError(Exception):
    """What ends the attempt of the pod."""


class TooLong(Exception):
    """More combinations than a test should look at."""


class Case(NamedTuple):
    slices: list[ResourceSlice]
    taken: list[ResourceClaim]
    claims: list[ResourceClaim]
    gates: dict[str, bool]

    def is_on(self, gate: str) -> bool:
        return self.gates.get(gate, True)

    @property
    def has_bindings(self) -> bool:
        return self.is_on("DRADeviceBindingConditions")

    @property
    def is_older(self) -> bool:
        return not self.has_bindings and not self.is_on("DRAConsumableCapacity")


def _fast(device: Device, driver: str) -> bool:
    if driver != "d.com" or "fast" not in device.attributes:
        raise ReadError("CEL runtime error: no such key: fast")
    return bool(device.attributes["fast"].bool_value)


def _maybe_fast(device: Device, driver: str) -> bool:
    return driver == "d.com" and "fast" in device.attributes and _fast(device, driver)


EXPRESSIONS: dict[str, Callable[[Device, str], bool]] = {
    "true": lambda device, driver: True,
    "false": lambda device, driver: False,
    'device.attributes["d.com"].?fast.orValue(false)': _maybe_fast,
    'device.attributes["d.com"].fast': _fast,
    "device.allowMultipleAllocations": lambda device, driver: bool(
        device.allow_multiple_allocations
    ),
    'device.driver == "d.com"': lambda device, driver: driver == "d.com",
}
SAFE = [expression for expression in EXPRESSIONS if not expression.endswith(".fast")]
CLASSES = {
    "any": make_device_class("any"),
    "d": make_device_class("d", 'device.driver == "d.com"'),
    "fast": make_device_class("fast", 'device.attributes["d.com"].fast'),
}


def selector(operator: str, value: str, terms: int = 1) -> NodeSelector:
    requirement = NodeSelectorRequirement(key="rack", operator=operator, values=(value,))
    return NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),) * terms
    )


BAD = selector("Gt", "abc")
BAD_TERM = (
    "NodeSelectorTerm{MatchExpressions:[]NodeSelectorRequirement{NodeSelectorRequirement{Key:rack,"
    "Operator:Gt,Values:[abc],},},MatchFields:[]NodeSelectorRequirement{},},"
)
BAD_TEXT = (
    "failed to parse node selector &NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{"
    + BAD_TERM
    + "},}: nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "
    "\"abc\": for 'Gt', 'Lt' operators, the value must be an integer"
)
BAD_DEVICE = (
    "&Device{Name:bad,Attributes:map[QualifiedName]DeviceAttribute{},"
    "Capacity:map[QualifiedName]DeviceCapacity{},ConsumesCounters:[]DeviceCounterConsumption{},"
    "NodeName:nil,NodeSelector:&v11.NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{"
    + BAD_TERM
    + "},},AllNodes:nil,Taints:[]DeviceTaint{},BindsToNode:nil,BindingConditions:[],"
    "BindingFailureConditions:[],AllowMultipleAllocations:nil,NodeAllocatableResourceMappings:"
    "map[k8s_io_api_core_v1.ResourceName]NodeAllocatableResourceMapping{},}"
)


def is_for_node(name: str | None, all_nodes: bool | None, nodes: NodeSelector | None) -> bool:
    if name:
        return name == "n1"
    if all_nodes:
        return True
    if nodes is None:
        return False
    if nodes == BAD:
        raise ReadError(BAD_TEXT)
    return nodes.node_selector_terms[0].match_expressions[0].values == ("r1",)


class Place(NamedTuple):
    """A device where it is tried."""

    pool: "ReadPool"
    of: ResourceSlice
    device: Device

    @property
    def id(self) -> str:
        return f"{self.of.spec.driver}/{self.of.spec.pool.name}/{self.device.name}"


class ReadPool:
    """A pool as the node sees it (B7.1)."""

    def __init__(self, case: Case, kept: list[ResourceSlice]) -> None:
        first = kept[0].spec
        self.key = (first.driver, first.pool.name)
        self.is_obsolete = self.is_incomplete = self.is_invalid = False
        same = kept
        if len(kept) != first.pool.resource_slice_count:
            everywhere = [s for s in case.slices if (s.spec.driver, s.spec.pool.name) == self.key]
            self.is_obsolete = any(
                s.spec.pool.generation > first.pool.generation for s in everywhere
            )
            same = [s for s in everywhere if s.spec.pool.generation == first.pool.generation]
            self.is_incomplete = len(same) != first.pool.resource_slice_count
        own = sorted((s for s in kept if not s.spec.shared_counters), key=lambda s: s.metadata.name)
        self.places = [Place(self, s, device) for s in own for device in s.spec.devices]
        self.counters: dict[str, dict[str, int]] = {}
        if not self.is_incomplete and not self.is_obsolete:
            self._validate(case, kept, same)
        self.everything = [Place(self, s, device) for s in same for device in s.spec.devices]
        if self.is_incomplete or self.is_invalid:
            self.places = []

    def _validate(self, case: Case, kept: list[ResourceSlice], same: list[ResourceSlice]) -> None:
        names = [place.device.name for place in self.places]
        self.is_invalid = len(set(names)) < len(names)
        if not case.is_on("DRAPartitionableDevices"):
            return
        for one in kept:
            for counter_set in one.spec.shared_counters:
                if counter_set.name in self.counters:
                    self.is_invalid = True
                self.counters[counter_set.name] = {
                    name: counter.value.value() for name, counter in counter_set.counters.items()
                }
        for one in same:
            for device in one.spec.devices:
                for entry in device.consumes_counters:
                    known = self.counters.get(entry.counter_set, {})
                    if not set(entry.counters) <= set(known):
                        self.is_invalid = True


def read_pools(case: Case) -> list[ReadPool]:
    local = [s for s in case.slices if s.spec.node_name and not s.spec.shared_counters]
    others = [s for s in case.slices if s not in local]
    seen: dict[tuple[str, str], list[ResourceSlice]] = {}
    for one in [s for s in local if s.spec.node_name == "n1"] + others:
        spec = one.spec
        is_partitioned = spec.shared_counters or spec.per_device_node_selection is not None
        if is_partitioned and not case.is_on("DRAPartitionableDevices"):
            continue
        if is_relevant(one):
            seen.setdefault((spec.driver, spec.pool.name), []).append(one)
    pools: list[ReadPool] = []
    for group in seen.values():
        newest = max(s.spec.pool.generation for s in group)
        pools.append(ReadPool(case, [s for s in group if s.spec.pool.generation == newest]))

    def order(pool: ReadPool) -> Any:
        return any(place.device.binding_conditions for place in pool.places), pool.key

    return sorted((pool for pool in pools if not pool.is_obsolete), key=order)


def is_relevant(one: ResourceSlice) -> bool:
    spec = one.spec
    failed = "gather pool information: failed to perform node selection for"
    if spec.shared_counters:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        try:
            return is_for_node(spec.node_name, spec.all_nodes, spec.node_selector)
        except ReadError as error:
            raise ReadError(f"{failed} slice {one.metadata.name}: {error}") from error
    if not spec.per_device_node_selection:
        return False
    for device in spec.devices:
        try:
            if is_for_node(device.node_name, device.all_nodes, device.node_selector):
                return True
        except ReadError as error:
            raise ReadError(
                f"{failed} device {BAD_DEVICE} in slice {one.metadata.name}: {error}"
            ) from error
    return False


class Wanted(NamedTuple):
    """A request, or an alternative of one."""

    claim: int
    parent: str
    name: str
    full_name: str
    details: Any
    is_admin: bool


class Got(NamedTuple):
    wanted: Wanted
    place: Place
    amounts: dict[str, int] | None
    was_charged: bool


MARKER = "too many"


class Reading:
    """One attempt on the node, step by step."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps = 0
        self.got: list[Got] = []
        # Per claim and distinctAttribute constraint: request → value.
        self.remembered: dict[tuple[int, int], dict[str, Any]] = {}
        self.pools = read_pools(case)
        self.places = [place for pool in self.pools for place in pool.places]
        # Where all devices are requested: claim and request → devices.
        self.everything: dict[tuple[int, str], list[Place]] = {}
        for index in range(len(case.claims)):
            self.prepare(index)

    def run(self) -> object:
        if self.fill_claim(0) is True:
            return [self.result_of(index) for index in range(len(self.case.claims))]
        return "invalid" if any(pool.is_invalid for pool in self.pools) else None

    # --- B7.2 ---

    def wanted(self, claim: int) -> list[list[Wanted]]:
        found: list[list[Wanted]] = []
        for request in self.case.claims[claim].spec.devices.requests:
            if request.exactly is not None:
                is_admin = bool(request.exactly.admin_access)
                own = Wanted(
                    claim, request.name, request.name, request.name, request.exactly, is_admin
                )
                found.append([own])
            else:
                found.append(
                    [
                        Wanted(
                            claim, request.name, sub.name, f"{request.name}/{sub.name}", sub, False
                        )
                        for sub in request.first_available
                    ]
                )
        return found

    def prepare(self, claim: int) -> None:
        case = self.case
        name = f"default/{case.claims[claim].metadata.name}"
        total = 0
        for options in self.wanted(claim):
            if not case.is_on("DRAConsumableCapacity") and not case.is_older:
                for option in options:
                    if option.details.capacity is not None:
                        kind = "request" if option.name == option.parent else "subrequest"
                        raise ReadError(
                            f"claim {name}, {kind} {option.name}: has capacity requests, but the "
                            "DRAConsumableCapacity feature is disabled"
                        )
            total += min([self.number(name, option) for option in options])
        if total > 32:
            raise ReadError(
                f"claim {name}: number of requested devices {total} exceeds the claim limit of 32"
            )
        for index, constraint in enumerate(case.claims[claim].spec.devices.constraints):
            if constraint.match_attribute is not None:
                continue
            if constraint.distinct_attribute is not None and not case.is_older:
                continue
            raise ReadError(
                f"claim {name}, constraint #{index}: "
                "empty constraint (unsupported constraint type?)"
            )

    def number(self, claim_name: str, option: Wanted) -> int:
        if option.details.allocation_mode != ALL:
            return option.details.count
        found = self.everything[option.claim, option.full_name] = []
        for pool in self.pools:
            for is_bad, state in (
                (pool.is_incomplete, "being updated"),
                (pool.is_invalid, "invalid"),
            ):
                if is_bad:
                    raise ReadError(
                        f"claim {claim_name}, request {option.name}: asks for all devices, but "
                        f"resource pool {'/'.join(pool.key)} is currently {state}"
                    )
            found += [
                place
                for place in pool.places
                if self.is_selectable(option, place) and self.fits_capacity(option, place)
            ]
        return len(found)

    # --- B7.3 ---

    def fill_claim(self, claim: int) -> bool | str:
        if claim == len(self.case.claims):
            return True
        outcome = self.fill_request(claim, 0)
        return False if outcome == MARKER else outcome

    def fill_request(self, claim: int, index: int) -> bool | str:
        requests = self.wanted(claim)
        if index == len(requests):
            return self.fill_claim(claim + 1)
        is_list = self.case.claims[claim].spec.devices.requests[index].exactly is None
        if not is_list:
            return self.fill_slots(requests[index][0], index, 0, 0)
        outcomes: list[bool | str] = []
        for option in requests[index]:
            outcome = self.fill_slots(option, index, 0, 0)
            if outcome is True:
                return True
            outcomes.append(outcome)
        return MARKER if all(outcome == MARKER for outcome in outcomes) else False

    def fill_slots(self, option: Wanted, index: int, slot: int, start: int) -> bool | str:
        self.steps += 1
        if self.steps > READING_STEPS_MAX:
            raise TooLong
        is_all = option.details.allocation_mode == ALL
        everything = self.everything.get((option.claim, option.full_name), [])
        count = len(everything) if is_all else option.details.count
        if is_all and count == 0:
            return False
        if slot >= count:
            return self.fill_request(option.claim, index + 1)
        if sum(got.wanted.claim == option.claim for got in self.got) + count - slot > 32:
            return MARKER
        places = everything[slot : slot + 1] if is_all else self.places[start:]
        for offset, place in enumerate(places):
            if not self.take(option, place, is_all=is_all):
                continue
            outcome = self.fill_slots(option, index, slot + 1, start + offset + 1)
            if outcome is True:
                return True
            self.undo()
            if outcome == MARKER:
                return MARKER
        return False

    # --- B7.4 ---

    def take(self, option: Wanted, place: Place, *, is_all: bool) -> bool:
        if self.is_in_use(option, place):
            return False
        if not is_all and not (
            self.is_selectable(option, place) and self.fits_capacity(option, place)
        ):
            return False
        consumes = place.device.consumes_counters
        if consumes and not self.case.is_on("DRAPartitionableDevices"):
            return False
        charges = bool(consumes) and not self.is_charged(place)
        if charges and not self.has_counters(place):
            return False
        if not self.tolerates(option, place):
            return False
        count = len(self.case.claims[option.claim].spec.devices.constraints)
        for index in range(count):
            if self.accepts(option, index, place):
                continue
            for earlier in range(index):
                self.forget(option, earlier)
            if is_all:
                raise ReadError(
                    f"claim default/{self.case.claims[option.claim].metadata.name}, request "
                    f"{option.name}: cannot add device {place.id} because a claim constraint "
                    "would not be satisfied"
                )
            return False
        if is_all and not self.fits_capacity(option, place):
            for index in range(count):
                self.forget(option, index)
            return False
        amounts = self.amounts(option, place) if self.is_shareable(place) else None
        self.got.append(Got(option, place, amounts, charges))
        return True

    def undo(self) -> None:
        got = self.got.pop()
        claim = self.case.claims[got.wanted.claim]
        for index in range(len(claim.spec.devices.constraints)):
            self.forget(got.wanted, index)

    def results(self, place: Place) -> Iterator[DeviceRequestAllocationResult]:
        """What other claims have of the device, apart from access for administrators."""
        for claim in self.case.taken:
            assert claim.status.allocation is not None
            for result in claim.status.allocation.devices.results:
                name = f"{result.driver}/{result.pool}/{result.device}"
                if name == place.id and not result.admin_access:
                    yield result

    def is_dedicated(self, place: Place) -> bool:
        shares = self.case.is_on("DRAConsumableCapacity")
        return any(result.share_id is None or not shares for result in self.results(place))

    def is_in_use(self, option: Wanted, place: Place) -> bool:
        holders = [
            got.wanted.claim for got in self.got if got.place.id == place.id and got.amounts is None
        ]
        if option.is_admin:
            return option.claim in holders
        return bool(holders) or self.is_dedicated(place)

    def is_shareable(self, place: Place) -> bool:
        is_on = self.case.is_on("DRAConsumableCapacity")
        return is_on and bool(place.device.allow_multiple_allocations)

    def is_selectable(self, option: Wanted, place: Place) -> bool:
        device, driver = place.device, place.of.spec.driver
        if device.binding_conditions and not self.case.has_bindings:
            return False
        class_name = option.details.device_class_name
        claim_name = f"default/{self.case.claims[option.claim].metadata.name}"
        for prefix, selectors in (
            (f"class {class_name}", CLASSES[class_name].spec.selectors),
            (f"claim {claim_name}", option.details.selectors),
        ):
            for index, each in enumerate(selectors):
                try:
                    if any(value.int_values for value in device.attributes.values()):
                        raise ReadError(
                            "CEL runtime error: attribute numa: unsupported attribute value"
                        )
                    if not EXPRESSIONS[each.cel.expression](device, driver):
                        return False
                except ReadError as error:
                    raise ReadError(f"{prefix}: selector #{index}: {error}") from error
        if not place.of.spec.per_device_node_selection:
            return True
        return is_for_node(device.node_name, device.all_nodes, device.node_selector)

    # --- B7.5 ---

    def is_charged(self, place: Place) -> bool:
        if not self.is_shareable(place):
            return False
        if any(got.place.id == place.id for got in self.got):
            return True
        return any(result.share_id and result.consumed_capacity for result in self.results(place))

    def has_counters(self, place: Place) -> bool:
        drawn = [each for each in place.pool.everything if any(True for _ in self.results(each))]
        drawn += [got.place for got in self.got if got.was_charged and got.place.pool is place.pool]
        left = {name: dict(counters) for name, counters in place.pool.counters.items()}
        for each in [*drawn, place]:
            for entry in each.device.consumes_counters:
                for name, counter in entry.counters.items():
                    left[entry.counter_set][name] -= counter.value.value()
        return all(amount >= 0 for counters in left.values() for amount in counters.values())

    # --- B7.6 ---

    def amounts(self, option: Wanted, place: Place) -> dict[str, int] | None:
        requested: dict[str, Quantity] = {}
        if option.details.capacity is not None:
            requested = option.details.capacity.requests
        if not set(requested) <= set(place.device.capacity):
            return None
        found: dict[str, int] = {}
        for name, entry in place.device.capacity.items():
            policy, full = entry.request_policy, entry.value.value()
            if name not in requested:
                has_default = policy is not None and policy.default is not None
                found[name] = policy.default.value() if has_default else full
                continue
            amount = requested[name].value()
            if policy is not None and policy.valid_range is not None:
                least, step = policy.valid_range.min.value(), policy.valid_range.step.value()
                amount = max(amount, least)
                while (amount - least) % step:
                    amount += 1
                if policy.valid_range.max is not None and amount > policy.valid_range.max.value():
                    return None
            elif policy is not None:
                larger = [v.value() for v in policy.valid_values if v.value() >= amount]
                if not larger:
                    return None
                amount = larger[0]
            found[name] = amount
        return found

    def fits_capacity(self, option: Wanted, place: Place) -> bool:
        if not self.case.is_on("DRAConsumableCapacity"):
            return True
        amounts = self.amounts(option, place)
        if amounts is None:
            return False
        for name, amount in amounts.items():
            total = amount
            for result in self.results(place):
                if result.share_id and name in result.consumed_capacity:
                    total += result.consumed_capacity[name].value()
            for got in self.got:
                if got.place.id == place.id and got.amounts is not None:
                    total += got.amounts[name]
            if total > place.device.capacity[name].value.value():
                return False
        return True

    def tolerates(self, option: Wanted, place: Place) -> bool:
        if not self.case.is_on("DRADeviceTaints"):
            return True
        for taint in place.device.taints:
            if taint.effect not in ("NoSchedule", "NoExecute"):
                continue
            if not any(
                (not each.effect or each.effect == taint.effect)
                and (not each.key or each.key == taint.key)
                and (each.operator == "Exists" or each.value == taint.value)
                for each in option.details.tolerations
            ):
                return False
        return True

    # --- B7.7 ---

    def accepts(self, option: Wanted, index: int, place: Place) -> bool:
        constraint = self.case.claims[option.claim].spec.devices.constraints[index]
        if not self.applies(constraint, option):
            return True
        name = constraint.match_attribute or constraint.distinct_attribute
        assert name is not None
        attribute = self.attribute(place, name)
        if attribute is None:
            return False
        if constraint.match_attribute is not None:
            earlier = [
                self.attribute(got.place, name)
                for got in self.got
                if got.wanted.claim == option.claim and self.applies(constraint, got.wanted)
            ]
            if not earlier:
                return True
            return attribute.int_values is None and attribute == earlier[0]
        values = self.remembered.setdefault((option.claim, index), {})
        if values and (attribute.int_values is not None or attribute in values.values()):
            return False
        values[option.parent] = attribute
        return True

    def forget(self, option: Wanted, index: int) -> None:
        constraint = self.case.claims[option.claim].spec.devices.constraints[index]
        if constraint.match_attribute is None and self.applies(constraint, option):
            self.remembered.get((option.claim, index), {}).pop(option.parent, None)

    def applies(self, constraint: DeviceConstraint, option: Wanted) -> bool:
        names = constraint.requests
        return not names or option.parent in names or option.full_name in names

    def attribute(self, place: Place, name: str) -> DeviceAttribute | None:
        attributes = place.device.attributes
        domain, _, identifier = name.partition("/")
        if name in attributes:
            return attributes[name]
        return attributes.get(identifier) if domain == place.of.spec.driver else None

    # --- B7.8 ---

    def result_of(self, claim: int) -> object:
        mine = [got for got in self.got if got.wanted.claim == claim]
        return [
            (
                got.wanted.full_name,
                got.place.id,
                got.wanted.is_admin,
                got.amounts,
                got.place.device.binding_conditions,
            )
            for got in mine
        ], self.node_selector(claim, mine)

    def node_selector(self, claim: int, mine: Sequence[Got]) -> object:
        values: list[str] = []
        for got in mine:
            place = got.place
            by_device = bool(place.of.spec.per_device_node_selection)
            source: Any = place.device if by_device else place.of.spec
            binds = place.device.binds_to_node and not self.case.is_older
            if source.node_name or binds:
                return "n1"
            if source.node_selector is not None:
                terms = source.node_selector.node_selector_terms
                if len(terms) > 1:
                    raise ReadError(
                        f"create NodeSelector for claim {self.case.claims[claim].metadata.name}: "
                        f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
                    )
                for value in terms[0].match_expressions[0].values:
                    if value not in values:
                        values.append(value)
        return values or None


def read(case: Case) -> object:
    try:
        return Reading(case).run()
    except ReadError as error:
        return str(error)


# --- The allocator ----------------------------------------------------------------------------


class Interrupting(NoTimer):
    """Interrupts at random. Never every second time: some pieces of work are two calls apart."""

    def __init__(self, seed: int) -> None:
        self._dice = Dice(seed)
        self.parts = 0

    def may_interrupt(self) -> None:
        if self._dice.happens(30):
            self.parts += 1
            raise SetAsideError(0.0)


def run_in_parts(search: NodeSearch, timer: Interrupting) -> tuple[ClaimAllocation, ...] | None:
    while True:
        try:
            return search.run(timer)
        except SetAsideError:
            continue


def allocate(case: Case, timer: Interrupting | None = None) -> object:
    objects = ClusterObjects()
    objects.put(*CLASSES.values(), *case.slices, *case.taken)
    gates = FeatureGates({**case.gates})
    known = KnownDevices.of(objects, gates)
    allocator = DeviceAllocator(known, features_of(gates), 0, ManualClock())
    plans = [plan_claim(claim, known.classes.get) for claim in case.claims]
    try:
        if timer is None:
            found = allocator.allocate(NODE, plans)
        else:
            found = run_in_parts(allocator.search(NODE, plans), timer)
    except InvalidPools:
        return "invalid"
    except PluginError as error:
        return str(error)
    if found is None:
        return None
    return [(_results(each.result, each.shared), _nodes(each.result)) for each in found]


def _results(allocation: AllocationResult, shared: Sequence[int]) -> list[object]:
    return [
        (
            result.request,
            f"{result.driver}/{result.pool}/{result.device}",
            bool(result.admin_access),
            {name: amount.value() for name, amount in result.consumed_capacity.items()}
            if index in shared
            else None,
            result.binding_conditions,
        )
        for index, result in enumerate(allocation.devices.results)
    ]


def _nodes(allocation: AllocationResult) -> object:
    if allocation.node_selector is None:
        return None
    (term,) = allocation.node_selector.node_selector_terms
    if term.match_fields:
        (name,) = term.match_fields[0].values or ()
        return name
    return [value for each in term.match_expressions for value in each.values or ()]


# --- Random cases -----------------------------------------------------------------------------


class Dice:
    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def among(self, *options: Any) -> Any:
        return options[int(self._generator.integers(len(options)))]

    def happens(self, percent: int) -> bool:
        return int(self._generator.integers(100)) < percent


POLICIES = (
    None,
    CapacityRequestPolicy(
        default=parse_quantity("1"),
        valid_range=CapacityRequestPolicyRange(
            min=parse_quantity("1"), step=parse_quantity("2"), max=parse_quantity("3")
        ),
    ),
    CapacityRequestPolicy(
        default=parse_quantity("2"), valid_values=(parse_quantity("1"), parse_quantity("2"))
    ),
)
TOLERATIONS: tuple[tuple[DeviceToleration, ...], ...] = (
    (),
    (DeviceToleration(operator="Exists"),),
    (DeviceToleration(key="a", operator="Equal", value="1", effect="NoSchedule"),),
)
COUNTERS: tuple[dict[str, dict[str, str]], ...] = (
    {},
    {"s": {"c": "1"}},
    {"s": {"c": "2"}},
    {"s": {"c": "1"}, "t": {"c": "1"}},
)
GATES = (
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaints",
    "DRAPartitionableDevices",
)


def random_case(seed: int) -> Case:
    dice = Dice(seed)
    slices: list[ResourceSlice] = []
    for pool in range(dice.among(1, 1, 2, 3)):
        slices += random_pool(dice, driver=dice.among("d.com", "d.com", "e.com"), pool=f"p{pool}")
    devices = [(one, device) for one in slices for device in one.spec.devices]
    taken = [
        random_share(dice, number, one, device)
        for number, (one, device) in enumerate(devices)
        if dice.happens(10)
    ]
    # Most cases avoid selectors that fail: such an error hides everything after it.
    expressions = list(EXPRESSIONS) if dice.happens(20) else SAFE
    claims = [random_claim(dice, f"c{i}", expressions) for i in range(dice.among(1, 1, 2))]
    gates = {gate: False for gate in GATES if dice.happens(30)} if dice.happens(25) else {}
    return Case(slices, taken, claims, gates)


def random_pool(dice: Dice, *, driver: str, pool: str) -> list[ResourceSlice]:
    has_counters = dice.happens(30)
    names = iter(f"{pool}-{number}" for number in range(100))
    parts = dice.among(1, 1, 2)
    # Sometimes a slice is missing, or there is one too many.
    total = parts + has_counters + (dice.among(-1, 1) if dice.happens(5) else 0)
    common: dict[str, Any] = {"driver": driver, "pool": pool, "slice_count": total}
    found: list[ResourceSlice] = []
    if has_counters:
        counters = {"s": {"c": dice.among("1", "2", "3")}, "t": {"c": "1"}}
        found.append(make_slice(name=next(names), counters=counters, **common))
    numbers = iter(range(100))
    for _ in range(parts):
        place = random_place(dice)
        is_by_device = "per_device" in place
        devices = [
            random_device(dice, f"d{next(numbers)}", has_counters, is_by_device=is_by_device)
            for _ in range(dice.among(0, 2, 3, 4, 5))
        ]
        if devices and dice.happens(3):
            devices.append(devices[0])
        if is_by_device and dice.happens(4):
            devices.insert(dice.among(0, len(devices)), make_device("bad", node_selector=BAD))
        generation = 2 if dice.happens(5) else 1
        found.append(
            make_slice(*devices, name=next(names), generation=generation, **place, **common)
        )
    return found[::-1] if dice.happens(50) else found


def random_place(dice: Dice) -> dict[str, Any]:
    if dice.happens(1):
        return {"node_selector": BAD}
    return dice.among(
        *({"node": "n1"},) * 4,
        *({"all_nodes": True},) * 3,
        {"node": "n2"},
        {"node_selector": selector("In", "r1")},
        {"node_selector": selector("In", "r2")},
        {"per_device": True},
    )


def random_device(dice: Dice, name: str, has_counters: bool, *, is_by_device: bool) -> Device:
    attributes: dict[str, Any] = {}
    if dice.happens(70):
        attributes[dice.among("numa", "d.com/numa")] = dice.among(0, 1)
    if dice.happens(50):
        attributes["fast"] = dice.among(True, False)
    place: dict[str, Any] = {}
    if is_by_device:
        place = dice.among(
            {"node": "n1"},
            {"node": "n2"},
            {"all_nodes": True},
            {"node_selector": selector("In", "r1")},
            {"node_selector": selector("In", "r1", terms=dice.among(1, 2))},
        )
    capacity = {"memory": "3"} if dice.happens(35) else {}
    # A counter that no slice has makes the pool invalid.
    may_draw = dice.happens(60) if has_counters else dice.happens(2)
    made = make_device(
        name,
        attributes=attributes,
        capacity=capacity,
        policies={"memory": dice.among(*POLICIES)} if capacity else {},
        consumes=dice.among(*COUNTERS) if may_draw else {},
        taints=dice.among((), (), (), (), ("a=1:NoSchedule",), ("a=1:None",)),
        shareable=dice.among(None, None, True),
        binding_conditions=("Ready",) if dice.happens(6) else (),
        binds_to_node=True if dice.happens(5) else None,
        **place,
    )
    if dice.happens(3):
        made.attributes["numa"] = DeviceAttribute(int_values=(0, 1))
    return made


def random_share(dice: Dice, number: int, one: ResourceSlice, device: Device) -> ResourceClaim:
    is_shared = bool(device.allow_multiple_allocations) and dice.happens(80)
    consumed = {name: parse_quantity(dice.among("0", "1", "2")) for name in device.capacity}
    result = DeviceRequestAllocationResult(
        request="r",
        driver=one.spec.driver,
        pool=one.spec.pool.name,
        device=device.name,
        admin_access=True if dice.happens(10) else None,
        share_id=f"share-{number}" if is_shared else None,
        consumed_capacity=consumed if is_shared and dice.happens(80) else {},
    )
    devices = DeviceAllocationResult(results=(result,))
    return make_claim(f"taken-{number}", allocation=AllocationResult(devices=devices))


def random_claim(dice: Dice, name: str, expressions: Sequence[str]) -> ResourceClaim:
    def details() -> dict[str, Any]:
        capacity = None
        if dice.happens(20):
            capacity = {dice.among("memory", "memory", "gone"): dice.among("1", "2", "4")}
        return {
            "device_class": dice.among("any", "any", "any", "d")
            if expressions is SAFE
            else dice.among("any", "any", "fast"),
            "mode": dice.among(*("ExactCount",) * 7, ALL),
            "count": dice.among(1, 1, 1, 2, 2, 3) if dice.happens(94) else dice.among(29, 31, 32),
            "tolerations": dice.among(*TOLERATIONS),
            "capacity": capacity,
        }

    def expression() -> list[str]:
        return [] if dice.happens(50) else [dice.among(*expressions)]

    requests: list[Any] = []
    for index in range(dice.among(0, 1, 1, 1, 2, 2, 3)):
        if dice.happens(40):
            alternatives = [
                make_alternative(f"s{number}", *expression(), **details())
                for number in range(dice.among(1, 2, 3))
            ]
            requests.append(make_alternatives(f"r{index}", *alternatives))
        else:
            admin = dice.among(None, None, None, True)
            requests.append(make_request(f"r{index}", *expression(), admin=admin, **details()))
    constraints = [random_constraint(dice) for _ in range(dice.among(0, 0, 0, 0, 1, 1, 2))]
    return make_claim(name, *requests, constraints=constraints)


def random_constraint(dice: Dice) -> DeviceConstraint:
    if dice.happens(2):
        return DeviceConstraint()
    field = dice.among("match_attribute", "distinct_attribute")
    names = dice.among((), (), ("r0",), ("r0/s0",), ("r0", "r1"))
    return DeviceConstraint(requests=names, **{field: dice.among("d.com/numa", "d.com/fast")})


# --- Comparing --------------------------------------------------------------------------------


def check(seeds: range) -> dict[str, int]:
    """Compare all cases; return how many ended in which way."""
    ends: dict[str, int] = {}
    for seed in seeds:
        case = random_case(seed)
        try:
            expected = read(case)
        except TooLong:
            ends["too long to read"] = ends.get("too long to read", 0) + 1
            continue
        assert allocate(case) == expected, f"seed {seed}: {case}"
        kind = "allocated" if isinstance(expected, list) else "error"
        kind = str(expected) if expected in (None, "invalid") else kind
        ends[kind] = ends.get(kind, 0) + 1
    return ends


@pytest.fixture(params=["as-it-is", "always-pruned"])
def _pruning(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few small searches take long enough to be pruned, so all of them are as well."""
    if request.param == "always-pruned":
        monkeypatch.setattr(search, "RETRIES_PER_DEVICE", -1)


@pytest.mark.usefixtures("_pruning")
def test_devices_are_those_of_the_reading() -> None:
    ends = check(range(QUICK_CASES))
    assert ends["allocated"] > QUICK_CASES // 5
    assert min(ends["None"], ends["error"], ends["invalid"]) > 0
    assert ends.get("too long to read", 0) < QUICK_CASES // 50


@pytest.mark.slow
@pytest.mark.usefixtures("_pruning")
def test_devices_of_many_cases_are_those_of_the_reading() -> None:
    ends = check(range(QUICK_CASES, ALL_CASES))
    assert ends["allocated"] > ALL_CASES // 5
    assert ends.get("too long to read", 0) < ALL_CASES // 50


@pytest.mark.usefixtures("_pruning")
def test_a_search_that_is_interrupted_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "STEPS_PER_CHECK", 1)
    parts = 0
    for seed in range(QUICK_CASES):
        case, timer = random_case(seed), Interrupting(seed)
        assert allocate(case, timer) == allocate(case), f"seed {seed}: {case}"
        parts += timer.parts
    assert parts > QUICK_CASES
