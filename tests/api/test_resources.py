"""Resource names and the vector: the worked examples of spec 01 §2."""

import pytest

from kubestow.api.meta import ResourceList
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import (
    Resources,
    amount,
    is_attachable_volume,
    is_dra_extended,
    is_extended,
    is_hugepage,
    is_native,
    is_prefixed_native,
    is_scalar,
)


def resource_list(**quantities: str) -> ResourceList:
    return {name: parse_quantity(text) for name, text in quantities.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {
                "cpu": "3920m",
                "memory": "8Gi",
                "pods": "110",
                "ephemeral-storage": "100Gi",
                "example.com/gpu": "4",
                "hugepages-2Mi": "64Mi",
                "weird": "3",
            },
            Resources(
                milli_cpu=3920,
                memory=8589934592,
                ephemeral_storage=107374182400,
                allowed_pods=110,
                scalar={"example.com/gpu": 4, "hugepages-2Mi": 67108864},
            ),
            id="V1-allocatable",
        ),
        pytest.param(
            {
                "hugepages-2Mi": "4Mi",
                "ephemeral-storage": "1500m",
                "example.com/foo": "1500m",
                "kubernetes.io/zz": "2",
                "foo": "3",
                "requests.example.com/x": "1",
                "attachable-volumes-csi": "2",
                "storage": "1Gi",
            },
            Resources(
                ephemeral_storage=2,
                scalar={
                    "hugepages-2Mi": 4194304,
                    "example.com/foo": 2,
                    "kubernetes.io/zz": 2,
                    "attachable-volumes-csi": 2,
                },
            ),
            id="V2-request",
        ),
        pytest.param({}, Resources(), id="empty"),
    ],
)
def test_a_list_becomes_a_vector(given: dict[str, str], expected: Resources) -> None:
    assert Resources.from_list(resource_list(**given)) == expected


def test_no_list_is_a_zero_vector() -> None:
    assert Resources.from_list(None) == Resources()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("example.com/x_y", True, id="V3-extended"),
        pytest.param("example.com/a/b", False, id="V3-two-slashes"),
        pytest.param("example.com/", False, id="V3-no-name"),
        pytest.param("Example.com/x", False, id="V3-upper-case"),
        pytest.param("deviceclass.resource.kubernetes.io/g", True, id="V3-device-class"),
        pytest.param("pods", False, id="V3-pods"),
        pytest.param("mykubernetes.io/x", True, id="native-mark-anywhere"),
        pytest.param("requests.example.com/x", False, id="quota-prefix"),
        pytest.param(f"example.com/{'a' * 63}", True, id="longest-name"),
        pytest.param(f"example.com/{'a' * 64}", False, id="name-too-long"),
        # `requests.` counts into the 253 characters a prefix may have.
        pytest.param(f"{'a.' * 122}/x", False, id="prefix-ends-in-dot"),
        pytest.param(f"{'a.' * 121}ab/x", True, id="longest-prefix"),
        pytest.param(f"{'a.' * 121}abc/x", False, id="prefix-too-long"),
        pytest.param("example.com/x\n", False, id="newline"),
    ],
)
def test_which_names_are_scalars(name: str, expected: bool) -> None:
    assert is_scalar(name) is expected


def test_name_classes() -> None:
    assert is_native("cpu")
    assert is_native("kubernetes.io/x")
    assert not is_native("example.com/x")
    assert is_prefixed_native("a.kubernetes.io/x")
    assert is_hugepage("hugepages-1Gi")
    assert is_attachable_volume("attachable-volumes-aws-ebs")
    assert is_extended("example.com/x")
    assert not is_extended("kubernetes.io/x")
    assert is_dra_extended("deviceclass.resource.kubernetes.io/g")
    assert is_dra_extended("example.com/x")
    assert not is_dra_extended("kubernetes.io/x")


def test_maximum_creates_an_entry_even_for_zero() -> None:  # V4
    resources = Resources()
    resources.set_max(resource_list(**{"cpu": "0", "example.com/g": "0"}))
    assert resources == Resources(scalar={"example.com/g": 0})


def test_maximum_on_a_zero_vector_clamps_and_drops_pods() -> None:
    resources = Resources()
    resources.set_max(
        resource_list(**{"cpu": "-1", "memory": "5", "pods": "3", "example.com/g": "-2"})
    )
    assert resources == Resources(memory=5, scalar={"example.com/g": 0})


def test_maximum_keeps_the_larger_side() -> None:
    resources = Resources(milli_cpu=500, memory=10, scalar={"example.com/g": 1})
    resources.set_max(
        resource_list(**{"cpu": "1", "memory": "5", "ephemeral-storage": "7", "example.com/g": "2"})
    )
    assert resources == Resources(
        milli_cpu=1000, memory=10, ephemeral_storage=7, scalar={"example.com/g": 2}
    )


def test_adding_sums_and_wraps_at_64_bits() -> None:
    resources = Resources.from_list(resource_list(**{"cpu": "1", "example.com/g": "1"}))
    resources.add_list(resource_list(**{"cpu": "500m", "example.com/g": "2", "pods": "4"}))
    assert resources == Resources(milli_cpu=1500, allowed_pods=4, scalar={"example.com/g": 3})
    full = Resources(memory=2**63 - 1)
    full.add_list(resource_list(memory="1"))
    assert full.memory == -(2**63)


def test_a_clone_shares_nothing() -> None:
    original = Resources(milli_cpu=1, scalar={"example.com/g": 1})
    copy = original.clone()
    copy.milli_cpu = 2
    copy.scalar["example.com/g"] = 2
    assert original == Resources(milli_cpu=1, scalar={"example.com/g": 1})
    assert original != copy


def test_only_cpu_is_counted_in_thousandths() -> None:
    assert amount("cpu", parse_quantity("1500u")) == 2
    assert amount("memory", parse_quantity("1500m")) == 2


def test_the_representation_names_the_counters() -> None:
    assert "milli_cpu=7" in repr(Resources(milli_cpu=7))
