"""Random clusters and claims: v1.37 allocates what a plain reading of spec 12 §10 gives.

The reading is that of v1.36 (spec 08 B7), with what differs.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from tests.plugins.dynamic_resources import test_random_allocations as earlier
from tests.plugins.dynamic_resources.test_random_allocations import (
    CLASSES,
    NODE,
    Case,
    Dice,
    Place,
    ReadError,
    Reading,
    ReadPool,
    TooLong,
    Wanted,
)

from kubestow.api.device import (
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceTaintRule,
    ResourceSlice,
)
from kubestow.api.quantity import Quantity, parse_quantity
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions.v1_37 import EDITION
from kubestow.editions.v1_37.plugins.dynamic_resources import DynamicResourcesV137
from kubestow.errors import PluginError
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources import search
from kubestow.plugins.dynamic_resources.allocator import DeviceAllocator, InvalidPools
from kubestow.plugins.dynamic_resources.requests import plan_claim
from kubestow.testing import ManualClock

RULES = DynamicResourcesV137.allocation_rules
CASES = 300
ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields"
)
INT64_MAX = 2**63 - 1
FRACTIONS = "DRAFractionalCapacityRange"


class NewPool(ReadPool):
    """§10.2 f: counters come from all slices of the pool."""

    def _validate(self, case: Case, kept: list[ResourceSlice], same: list[ResourceSlice]) -> None:
        super()._validate(case, same if case.is_on("DRAPartitionableDevices") else kept, same)


class NewReading(Reading):
    def __init__(self, case: Case, rules: Sequence[DeviceTaintRule]) -> None:
        self.rules = rules
        self.chosen: dict[tuple[int, int], list[Any]] = {}
        super().__init__(case)

    # --- §10.2 a to i ---

    def accepts(self, option: Wanted, index: int, place: Place) -> bool:
        constraint = self.case.claims[option.claim].spec.devices.constraints[index]
        if constraint.distinct_attribute is None or not self.applies(constraint, option):
            return super().accepts(option, index, place)
        attribute = self.attribute(place, constraint.distinct_attribute)
        if attribute is None:
            return False
        chosen = self.chosen.setdefault((option.claim, index), [])
        if chosen and (attribute.int_values is not None or attribute in chosen):
            return False
        chosen.append(attribute)
        return True

    def forget(self, option: Wanted, index: int) -> None:
        constraint = self.case.claims[option.claim].spec.devices.constraints[index]
        if constraint.distinct_attribute is not None and self.applies(constraint, option):
            self.chosen[option.claim, index].pop()

    def is_charged(self, place: Place) -> bool:
        if not self.is_shareable(place):
            return False
        if any(got.place.id == place.id for got in self.got):
            return True
        return any(result.share_id for result in self.results(place))

    def is_selectable(self, option: Wanted, place: Place) -> bool:
        # Lists are values of expressions, so no selector fails because of one.
        device = place.device
        without = {name: each for name, each in device.attributes.items() if not each.int_values}
        plain = msgspec.structs.replace(device, attributes=without)
        try:
            return super().is_selectable(option, place._replace(device=plain))
        except ReadError as error:
            text = str(error).replace(": CEL", f" on device {place.id}: CEL", 1)
            raise ReadError(text + (ADVICE if "no such key:" in text else "")) from error

    def tolerates(self, option: Wanted, place: Place) -> bool:
        added = [
            rule.spec.taint
            for rule in self.rules
            for wanted in [rule.spec.device_selector]
            if wanted is None
            or (
                wanted.driver in (None, place.of.spec.driver)
                and wanted.pool in (None, place.of.spec.pool.name)
                and wanted.device in (None, place.device.name)
            )
        ]
        tainted = msgspec.structs.replace(place.device, taints=(*place.device.taints, *added))
        return super().tolerates(option, place._replace(device=tainted))

    def number(self, claim_name: str, option: Wanted) -> int:
        """§10.2 c: for all devices, what others have of them does not count here."""
        taken, self.case = self.case, self.case._replace(taken=[])
        try:
            return super().number(claim_name, option)
        except CapacityProblem as problem:
            raise problem.read_error(problem.place.device.name) from problem
        finally:
            self.case = taken

    def take(self, option: Wanted, place: Place, *, is_all: bool) -> bool:
        try:
            return super().take(option, place, is_all=is_all)
        except CapacityProblem as problem:
            raise problem.read_error(problem.place.id) from problem

    def amounts(self, option: Wanted, place: Place) -> Any:
        requested: dict[str, Quantity] = {}
        if option.details.capacity is not None:
            requested = option.details.capacity.requests
        if not set(requested) <= set(place.device.capacity):
            return None
        found: dict[str, Fraction] = {}
        for name, entry in place.device.capacity.items():
            policy = entry.request_policy
            if name not in requested:
                has_default = policy is not None and policy.default is not None
                found[name] = number_of(policy.default if has_default else entry.value)
                continue
            try:
                found[name] = self.rounded(requested[name], policy)
            except ReadError as error:
                claim = f"default/{self.case.claims[option.claim].metadata.name}"
                raise CapacityProblem(claim, option.name, place, name, str(error)) from error
        for name, amount in found.items():
            policy = place.device.capacity[name].request_policy
            if policy is not None and not self.is_allowed(amount, policy):
                return None
        return found

    def rounded(self, wanted: Quantity, policy: CapacityRequestPolicy | None) -> Fraction:
        amount = number_of(wanted)
        if policy is None:
            return amount
        if policy.valid_range is None:
            larger = [number_of(v) for v in policy.valid_values if number_of(v) >= amount]
            return larger[0] if larger else amount
        least, step = policy.valid_range.min, policy.valid_range.step
        if amount < number_of(least):
            return number_of(least)
        if step is None:
            return amount
        unit = self.unit(policy.valid_range)
        failed = "capacity request cannot be represented in the device's range arithmetic"
        if unit == 1 and amount > INT64_MAX:
            raise ReadError(f"{failed}: request {wanted} exceeds MaxInt64")
        if unit != 1 and (amount / unit).denominator != 1:
            raise ReadError(f"{failed}: request {wanted} is not a representable milli value")
        lowest, size, given = (up(number_of(q), unit) for q in (least, step, wanted))
        while (given - lowest) % size:
            given += unit
        return given

    def unit(self, valid: CapacityRequestPolicyRange) -> Fraction:
        is_on = self.case.gates.get(FRACTIONS, False)
        return Fraction(1, 1000) if is_on else Fraction(1)

    def is_allowed(self, amount: Fraction, policy: CapacityRequestPolicy) -> bool:
        if amount == number_of(policy.default):
            return True
        if policy.valid_range is None:
            return amount in [number_of(value) for value in policy.valid_values]
        valid = policy.valid_range
        if valid.max is not None and amount > number_of(valid.max):
            return False
        if valid.step is None:
            return True
        unit = self.unit(valid)
        lowest, size, given = (
            up(each, unit) for each in (number_of(valid.min), number_of(valid.step), amount)
        )
        return (given - lowest) % size == 0

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
                    total += number_of(result.consumed_capacity[name])
            for got in self.got:
                if got.place.id == place.id and got.amounts is not None:
                    total += got.amounts[name]
            if total > number_of(place.device.capacity[name].value):
                return False
        return True


class CapacityProblem(Exception):
    def __init__(self, claim: str, request: str, place: Place, capacity: str, why: str) -> None:
        super().__init__(why)
        self.claim, self.request, self.place = claim, request, place
        self.capacity, self.why = capacity, why

    def read_error(self, device: str) -> ReadError:
        return ReadError(
            f"claim {self.claim}, request {self.request}: checking capacity for device {device}: "
            f'capacity "{self.capacity}": {self.why}'
        )


def number_of(quantity: Any) -> Fraction:
    return Fraction(quantity.nano, 10**9)


def up(number: Fraction, unit: Fraction) -> Fraction:
    return -(-number // unit) * unit


def read(case: Case, rules: Sequence[DeviceTaintRule]) -> object:
    try:
        return NewReading(case, rules).run()
    except ReadError as error:
        return str(error)


def allocate(case: Case, rules: Sequence[DeviceTaintRule]) -> object:
    objects = ClusterObjects()
    objects.put(*CLASSES.values(), *case.slices, *case.taken, *rules)
    gates = FeatureGates({**case.gates}, EDITION)
    known = KnownDevices.of(objects, gates)
    allocator = DeviceAllocator(known, RULES.features_of(gates), 0, ManualClock(), RULES)
    plans = [plan_claim(claim, known.classes.get) for claim in case.claims]
    try:
        found = allocator.allocate(NODE, plans)
    except InvalidPools:
        return "invalid"
    except PluginError as error:
        return str(error)
    if found is None:
        return None
    return [(results(each.result, each.shared), earlier._nodes(each.result)) for each in found]


def results(allocation: AllocationResult, shared: Sequence[int]) -> list[object]:
    return [
        (
            result.request,
            f"{result.driver}/{result.pool}/{result.device}",
            bool(result.admin_access),
            {name: number_of(amount) for name, amount in result.consumed_capacity.items()}
            if index in shared
            else None,
            result.binding_conditions,
        )
        for index, result in enumerate(allocation.devices.results)
    ]


# --- Random cases -----------------------------------------------------------------------------


def random_case(seed: int) -> tuple[Case, list[DeviceTaintRule]]:
    """A case of v1.36 with rules, places of counters, and amounts that are no whole numbers."""
    case, dice = earlier.random_case(seed), Dice(seed + 1_000_000)
    gates = {name: on for name, on in case.gates.items() if on in (False,)}
    if gates.get("DRAConsumableCapacity", True) and dice.happens(50):
        gates[FRACTIONS] = True
    slices = [with_place(dice, each) for each in case.slices]
    policy = CapacityRequestPolicy(
        default=parse_quantity("500m"),
        valid_range=CapacityRequestPolicyRange(
            min=parse_quantity("500m"), step=parse_quantity(dice.among("250m", "1"))
        ),
    )
    if dice.happens(50):
        slices = [with_policy(each, policy) for each in slices]
    if dice.happens(50):
        # Amounts that are no whole numbers.
        for claim in case.claims:
            for request in claim.spec.devices.requests:
                for details in (request.exactly, *request.first_available):
                    if details is not None and details.capacity is not None:
                        for name in details.capacity.requests:
                            details.capacity.requests[name] = parse_quantity(
                                dice.among("700m", "1100m", "1250m")
                            )
    rules = [random_rule(dice, f"rule-{number}") for number in range(dice.among(0, 0, 1, 2))]
    return case._replace(slices=slices, gates=gates), rules


def with_place(dice: Dice, one: ResourceSlice) -> ResourceSlice:
    if not one.spec.shared_counters:
        return one
    place: dict[str, Any] = dice.among(
        {"node_name": "n1"}, {"node_name": "n2"}, {"all_nodes": True}, {"node_name": "n1"}
    )
    empty = {"node_name": None, "all_nodes": None, "node_selector": None}
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, **empty | place))


def with_policy(one: ResourceSlice, policy: CapacityRequestPolicy) -> ResourceSlice:
    devices = tuple(
        msgspec.structs.replace(
            device,
            capacity={
                name: msgspec.structs.replace(entry, request_policy=policy)
                if entry.request_policy is not None
                else entry
                for name, entry in device.capacity.items()
            },
        )
        for device in one.spec.devices
    )
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, devices=devices))


def random_rule(dice: Dice, name: str) -> DeviceTaintRule:
    selector = {
        field: dice.among(*values)
        for field, values in (("driver", ("d.com",)), ("pool", ("p0",)), ("device", ("d0", "d1")))
        if dice.happens(60)
    }
    taint = {"key": "a", "value": "1", "effect": dice.among("NoSchedule", "NoExecute", "None")}
    document = {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}}
    return msgspec.convert(document, DeviceTaintRule)


@pytest.fixture(params=["as-it-is", "always-pruned"])
def _pruning(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "always-pruned":
        monkeypatch.setattr(search, "RETRIES_PER_DEVICE", -1)


@pytest.fixture(autouse=True)
def _new_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading sees the pools of v1.37."""

    def read_pools(case: Case) -> list[ReadPool]:
        is_basic = case.is_older and not case.gates.get(FRACTIONS, False)
        monkeypatch.setattr(earlier, "ReadPool", ReadPool if is_basic else NewPool)
        return pools_of(case)

    def is_relevant(one: ResourceSlice) -> bool:
        plain = msgspec.structs.replace(one.spec, shared_counters=())
        return relevant(msgspec.structs.replace(one, spec=plain))

    pools_of, relevant = earlier.read_pools, earlier.is_relevant
    monkeypatch.setattr(earlier, "read_pools", read_pools)
    monkeypatch.setattr(earlier, "is_relevant", is_relevant)
    monkeypatch.setattr(
        earlier,
        "BAD_DEVICE",
        earlier.BAD_DEVICE.replace("NodeAllocatableResourceMapping", "NodeAllocatableResource"),
    )


@pytest.mark.usefixtures("_pruning")
def test_devices_are_those_of_the_reading() -> None:
    ends: dict[str, int] = {}
    for seed in range(CASES):
        case, rules = random_case(seed)
        if case.is_older:
            continue  # The older variant is that of v1.36.
        try:
            expected = read(case, rules)
        except TooLong:
            continue
        assert allocate(case, rules) == expected, f"seed {seed}: {case} {rules}"
        kind = "allocated" if isinstance(expected, list) else "error"
        kind = str(expected) if expected in (None, "invalid") else kind
        ends[kind] = ends.get(kind, 0) + 1
    assert ends["allocated"] > CASES // 6
    assert min(ends["None"], ends["error"]) > 0
