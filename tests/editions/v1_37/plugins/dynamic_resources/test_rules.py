"""The rules of v1.37 for devices, one by one (spec 12 §10.2, §10.3)."""

from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.device import DeviceConstraint, ResourceClaim, ResourceSlice
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions.v1_37 import EDITION
from kubestow.editions.v1_37.plugins.dynamic_resources import DynamicResourcesV137
from kubestow.errors import PluginError
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources.allocator import DeviceAllocator
from kubestow.plugins.dynamic_resources.requests import plan_claim
from kubestow.testing import ManualClock, make_node
from kubestow.testing.devices import make_allocation, make_claim, make_device_class, make_request

RULES = DynamicResourcesV137.allocation_rules
FRACTIONS = "DRAFractionalCapacityRange"
GROUPS = "DRADeviceCompatibilityGroups"
LISTS = "DRAListTypeAttributes"
DERIVED = "DRADerivedAttributes"
OPERATIONS = "DRAOptionalNodeOperations"


def device(name: str = "d", **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def make_slices(*devices: dict[str, Any], counters: int = 0, **spec: Any) -> list[ResourceSlice]:
    """A pool `d.com/p` for all nodes; with counters a set `s` with this much of `c`."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2 if counters else 1}
    common = {"driver": "d.com", "pool": pool, "allNodes": True, **spec}
    specs: list[dict[str, Any]] = [{**common, "devices": list(devices)}]
    if counters:
        sets = [{"name": "s", "counters": {"c": {"value": str(counters)}}}]
        specs.append({**common, "sharedCounters": sets})
    return [
        convert(ResourceSlice, {"metadata": {"name": f"s{number}"}, "spec": each})
        for number, each in enumerate(specs)
    ]


def claim_of(*requests: dict[str, Any], **spec: Any) -> ResourceClaim:
    listed = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount",
                                           "count": 1, **each}}
        for number, each in enumerate(requests)
    ]  # fmt: skip
    document = {
        "metadata": {"name": "c", "namespace": "default", "uid": "c"},
        "spec": {"devices": {"requests": listed, **spec}},
    }
    return convert(ResourceClaim, document)


def allocate(
    slices: list[ResourceSlice],
    claim: ResourceClaim,
    *gates: str,
    taken: tuple[ResourceClaim, ...] = (),
    declared: tuple[str, ...] = (),
) -> Any:
    objects = ClusterObjects()
    objects.put(make_device_class("any"), *slices, *taken)
    features = FeatureGates(dict.fromkeys(gates, True), EDITION)
    known = KnownDevices.of(objects, features)
    allocator = DeviceAllocator(known, RULES.features_of(features), 0, ManualClock(), RULES)
    node = make_node("n1", declared_features=declared)
    found = allocator.allocate(node, [plan_claim(claim, known.classes.get)])
    return None if found is None else found[0].result


def names(allocation: Any) -> list[str] | None:
    return None if allocation is None else [each.device for each in allocation.devices.results]


def string(value: str) -> dict[str, Any]:
    return {"attributes": {"model": {"string": value}}}


def test_v10_distinct_is_among_all_devices_of_a_request() -> None:
    slices = make_slices(*(device(f"d{i}", **string(m)) for i, m in enumerate(("m1", "m1", "m2"))))
    constraint = {"constraints": [{"distinctAttribute": "d.com/model"}]}
    assert names(allocate(slices, claim_of({"count": 2}, **constraint))) == ["d0", "d2"]
    assert allocate(slices, claim_of({"count": 3}, **constraint)) is None


def test_distinct_attributes_prune_a_search_without_a_solution() -> None:
    # Two values for three slots: of 24 devices all subsets would be tried.
    slices = make_slices(*(device(f"d{i}", **string(f"m{i % 2}")) for i in range(24)))
    constraint = {"constraints": [{"distinctAttribute": "d.com/model"}]}
    assert allocate(slices, claim_of({"count": 3}, **constraint)) is None
    found = allocate(slices, claim_of({"count": 2}, {"count": 1}, **constraint))
    assert found is None


RANGE = {"default": "100m", "validRange": {"min": "100m", "step": "100m"}}
SHARED: dict[str, Any] = {
    "allowMultipleAllocations": True,
    "capacity": {"u": {"value": "3", "requestPolicy": RANGE}},
}


def taking(amount: str, **more: Any) -> dict[str, Any]:
    return {"capacity": {"requests": {"u": amount}}, **more}


@pytest.mark.parametrize(
    ("gates", "amount", "expected"),
    [
        pytest.param((), "250m", "1", id="whole-units"),
        pytest.param((FRACTIONS,), "250m", "300m", id="thousandths"),
        pytest.param((FRACTIONS,), "50m", "100m", id="below-the-least"),
        pytest.param((FRACTIONS,), "1950m", "2", id="a-whole-number-is-written-as-one"),
        pytest.param((FRACTIONS,), "4", None, id="too-much"),
    ],
)
def test_amounts_of_a_range(gates: tuple[str, ...], amount: str, expected: str | None) -> None:
    found = allocate(make_slices(device(**SHARED)), claim_of(taking(amount)), *gates)
    got = None if found is None else str(found.devices.results[0].consumed_capacity["u"])
    assert got == expected


PREFIX = "claim default/c, request r0: checking capacity for device"
NOT_REPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


@pytest.mark.parametrize(
    ("capacity", "request_", "gates", "expected"),
    [
        pytest.param(
            SHARED, taking("100E"), (),
            f'{PREFIX} d.com/p/d: capacity "u": {NOT_REPRESENTABLE}: request 100E exceeds MaxInt64',
            id="above-int64",
        ),
        pytest.param(
            SHARED, taking("100E", allocationMode="All"), (),
            f'{PREFIX} d: capacity "u": {NOT_REPRESENTABLE}: request 100E exceeds MaxInt64',
            id="all-has-the-bare-name",
        ),
        pytest.param(
            SHARED, taking("1u"), (FRACTIONS,), "", id="below-the-least-is-no-error"
        ),
        pytest.param(
            SHARED, taking("100001u"), (FRACTIONS,),
            f'{PREFIX} d.com/p/d: capacity "u": {NOT_REPRESENTABLE}: request 100001u is not a '
            "representable milli value",
            id="finer-than-thousandths",
        ),
        pytest.param(
            {"capacity": {"u": {"value": "-1"}}}, {}, (),
            f'{PREFIX} d.com/p/d: capacity "u": capacity value is negative',
            id="negative",
        ),
    ],
)  # fmt: skip
def test_amounts_that_end_the_attempt(
    capacity: dict[str, Any], request_: dict[str, Any], gates: tuple[str, ...], expected: str
) -> None:
    slices, claim = make_slices(device(**capacity)), claim_of(request_)
    if not expected:
        assert names(allocate(slices, claim, *gates)) == ["d"]
        return
    with pytest.raises(PluginError) as raised:
        allocate(slices, claim, *gates)
    assert str(raised.value) == expected


def test_a_device_without_the_capacity_is_skipped() -> None:
    slices = make_slices(device("d0"), device("d1", **SHARED))
    assert names(allocate(slices, claim_of(taking("1")))) == ["d1"]


def taken_share(name: str, amount: str | None) -> ResourceClaim:
    result = {"request": "r", "driver": "d.com", "pool": "p", "device": name, "shareID": "x"}
    if amount is not None:
        result["consumedCapacity"] = {"u": amount}  # type: ignore[assignment]
    document = {
        "metadata": {"name": f"taken-{name}", "namespace": "default", "uid": name},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    return convert(ResourceClaim, document)


def test_all_fails_if_one_device_is_full_at_the_moment() -> None:
    slices = make_slices(device("d0", **SHARED), device("d1", **SHARED))
    claim = claim_of(taking("1", allocationMode="All"))
    assert names(allocate(slices, claim)) == ["d0", "d1"]
    assert allocate(slices, claim, taken=(taken_share("d1", "3"),)) is None


def test_a_share_without_capacities_is_charged_once() -> None:
    shared = device("d", allowMultipleAllocations=True, consumesCounters=draws())
    slices = make_slices(shared, counters=1)
    assert names(allocate(slices, claim_of({}), taken=(taken_share("d", None),))) == ["d"]


def draws(*groups: str) -> list[dict[str, Any]]:
    drawn: dict[str, Any] = {"counterSet": "s", "counters": {"c": {"value": "1"}}}
    return [{**drawn, "compatibilityGroups": list(groups)} if groups else drawn]


def test_a_selector_that_fails_names_the_device_and_helps() -> None:
    claim = claim_of({"selectors": [{"cel": {"expression": 'device.attributes["d.com"].x == 1'}}]})
    with pytest.raises(PluginError) as raised:
        allocate(make_slices(device()), claim)
    assert str(raised.value) == (
        "claim default/c: selector #0 on device d.com/p/d: CEL runtime error: no such key: x. "
        "consider using CEL optional chaining (.? followed by orValue()) or guarding the check "
        "with has() for optional fields"
    )


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(["r0"], [("r0",)], id="once"),
        pytest.param(["r0", "r1"], [()], id="all-requests-are-written-as-none"),
        pytest.param([], [()], id="none-named"),
        pytest.param(["gone"], [], id="no-request"),
    ],
)
def test_a_configuration_is_listed_once(named: list[str], expected: list[tuple[str, ...]]) -> None:
    config = [{"requests": named, "opaque": {"driver": "d.com", "parameters": {}}}]
    claim = claim_of({}, {}, config=config)
    found = allocate(make_slices(device("d0"), device("d1")), claim)
    assert [each.requests for each in found.devices.config] == expected


# --- alpha gates ---


def test_groups_make_a_pool_incomplete_while_their_gate_is_off() -> None:
    slices = make_slices(device(consumesCounters=draws("a")), counters=1)
    assert allocate(slices, claim_of({})) is None
    assert names(allocate(slices, claim_of({}), GROUPS)) == ["d"]


@pytest.mark.parametrize(
    ("groups", "count", "expected"),
    [
        pytest.param([("a",), ("b",), ("a", "b")], 2, ["d0", "d2"], id="one-in-common"),
        pytest.param([("a", "b"), ("a",), ("b",)], 3, None, id="not-one-for-all"),
        pytest.param([(), ("a",), ()], 2, ["d0", "d2"], id="none-with-none"),
    ],
)
def test_devices_at_one_counter_set_have_a_group_in_common(
    groups: list[tuple[str, ...]], count: int, expected: list[str] | None
) -> None:
    devices = [device(f"d{i}", consumesCounters=draws(*each)) for i, each in enumerate(groups)]
    slices = make_slices(*devices, counters=9)
    assert names(allocate(slices, claim_of({"count": count}), GROUPS)) == expected


def test_groups_of_allocated_devices_count() -> None:
    devices = [device(f"d{i}", consumesCounters=draws(each)) for i, each in enumerate("aba")]
    taken = make_claim("x", make_request(), allocation=make_allocation("p/d0"))
    found = allocate(make_slices(*devices, counters=9), claim_of({}), GROUPS, taken=(taken,))
    assert names(found) == ["d2"]


LISTED = [
    device("d0", attributes={"n": {"ints": [0, 1]}}),
    device("d1", attributes={"n": {"ints": [2]}}),
    device("d2", attributes={"n": {"int": 1}}),
]


def test_lists_match_if_they_have_a_value_in_common() -> None:
    match = {"constraints": [{"matchAttribute": "d.com/n"}]}
    assert names(allocate(make_slices(*LISTED), claim_of({"count": 2}, **match), LISTS)) == [
        "d0",
        "d2",
    ]
    assert allocate(make_slices(*LISTED), claim_of({"count": 2}, **match)) is None


def test_backtracking_restores_what_lists_have_in_common() -> None:
    devices = [
        device("d0", attributes={"n": {"ints": [0, 1]}}),
        device("d1", attributes={"n": {"ints": [0]}}),
        device("d2", attributes={"n": {"ints": [1]}}),
        device("d3", attributes={"n": {"ints": [1]}}),
    ]
    match = {"constraints": [{"matchAttribute": "d.com/n"}]}
    found = allocate(make_slices(*devices), claim_of({"count": 3}, **match), LISTS)
    assert names(found) == ["d0", "d2", "d3"]


def test_lists_are_distinct_if_they_have_no_value_in_common() -> None:
    distinct = {"constraints": [{"distinctAttribute": "d.com/n"}]}
    found = allocate(make_slices(*LISTED), claim_of({"count": 2}, **distinct), LISTS)
    assert names(found) == ["d0", "d1"]


def deriving(expression: str) -> dict[str, Any]:
    return {"count": 2, "derivedAttributes": [{"name": "d.com/n", "expression": expression}]}


MATCH = {"constraints": [{"matchAttribute": "d.com/n"}]}
NUMBERS = [device(f"d{i}", attributes={"n": {"int": i}}) for i in range(4)]


def test_a_derived_attribute_hides_the_published_one() -> None:
    claim = claim_of(deriving('device.attributes["d.com"].n % 3'), **MATCH)
    assert names(allocate(make_slices(*NUMBERS), claim, DERIVED)) == ["d0", "d3"]


@pytest.mark.parametrize(
    ("gates", "expression", "expected"),
    [
        pytest.param(
            (), "1", "claim default/c, request r0: cannot handle request with derived attributes, "
            "the feature is disabled", id="gate-off",
        ),
        pytest.param(
            (DERIVED,), 'device.attributes["d.com"].x',
            "evaluate derived attribute d.com/n on device d.com/p/d0 failed: no such key: x",
            id="evaluate",
        ),
        pytest.param(
            (DERIVED,), "1.5",
            "compile derived attribute d.com/n failed: must evaluate to a primitive scalar "
            "(string, integer, boolean, semver) or a list of these scalars, not double",
            id="compile",
        ),
    ],
)  # fmt: skip
def test_a_derived_attribute_that_fails(
    gates: tuple[str, ...], expression: str, expected: str
) -> None:
    with pytest.raises(PluginError) as raised:
        allocate(make_slices(*NUMBERS), claim_of(deriving(expression), **MATCH), *gates)
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("gates", "declared", "expected"),
    [
        pytest.param((OPERATIONS,), (OPERATIONS,), ["*"], id="gate-and-node"),
        pytest.param((OPERATIONS,), (), None, id="the-node-prepares-devices"),
        pytest.param((LISTS,), (OPERATIONS,), None, id="gate-off"),
        pytest.param((), (), [], id="without-alpha-gates-it-is-not-looked-at"),
    ],
)
def test_devices_that_need_no_preparation(
    gates: tuple[str, ...], declared: tuple[str, ...], expected: list[str] | None
) -> None:
    slices = make_slices(device(), skipNodeOperations=["*"])
    found = allocate(slices, claim_of({}), *gates, declared=declared)
    got = None if found is None else list(found.devices.results[0].skip_node_operations)
    assert got == expected


def test_an_unknown_constraint_is_an_error() -> None:
    claim = make_claim("c", make_request(), constraints=[DeviceConstraint()])
    with pytest.raises(PluginError, match="empty constraint"):
        allocate(make_slices(device()), claim)
