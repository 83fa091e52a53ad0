"""Which devices the claims of a pod get on a node (spec 08 B7.2 to B7.7, B13)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from kubestow.api.device import (
    ALL,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceAllocationResult,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from kubestow.api.node import Node
from kubestow.api.quantity import Quantity, parse_quantity
from kubestow.cache.objects import ObjectStore
from kubestow.errors import PluginError
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.claims import Claims
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots
from kubestow.plugins.dynamic_resources.draft import Fitness
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.pools import NodePools, PoolGathering
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, plan_claim
from kubestow.plugins.dynamic_resources.results import AllocationMaker, with_share_ids
from kubestow.plugins.dynamic_resources.search import Search
from kubestow.plugins.dynamic_resources.walk import Choice
from kubestow.testing import make_node
from kubestow.testing.devices import (
    make_allocation,
    make_alternative,
    make_alternatives,
    make_claim,
    make_device,
    make_device_class,
    make_request,
    make_slice,
)

NODE = make_node("n1")
_ALL_FEATURES = Features()
CLASSES: dict[str, DeviceClass] = {
    "any": make_device_class("any"),
    "big": make_device_class("big", 'device.attributes["d.com"].size == "big"'),
}
MATCH_NUMA = DeviceConstraint(match_attribute="d.com/numa")
DISTINCT_NUMA = DeviceConstraint(distinct_attribute="d.com/numa")
MODEL = 'device.attributes["d.com"].model == "A"'


def never() -> None:
    """A deadline that does not come."""


def make_search(
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    *,
    allocated: Iterable[ResourceClaim] = (),
    node: Node = NODE,
    features: Features = _ALL_FEATURES,
    deadline: Callable[[], None] = never,
) -> tuple[Search, NodePools]:
    slice_store, claim_store = ObjectStore[ResourceSlice](), ObjectStore[ResourceClaim]()
    for each in slices:
        slice_store.put(each)
    for claim in allocated:
        claim_store.put(claim)
    inventory = DeviceInventory(slice_store, NodeSlots())
    pools = PoolGathering(inventory, features).of(node)
    held = Claims(claim_store, AllocatedDevices(inventory.note_change)).allocated
    fitness = Fitness(held, node, features, deadline)
    search = Search([plan_claim(claim, CLASSES.get) for claim in claims], pools, fitness, deadline)
    return search, pools


def allocate(
    slices: Iterable[ResourceSlice] | ResourceSlice,
    *claims: ResourceClaim,
    allocated: Iterable[str] = (),
) -> list[str] | None:
    """The devices chosen, as `request:device` in order; None if there is no way."""
    slices = [slices] if isinstance(slices, ResourceSlice) else slices
    taken = [
        make_claim(f"taken-{device}", allocation=make_allocation(f"pool/{device}"))
        for device in allocated
    ]
    search, _ = make_search(slices, claims, allocated=taken)
    choices = search.run()
    return None if choices is None else shown(choices)


def shown(choices: Iterable[Choice]) -> list[str]:
    return [
        f"{pick.plan.full_name}:{pick.published.device.name}"
        for choice in choices
        for pick in choice.picks
    ]


def numa(**nodes: int | None) -> ResourceSlice:
    """Devices by name, each with its NUMA node if it has one."""
    return make_slice(
        *(
            make_device(name, attributes={} if value is None else {"numa": value})
            for name, value in nodes.items()
        )
    )


# --- Worked examples --------------------------------------------------------------------------


def test_pools_are_used_in_order() -> None:
    slices = [make_slice(f"d{n}", pool=f"pool-{n}") for n in (3, 1, 2)]
    assert allocate(slices, make_claim("c", make_request(count=2))) == ["r:d1", "r:d2"]


def test_pools_with_binding_conditions_are_used_last() -> None:
    slow = make_device("d1", binding_conditions=["Ready"])
    slices = [make_slice(slow, pool="pool-1"), make_slice("d2", pool="pool-2")]
    slices.append(make_slice("d3", pool="pool-3"))
    assert allocate(slices, make_claim("c", make_request(count=2))) == ["r:d2", "r:d3"]


MODELS = make_slice(
    make_device("d1", attributes={"model": "A"}), make_device("d2", attributes={"model": "B"})
)
FAST = make_slice("d1", make_device("d2", attributes={"fast": True}))
FAST_REQUEST = make_claim("c", make_request("r", 'device.attributes["d.com"].fast'))
THREE = make_slice("d1", "d2", "d3")


@pytest.mark.parametrize(
    ("slices", "claim", "allocated", "expected"),
    [
        pytest.param(
            MODELS,
            make_claim("c", make_request("r0"), make_request("r1", MODEL)),
            "",
            ["r0:d2", "r1:d1"],
            id="B13-2-backtracking",
        ),
        pytest.param(
            numa(d1=0, d2=1, d3=0),
            make_claim("c", make_request(count=2), constraints=[MATCH_NUMA]),
            "",
            ["r:d1", "r:d3"],
            id="B13-3-match",
        ),
        pytest.param(
            numa(d1=None, d2=1, d3=1),
            make_claim("c", make_request(count=2), constraints=[MATCH_NUMA]),
            "",
            ["r:d2", "r:d3"],
            id="B13-3-match-without-attribute",
        ),
        pytest.param(
            numa(d1=1, d2=2, d3=1),
            make_claim("c", make_request(count=3), constraints=[DISTINCT_NUMA]),
            "",
            ["r:d1", "r:d2", "r:d3"],
            id="B13-4-distinct-remembers-one-value",
        ),
        pytest.param(
            numa(d1=1, d2=1, d3=2),
            make_claim("c", make_request(count=2), constraints=[DISTINCT_NUMA]),
            "",
            ["r:d1", "r:d3"],
            id="B13-4-distinct-neighbours",
        ),
        pytest.param(
            make_slice(make_device("small1"), make_device("small2")),
            make_claim(
                "c",
                make_alternatives(
                    "r",
                    make_alternative("big", 'device.attributes["d.com"].?big.orValue(false)'),
                    make_alternative("small", count=2),
                ),
            ),
            "",
            ["r/small:small1", "r/small:small2"],
            id="B13-5-second-choice",
        ),
        pytest.param(
            THREE, make_claim("c", make_request(mode=ALL)), "", ["r:d1", "r:d2", "r:d3"], id="all"
        ),
        pytest.param(
            THREE,
            make_claim("c", make_request(mode=ALL)),
            "d2",
            None,
            id="B13-8-all-but-one-in-use",
        ),
        pytest.param(
            THREE,
            make_claim("c", make_request("r", "false", mode=ALL)),
            "",
            None,
            id="all-of-nothing",
        ),
        pytest.param(
            FAST, FAST_REQUEST, "d1", ["r:d2"], id="B13-11-not-asked-about-devices-in-use"
        ),
        pytest.param(THREE, make_claim("c", make_request(count=4)), "", None, id="too-few"),
        pytest.param(THREE, make_claim("c"), "", [], id="no-requests"),
        pytest.param(
            THREE,
            make_claim("c", make_request("r0", count=2), make_request("r1", count=2)),
            "",
            None,
            id="devices-are-used-once",
        ),
        pytest.param(
            THREE,
            make_claim("c", make_request("r0"), make_request("admin", admin=True)),
            "d1",
            ["r0:d2", "admin:d1"],
            id="administrators-share-with-others",
        ),
        pytest.param(
            make_slice("d1"),
            make_claim("c", make_request("admin", admin=True), make_request("r0")),
            "",
            None,
            id="but-not-with-later-requests",
        ),
        pytest.param(
            make_slice("d1"),
            make_claim("c", make_request("r0"), make_request("admin", admin=True)),
            "",
            None,
            id="nor-within-their-claim",
        ),
    ],
)
def test_example(
    slices: ResourceSlice, claim: ResourceClaim, allocated: str, expected: list[str] | None
) -> None:
    assert allocate(slices, claim, allocated=allocated.split()) == expected


def test_administrators_of_another_claim_may_have_the_same_device() -> None:
    claims = [
        make_claim("one", make_request("r")),
        make_claim("two", make_request("a", admin=True)),
    ]
    assert allocate(make_slice("d1"), *claims) == ["r:d1", "a:d1"]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        (["r0", "r1/b"], ["r0:d2", "r1/b:d3"]),
        (["r0", "r1"], ["r0:d2", "r1/b:d3"]),
        (["r0", "r1/a"], ["r0:d1", "r1/b:d2"]),
        (["r0"], ["r0:d1", "r1/b:d2"]),
    ],
)
def test_constraints_name_the_requests_they_are_for(
    requests: Sequence[str], expected: list[str]
) -> None:
    choice = make_alternatives("r1", make_alternative("a", "false"), make_alternative("b"))
    constraint = DeviceConstraint(requests=tuple(requests), match_attribute="d.com/numa")
    claim = make_claim("c", make_request("r0"), choice, constraints=[constraint])
    assert allocate(numa(d1=0, d2=1, d3=1), claim) == expected


# --- Errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slices", "claim", "text"),
    [
        pytest.param(
            [FAST],
            FAST_REQUEST,
            "claim default/c: selector #0: CEL runtime error: no such key: fast",
            id="B13-11-selector-fails",
        ),
        pytest.param(
            [FAST],
            make_claim("c", make_request("r", 'device.attributes["d.com"].fast', mode=ALL)),
            "claim default/c: selector #0: CEL runtime error: no such key: fast",
            id="B13-11-all-asks-everything",
        ),
        pytest.param(
            [MODELS],
            make_claim("c", make_request(device_class="big")),
            "class big: selector #0: CEL runtime error: no such key: size",
            id="selector-of-the-class",
        ),
        pytest.param(
            [THREE, make_slice("x", driver="other.com", slice_count=2)],
            make_claim("c", make_request(mode=ALL)),
            "claim default/c, request r: asks for all devices, but resource pool other.com/pool "
            "is currently being updated",
            id="B13-8-another-pool-is-incomplete",
        ),
        pytest.param(
            [THREE, make_slice("x", "x", driver="other.com")],
            make_claim("c", make_request(mode=ALL)),
            "claim default/c, request r: asks for all devices, but resource pool other.com/pool "
            "is currently invalid",
            id="another-pool-is-invalid",
        ),
        pytest.param(
            [numa(d1=0, d2=1)],
            make_claim("c", make_request(mode=ALL), constraints=[MATCH_NUMA]),
            "claim default/c, request r: cannot add device d.com/pool/d2 because a claim "
            "constraint would not be satisfied",
            id="all-against-a-constraint",
        ),
        pytest.param(
            [THREE],
            make_claim("c", make_request("a", count=20), make_request("b", count=13)),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
            id="too-many-devices",
        ),
        pytest.param(
            [THREE],
            make_claim("c", make_request(), constraints=[DeviceConstraint()]),
            "claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
            id="empty-constraint",
        ),
        pytest.param(
            [THREE],
            make_claim("c", make_request(mode="Most")),
            "claim default/c, request r: unsupported count mode Most",
            id="unknown-mode",
        ),
        pytest.param(
            [THREE],
            make_claim("c", make_alternatives("r", make_alternative("s", device_class="gone"))),
            "claim default/c, request s: could not retrieve device class gone: "
            'deviceclass.resource.k8s.io "gone" not found',
            id="class-is-gone",
        ),
    ],
)
def test_error(slices: list[ResourceSlice], claim: ResourceClaim, text: str) -> None:
    with pytest.raises(PluginError) as caught:
        allocate(slices, claim)
    assert str(caught.value) == text


def test_a_selector_error_comes_before_a_complaint_about_a_later_pool() -> None:
    slices = [make_slice("d1", pool="a"), make_slice("d2", pool="b", slice_count=2)]
    claim = make_claim("c", make_request("r", 'device.attributes["d.com"].x', mode=ALL))
    with pytest.raises(PluginError, match="no such key: x"):
        allocate(slices, claim)


def test_a_claim_that_grows_too_large_takes_its_next_alternative() -> None:
    many = make_slice(*(f"d{n:02}" for n in range(40)))
    choice = make_alternatives("r1", make_alternative("a", count=20), make_alternative("b"))
    found = allocate(many, make_claim("c", make_request("r0", count=20), choice))
    assert found is not None
    assert found[-1] == "r1/b:d20"


def test_the_deadline_ends_the_search() -> None:
    class Late(Exception):
        pass

    def late() -> None:
        raise Late

    search, _ = make_search([THREE], [make_claim("c", make_request())], deadline=late)
    with pytest.raises(Late):
        search.run()


def test_every_expression_is_preceded_by_a_look_at_the_clock() -> None:
    """One expression may take half a second, and there may be thousands of devices."""
    looks: list[int] = []

    def count() -> None:
        looks.append(1)

    devices = [f"d{n:03}" for n in range(500)]
    claim = make_claim("c", make_request("r", "true", "1 > 0", 'device.driver == "x"'))
    search, _ = make_search([make_slice(*devices)], [claim], deadline=count)
    assert search.run() is None
    assert len(looks) >= 3 * len(devices)


def test_errors_of_preparation_come_before_the_deadline() -> None:
    def late() -> None:
        raise AssertionError("the clock was looked at")

    claim = make_claim("c", make_request(count=33))
    search, _ = make_search([THREE], [claim], deadline=late)
    with pytest.raises(PluginError, match="exceeds the claim limit"):
        search.run()


# --- Capacity, counters, taints ----------------------------------------------------------------

POLICY = CapacityRequestPolicy(
    default=parse_quantity("1Gi"),
    valid_range=CapacityRequestPolicyRange(min=parse_quantity("1Gi"), step=parse_quantity("1Gi")),
)
SHARED = make_slice(
    make_device("d1", capacity={"memory": "16Gi"}, policies={"memory": POLICY}, shareable=True)
)


def shared_picks(*requests: DeviceRequest, consumed: str = "") -> list[int] | None:
    """What each request takes of the memory of one shared device, in bytes."""
    taken: list[ResourceClaim] = []
    if consumed:
        first, _ = make_search(
            [SHARED], [make_claim("x", make_request(capacity={"memory": consumed}))]
        )
        choices = first.run()
        assert choices is not None
        taken = [_claim_of(choices[0])]
    search, _ = make_search([SHARED], [make_claim("c", *requests)], allocated=taken)
    found = search.run()
    if found is None:
        return None
    return [(pick.taken or {})["memory"].value() for pick in found[0].picks]


def _claim_of(choice: Choice) -> ResourceClaim:
    plan = ClaimPlan(make_claim("earlier"), (), ())
    allocation = AllocationMaker().make(plan, choice, "n1")
    return make_claim("earlier", allocation=with_share_ids(allocation, ["share"]))


GI = 2**30


@pytest.mark.parametrize(
    ("wanted", "consumed", "expected"),
    [
        pytest.param("1.5Gi", "14Gi", [2 * GI], id="B13-7-rounded-up-and-accepted"),
        pytest.param("2.5Gi", "14Gi", None, id="B13-7-rounded-up-and-rejected"),
        pytest.param("100Mi", "", [GI], id="raised-to-the-minimum"),
        pytest.param(None, "15Gi", [GI], id="default"),
        pytest.param(None, "16Gi", None, id="used-up"),
    ],
)
def test_capacity_of_a_shared_device(
    wanted: str | None, consumed: str, expected: list[int] | None
) -> None:
    capacity = None if wanted is None else {"memory": wanted}
    assert shared_picks(make_request(capacity=capacity), consumed=consumed) == expected


def test_requests_of_one_pod_share_a_device() -> None:
    first, second = (make_request(name, capacity={"memory": "8Gi"}) for name in ("r0", "r1"))
    assert shared_picks(first, second) == [8 * GI, 8 * GI]
    assert shared_picks(first, second, make_request("r2")) is None


def test_one_request_gets_a_shared_device_once() -> None:
    assert shared_picks(make_request(count=2)) is None


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        ({"memory": "40Gi"}, ["r:d1"]),
        ({"memory": "41Gi"}, None),
        ({"cores": "1"}, None),
        (None, ["r:d1"]),
    ],
)
def test_capacity_of_an_exclusive_device(
    capacity: dict[str, str] | None, expected: list[str] | None
) -> None:
    slices = make_slice(make_device("d1", capacity={"memory": "40Gi"}))
    assert allocate(slices, make_claim("c", make_request(capacity=capacity))) == expected


PARTITIONS = [
    make_slice(name="counters", slice_count=2, counters={"set": {"memory": "40Gi"}}),
    make_slice(
        *(
            make_device(name, consumes={"set": {"memory": memory}})
            for name, memory in (("full", "40Gi"), ("half1", "20Gi"), ("half2", "20Gi"))
        ),
        make_device("free"),
        slice_count=2,
    ),
]


@pytest.mark.parametrize(
    ("allocated", "count", "expected"),
    [
        pytest.param(["half1"], 1, ["r:half2"], id="B13-6-what-is-left"),
        pytest.param([], 2, ["r:full", "r:free"], id="full"),
        pytest.param(["full", "half1"], 1, ["r:free"], id="overdrawn-blocks-all-that-draw"),
        pytest.param([], 3, ["r:half1", "r:half2", "r:free"], id="backtracking"),
    ],
)
def test_counters_are_shared(allocated: list[str], count: int, expected: list[str] | None) -> None:
    claim = make_claim("c", make_request(count=count))
    assert allocate(PARTITIONS, claim, allocated=allocated) == expected


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ((), "r:d3"),
        ([DeviceToleration(key="a", operator="Exists")], "r:d1"),
        ([DeviceToleration(key="a", value="1")], "r:d1"),
        ([DeviceToleration(key="a", operator="Equal", value="2")], "r:d3"),
        ([DeviceToleration(key="a", operator="Exists", effect="NoExecute")], "r:d2"),
        ([DeviceToleration(operator="Exists")], "r:d1"),
        ([DeviceToleration(key="a", operator="Like", value="1")], "r:d3"),
    ],
)
def test_taints_have_to_be_tolerated(
    tolerations: Sequence[DeviceToleration], expected: str
) -> None:
    slices = make_slice(
        make_device("d1", taints=["a=1:NoSchedule"]),
        make_device("d2", taints=["a=1:NoExecute"]),
        make_device("d3", taints=["a=1:None"]),
    )
    assert allocate(slices, make_claim("c", make_request(tolerations=tolerations))) == [expected]


# --- Work --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "asked"),
    [
        pytest.param(1, {"d0", "d1"}, id="one-up-to-the-first-that-fits"),
        pytest.param(2, {"d0", "d1", "d2"}, id="two-up-to-the-second"),
    ],
)
def test_selectors_are_asked_of_devices(count: int, asked: set[str]) -> None:
    models = {"d0": "B", "d1": "A", "d2": "A", "d3": "A"}
    devices = [make_device(name, attributes={"model": model}) for name, model in models.items()]
    claim = make_claim("claim", make_request("r", MODEL, count=count))
    search, pools = make_search([make_slice(*devices)], [claim])
    assert search.run() is not None
    assert {device.device.name for device, _ in pools.devices if device._content} == asked


FORTY = make_slice(*(f"d{number:02}" for number in range(40)))
TAKEN_0 = 'device.attributes["d.com"].?first.orValue(false)'


def choice_of(name: str, *counts: int) -> DeviceRequest:
    return make_alternatives(
        name, *(make_alternative(f"s{n}", count=count) for n, count in enumerate(counts))
    )


@pytest.mark.parametrize(
    ("claim", "expected", "steps_max"),
    [
        pytest.param(
            make_claim("c", choice_of("a", 30, 1), choice_of("b", 4, 3)),
            ["a/s1:d00", *(f"b/s0:d{number:02}" for number in range(1, 5))],
            80,
            id="B15-alternatives-that-are-all-too-large-end-the-request-before",
        ),
        pytest.param(
            make_claim("c", make_request("a", count=20), make_request("b", count=12)),
            [f"{'ab'[number >= 20]}:d{number:02}" for number in range(32)],
            300,
            id="as-many-as-a-claim-may-have",
        ),
        pytest.param(
            make_claim("c", make_request("a", count=25), choice_of("b", 7, 1)),
            [f"{'a' if number < 25 else 'b/s0'}:d{number:02}" for number in range(32)],
            300,
            id="first-choice-fits-exactly",
        ),
    ],
)
def test_steps_of_many_equal_devices(
    claim: ResourceClaim, expected: list[str], steps_max: int
) -> None:
    search, _ = make_search([FORTY], [claim])
    choices = search.run()
    assert choices is not None
    assert shown(choices) == expected
    assert search.steps <= steps_max


def test_too_many_devices_end_the_request_before_in_a_later_claim_as_well() -> None:
    claims = [
        make_claim("first", make_request("f")),
        make_claim("second", choice_of("a", 30, 1), choice_of("b", 4, 3)),
    ]
    search, _ = make_search([FORTY], claims)
    choices = search.run()
    assert choices is not None
    assert shown(choices) == [
        "f:d00",
        "a/s1:d01",
        *(f"b/s0:d{number:02}" for number in range(2, 6)),
    ]
    assert search.steps <= 80


def hostile_claims() -> Iterator[object]:
    equal = make_slice(*(f"d{number:02}" for number in range(30)))
    yield pytest.param(
        [equal],
        [make_claim("c", make_request("a", count=16), make_request("b", count=15))],
        False,
        2_000,
        id="one-device-too-few",
    )
    yield pytest.param(
        [make_slice(make_device("d00", attributes={"first": True}), *(f"d{n}" for n in range(33)))],
        [
            make_claim(
                "c", *(make_request(f"r{n:02}") for n in range(31)), make_request("last", TAKEN_0)
            )
        ],
        True,
        20_000,
        id="the-last-request-needs-the-first-device",
    )
    shared = [make_device(f"d{n:02}", capacity={"memory": "4"}, shareable=True) for n in range(30)]
    yield pytest.param(
        [make_slice(*shared)],
        [
            make_claim("c", make_request("a", count=30, capacity={"memory": "3"})),
            make_claim("e", make_request("b", count=1, capacity={"memory": "2"})),
        ],
        False,
        5_000,
        id="shared-devices-that-are-too-full",
    )
    pairs = [make_device(f"d{n:02}", attributes={"numa": n // 2}) for n in range(40)]
    yield pytest.param(
        [make_slice(*pairs)],
        [make_claim("c", make_request(count=3), constraints=[MATCH_NUMA])],
        False,
        2_000,
        id="no-three-devices-match",
    )
    drawing = [make_device(f"d{n:02}", consumes={"set": {"memory": "1"}}) for n in range(30)]
    yield pytest.param(
        [
            make_slice(name="counters", slice_count=2, counters={"set": {"memory": "10"}}),
            make_slice(*drawing, slice_count=2),
        ],
        [make_claim("c", make_request(count=11))],
        False,
        2_000,
        id="counters-for-too-few",
    )
    yield pytest.param(
        [make_slice(*(f"d{n:04}" for n in range(128)), pool=f"p{p:03}") for p in range(40)],
        [make_claim(f"c{c}", *(choice_of(f"r{r:02}", 1, 2) for r in range(32))) for c in range(12)],
        True,
        80_000,
        id="more-devices-than-nested-calls",
    )


@pytest.mark.parametrize(("slices", "claims", "is_found", "steps_max"), list(hostile_claims()))
def test_steps_of_hostile_claims(
    slices: list[ResourceSlice], claims: list[ResourceClaim], is_found: bool, steps_max: int
) -> None:
    """Most of these take more than 2²⁰ steps if every combination is tried."""
    search, _ = make_search(slices, claims)
    assert (search.run() is not None) == is_found
    assert search.steps <= steps_max


LAST = make_slice(*(make_device(f"d{n}", attributes={"last": n == 5}) for n in range(6)))
IS_LAST = 'device.attributes["d.com"].last'


@pytest.mark.parametrize(
    ("request_made", "steps"),
    [
        pytest.param(make_request("r"), 1 + 1, id="first-device"),
        pytest.param(make_request("r", count=3), 3 + 3, id="three-devices"),
        pytest.param(make_request("r", IS_LAST), 1 + 6, id="last-device"),
        pytest.param(make_request("r", mode=ALL), 6 + 6, id="all"),
        pytest.param(choice_of("r", 1, 2), 1 + 1 + 1, id="alternative"),
    ],
)
def test_choices_opened_and_devices_tried_are_steps(
    request_made: DeviceRequest, steps: int
) -> None:
    search, _ = make_search([LAST], [make_claim("c", request_made)])
    assert search.run() is not None
    assert search.steps == steps


def test_few_of_many_devices_take_few_steps() -> None:
    """Nothing is computed for devices behind the ones that are found."""
    slices = [make_slice(*(f"d{n:04}" for n in range(128)), pool=f"p{p:03}") for p in range(80)]
    search, pools = make_search(slices, [make_claim("c", make_request("r", "true", count=2))])
    assert search.run() is not None
    assert search.steps <= 8
    assert sum(device._content is not None for device, _ in pools.devices) == 2


# --- Shared devices and required ones ----------------------------------------------------------

SHARED_WITH_COUNTERS = [
    make_slice(name="counters", slice_count=2, counters={"set": {"c": "1"}}),
    make_slice(make_device("d", consumes={"set": {"c": "1"}}, shareable=True), slice_count=2),
]


def test_a_shared_device_is_charged_to_counters_once() -> None:
    """Spec 08 B7.5: also where it has no capacity of which the shares could take something."""
    claim = make_claim("c", make_request("r0"), make_request("r1"))
    assert allocate(SHARED_WITH_COUNTERS, claim) == ["r0:d", "r1:d"]


@pytest.mark.parametrize(
    ("consumed", "expected"),
    [
        pytest.param({"memory": parse_quantity("0")}, ["r:d"], id="lists-capacities"),
        pytest.param({}, None, id="lists-none"),
    ],
)
def test_allocated_shares_that_list_capacities_were_charged(
    consumed: dict[str, Quantity], expected: list[str] | None
) -> None:
    result = DeviceRequestAllocationResult(
        request="r",
        driver="d.com",
        pool="pool",
        device="d",
        share_id="share",
        consumed_capacity=consumed,
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
    earlier = make_claim("earlier", allocation=allocation)
    search, _ = make_search(
        SHARED_WITH_COUNTERS, [make_claim("c", make_request())], allocated=[earlier]
    )
    choices = search.run()
    assert (None if choices is None else shown(choices)) == expected


def test_of_a_required_device_the_constraint_is_checked_before_its_capacity() -> None:
    full = make_device("d1", capacity={"memory": "2"}, shareable=True, attributes={"numa": 1})
    slices = make_slice(full, make_device("d0", attributes={"numa": 0}))
    claim = make_claim(
        "c",
        make_request("r0", 'device.attributes["d.com"].numa == 0'),
        make_request("r1", "device.allowMultipleAllocations", mode=ALL),
        constraints=[MATCH_NUMA],
    )
    earlier = make_claim("e", make_request("r", "device.allowMultipleAllocations"))
    text = "claim default/c, request r1: cannot add device d.com/pool/d1 because a claim constraint"
    search, _ = make_search([slices], [earlier, claim])
    with pytest.raises(PluginError, match=text):
        search.run()


# --- Gates that are off --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "request_", "expected"),
    [
        pytest.param(
            Features(consumable_capacity=False),
            make_request(capacity={"memory": "1"}),
            "claim default/c, request r: has capacity requests, "
            "but the DRAConsumableCapacity feature is disabled",
            id="capacity",
        ),
        pytest.param(
            Features(consumable_capacity=False),
            make_alternatives(
                "r", make_alternative("a"), make_alternative("b", capacity={"memory": "1"})
            ),
            "claim default/c, subrequest b: has capacity requests, "
            "but the DRAConsumableCapacity feature is disabled",
            id="capacity-of-an-alternative",
        ),
        pytest.param(
            Features(consumable_capacity=False, binding_conditions=False),
            make_request(capacity={"memory": "1"}),
            ["r:plain"],
            id="the-older-search-ignores-capacity",
        ),
        pytest.param(
            Features(binding_conditions=False),
            make_request(count=3),
            ["r:plain", "r:shared", "r:tainted-1"],
            id="devices-to-prepare-are-left-out",
        ),
        pytest.param(
            Features(partitionable=False),
            make_request(count=4),
            None,
            id="devices-that-draw-are-left-out",
        ),
        pytest.param(
            Features(taints=False),
            make_request(count=4),
            ["r:plain", "r:shared", "r:tainted-1", "r:slow"],
            id="taints-do-not-count",
        ),
    ],
)
def test_gates_that_are_off(
    features: Features, request_: DeviceRequest, expected: list[str] | str | None
) -> None:
    slices = [
        make_slice(name="counters", slice_count=2, pool="a", counters={"set": {"c": "9"}}),
        make_slice(
            make_device("plain"),
            make_device("shared", shareable=True),
            make_device("tainted-1", taints=() if features.taints else ("a:NoSchedule",)),
            *([] if features.partitionable else [make_device("x", consumes={"set": {"c": "1"}})]),
            slice_count=2,
            pool="a",
        ),
        make_slice(
            make_device("slow", binding_conditions=["Ready"]),
            pool="b",
            per_device=None if features.partitionable else False,
        ),
    ]
    search, _ = make_search(slices, [make_claim("c", request_)], features=features)
    if isinstance(expected, str):
        with pytest.raises(PluginError) as caught:
            search.run()
        assert str(caught.value) == expected
        return
    choices = search.run()
    assert (None if choices is None else shown(choices)) == expected
