"""What is written into claims (spec 08 B7.8, B9)."""

from collections.abc import Sequence

import pytest

from kubestow.api.decode import to_document
from kubestow.api.deep_json import OpaqueJson
from kubestow.api.device import (
    AllocationResult,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceSlice,
)
from kubestow.api.pod import NodeSelector
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.errors import PluginError
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources.allocator import DeviceAllocator
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.requests import plan_claim
from kubestow.plugins.dynamic_resources.results import (
    ClaimAllocation,
    preference_score,
    with_share_ids,
)
from kubestow.testing import ManualClock, make_node, make_term
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

PLAIN = make_device_class("any")
NODE = make_node("n1", labels={"rack": "7", "zone": "z"})
HERE = {"nodeSelectorTerms": [
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
]}  # fmt: skip


def selector(*terms: Sequence[str]) -> NodeSelector:
    return NodeSelector(node_selector_terms=tuple(make_term(*term) for term in terms))


def allocate(
    claim: ResourceClaim, *slices: ResourceSlice, classes: Sequence[DeviceClass] = (PLAIN,)
) -> ClaimAllocation:
    objects = ClusterObjects()
    objects.put(*classes, *slices)
    known = KnownDevices.of(objects, DEFAULT_GATES)
    allocator = DeviceAllocator(known, Features(), 10, ManualClock())
    allocations = allocator.allocate(NODE, [plan_claim(claim, known.classes.get)])
    assert allocations is not None
    return allocations[0]


def node_selector(*slices: ResourceSlice, count: int = 1) -> object:
    result = allocate(make_claim("c", make_request(count=count)), *slices).result
    return to_document(result).get("nodeSelector")


# --- Node selectors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        pytest.param(make_slice("a", node="n1"), HERE, id="local-slice"),
        pytest.param(make_slice(make_device("a", node="n1"), per_device=True), HERE, id="local"),
        pytest.param(make_slice(make_device("a", binds_to_node=True)), HERE, id="binds-to-node"),
        pytest.param(make_slice("a"), None, id="everywhere"),
        pytest.param(
            make_slice("a", node_selector=selector(["rack In 7"])),
            {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["7"]}]}
            ]},
            id="selected",
        ),
    ],
)  # fmt: skip
def test_the_allocation_has_the_nodes_where_it_can_be_used(
    published: ResourceSlice, expected: object
) -> None:
    assert node_selector(published) == expected


def test_requirements_of_several_selectors_are_joined_once() -> None:
    merged = node_selector(
        make_slice("a", pool="a", node_selector=selector(["rack In 7", "zone Exists"])),
        make_slice("b", pool="b", node_selector=selector(["zone Exists", "rack In 6,7"])),
        make_slice("c", pool="c", node_selector=selector(["rack In 7,6"])),
        count=3,
    )
    assert merged == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "rack", "operator": "In", "values": ["7"]},
                    {"key": "zone", "operator": "Exists"},
                    {"key": "rack", "operator": "In", "values": ["6", "7"]},
                ]
            }
        ]
    }


TWO_TERMS = make_slice(
    make_device("b", node_selector=selector(["rack In 7"], ["zone Exists"])),
    pool="b",
    per_device=True,
)


def test_a_selector_with_two_terms_cannot_be_written_down() -> None:
    with pytest.raises(PluginError) as caught:
        node_selector(TWO_TERMS)
    assert str(caught.value) == (
        "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"
    )


def test_but_it_is_not_reached_behind_a_local_device() -> None:
    assert node_selector(make_slice("a", pool="a", node="n1"), TWO_TERMS, count=2) == HERE


# --- Devices ----------------------------------------------------------------------------------


def test_results_carry_what_the_driver_and_the_kubelet_need() -> None:
    toleration = DeviceToleration(key="a", operator="Exists")
    device = make_device(
        "d1",
        taints=["a:NoSchedule"],
        binding_conditions=["Ready"],
        binding_failure_conditions=["Broken"],
    )
    claim = make_claim("c", make_request("r", admin=True, tolerations=[toleration]))
    assert to_document(allocate(claim, make_slice(device)).result) == {
        "devices": {
            "results": [
                {
                    "request": "r",
                    "driver": "d.com",
                    "pool": "pool",
                    "device": "d1",
                    "adminAccess": True,
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "bindingConditions": ["Ready"],
                    "bindingFailureConditions": ["Broken"],
                }
            ]
        }
    }


def test_shares_carry_an_id_and_all_amounts() -> None:
    device = make_device("d1", capacity={"memory": "4Gi", "cores": "8"}, shareable=True)
    claim = make_claim("c", make_request(capacity={"memory": "1Gi"}))
    allocation = allocate(claim, make_slice(device))
    assert allocation.shared == (0,)
    result = with_share_ids(allocation, ["id"]).devices.results[0]
    assert result.share_id == "id"
    assert {name: str(amount) for name, amount in result.consumed_capacity.items()} == {
        "memory": "1Gi",
        "cores": "8",
    }


def test_a_share_of_a_device_without_capacity_has_no_amounts() -> None:
    allocation = allocate(
        make_claim("c", make_request()), make_slice(make_device("d1", shareable=True))
    )
    assert allocation.shared == (0,)
    assert allocation.result.devices.results[0].consumed_capacity == {}


def test_a_claim_without_requests_is_allocated_with_nothing_in_it() -> None:
    assert allocate(make_claim("c")).result == AllocationResult()


# --- Configuration ----------------------------------------------------------------------------


def opaque(**parameters: object) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver="d.com", parameters=OpaqueJson.of(parameters))


def test_configuration_comes_from_classes_then_from_the_claim() -> None:
    classes = [
        make_device_class("one", config={"of": 1}),
        make_device_class("two", config={"of": 2}),
    ]
    spec = DeviceClaim(
        requests=(
            make_request("a", device_class="one"),
            make_request("b", device_class="two"),
            make_alternatives(
                "c",
                make_alternative("x", "false", device_class="two"),
                make_alternative("y", device_class="one"),
            ),
        ),
        config=(
            DeviceClaimConfiguration(opaque=opaque(all=True)),
            DeviceClaimConfiguration(requests=("a", "c/y"), opaque=opaque(some=True)),
            DeviceClaimConfiguration(requests=("c/x",), opaque=opaque(never=True)),
        ),
    )
    allocation = allocate(make_claim("c", spec=spec), make_slice("1", "2", "3"), classes=classes)
    configs = allocation.result.devices.config
    assert [(c.source, c.requests, c.opaque and c.opaque.parameters) for c in configs] == [
        ("FromClass", ("a", "c/y"), OpaqueJson.of({"of": 1})),
        ("FromClass", ("b",), OpaqueJson.of({"of": 2})),
        ("FromClaim", (), OpaqueJson.of({"all": True})),
        ("FromClaim", ("a", "c/y"), OpaqueJson.of({"some": True})),
        ("FromClaim", ("a", "c/y"), OpaqueJson.of({"some": True})),
    ]


# --- Scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(["r/big"], 8, id="B13-5-first-choice"),
        pytest.param(["r/small", "r/small"], 7, id="B13-5-second-choice"),
        pytest.param(["r/small", "q/b"], 14, id="sum-over-requests"),
        pytest.param(["plain"], 0, id="no-alternatives"),
    ],
)
def test_earlier_alternatives_score_higher(given: list[str], expected: int) -> None:
    claim = make_claim(
        "c",
        make_alternatives("r", make_alternative("big"), make_alternative("small", count=2)),
        make_alternatives("q", make_alternative("a"), make_alternative("b")),
        make_request("plain"),
    )
    results = [make_allocation("p/d", request=request).devices.results[0] for request in given]
    allocation = AllocationResult(
        devices=make_allocation().devices.__class__(results=tuple(results))
    )
    assert preference_score(claim, allocation) == expected
