"""Pods with equal specs have one shape, and shapes are freed with their last pod."""

from typing import Any
from weakref import ref

import msgspec.inspect as types
import pytest

from kubestow.api.pod import Container, ImageVolume, PodSpec, TopologySpreadConstraint, Volume
from kubestow.api.pod_info import PodInfo
from kubestow.api.pod_shape import PodShape
from kubestow.api.quantity import Quantity
from kubestow.testing import make_pod

SPREAD = [TopologySpreadConstraint(max_skew=1, topology_key="zone")]


def shape_of(name: str = "p", **asked: Any) -> PodShape:
    return PodInfo(make_pod(name, **asked)).shape


@pytest.mark.parametrize(
    "difference",
    [
        pytest.param({"uid": "other"}, id="identity"),
        pytest.param({"priority": 7}, id="priority"),
        pytest.param({"annotations": {"a": "b"}}, id="annotations"),
        pytest.param({"namespace": "other"}, id="namespace"),
        pytest.param({"labels": {"a": "b"}}, id="labels"),
        pytest.param({"spread": SPREAD}, id="spread-constraints"),
    ],
)
def test_what_no_rule_about_a_node_reads_makes_no_difference(difference: dict[str, Any]) -> None:
    one = shape_of(cpu="1")
    assert shape_of("q", cpu="1", **difference) is one


@pytest.mark.parametrize(
    "difference",
    [
        pytest.param({"memory": "1Gi"}, id="requests"),
        pytest.param({"node_selector": {"a": "b"}}, id="selector"),
        pytest.param({"pvcs": ["claim"]}, id="that-there-is-storage"),
        pytest.param({"volumes": [Volume(image=ImageVolume(reference="a"))]}, id="image-volume"),
    ],
)
def test_what_a_rule_reads_makes_another_shape(difference: dict[str, Any]) -> None:
    one = shape_of(cpu="1")
    assert shape_of(cpu="1", **difference) is not one


def test_which_claim_it_is_makes_no_difference() -> None:
    one = shape_of(pvcs=["one"])
    assert shape_of(pvcs=["other"]) is one


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "2"}, True, id="another-amount"),
        pytest.param({"cpu": "1"}, {"cpu": "0"}, True, id="nothing"),
        pytest.param({"cpu": "1"}, {"memory": "1"}, True, id="another-resource"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "overhead": {"cpu": "1"}}, True, id="overhead"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "pod_requests": {"cpu": "1"}}, True, id="level"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "image": "a"}, False, id="another-image"),
        pytest.param({}, {"init_containers": [Container(name="i")]}, False, id="init-container"),
        pytest.param({}, {"pvcs": ["claim"]}, False, id="storage"),
    ],
)
def test_pods_that_differ_in_resources_have_one_frame(
    one: dict[str, Any], other: dict[str, Any], is_same: bool
) -> None:
    first, second = PodInfo(make_pod(**one)), PodInfo(make_pod(**other))
    assert (first.frame is second.frame) == is_same
    assert first.shape is not second.shape


def test_equal_numbers_are_equal_amounts_however_they_are_written() -> None:
    one = shape_of(cpu="1", memory="1Gi")
    assert shape_of(cpu="1000m", memory="1024Mi") is one


def test_large_amounts_differ_by_how_they_are_written() -> None:
    # Spec 01 §1.2: what converts them to 64 bits depends on it.
    one = shape_of(memory="1000000000000000")
    assert shape_of(memory="1P") is not one
    assert shape_of(memory="1000000000000000") is one
    first, second = (PodInfo(make_pod(memory=text)) for text in ("1P", "1000000000000000"))
    assert first.frame is second.frame


@pytest.mark.parametrize("difference", [{"namespace": "b"}, {"labels": {"a": "b"}}])
def test_full_shapes_differ_in_what_identifies_a_controller(difference: dict[str, Any]) -> None:
    one, other = PodInfo(make_pod("a")), PodInfo(make_pod("b", **difference))
    assert one.full_shape == PodInfo(make_pod("c")).full_shape
    assert one.full_shape != other.full_shape


SIDECAR = Container(name="s", restart_policy="Always")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "1000m", "image": "a"}, True, id="another-image"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "node_selector": {"a": "b"}}, True, id="selector"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "host_ports": [80]}, True, id="ports"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, False, id="another-amount"),
        pytest.param({"cpu": "1"}, {"memory": "1"}, False, id="another-resource"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "memory": "0"}, False, id="an-explicit-zero"),
        pytest.param({"cpu": "1"}, {"cpu": "1", "overhead": {"cpu": "1"}}, False, id="overhead"),
        pytest.param(
            {"cpu": "1"}, {"cpu": "1", "init_containers": [SIDECAR]}, False, id="init-containers"
        ),
        pytest.param(
            {"cpu": "1"}, {"cpu": "1", "pod_requests": {"cpu": "1"}}, False, id="pod-level"
        ),
    ],
)
def test_requests_are_compared_alone(
    one: dict[str, Any], other: dict[str, Any], is_same: bool
) -> None:
    first, second = PodInfo(make_pod(**one)), PodInfo(make_pod(**other))
    assert (first.shape.requests == second.shape.requests) is is_same


def test_quantities_are_all_that_needs_a_hook_to_be_written() -> None:
    spec = types.type_info(PodSpec)
    assert isinstance(spec, types.StructType)
    # Of volumes, only the images are written.
    read = [field.type for field in spec.fields if field.name != "volumes"]
    assert custom_types([*read, types.type_info(ImageVolume)], set()) == {Quantity}


def custom_types(found: list[types.Type], seen: set[type]) -> set[type]:
    customs: set[type] = set()
    for each in found:
        inner: list[types.Type] = []
        match each:
            case types.CustomType():
                customs.add(each.cls)
            case types.StructType() if each.cls not in seen:
                seen.add(each.cls)
                inner = [field.type for field in each.fields]
            case types.UnionType():
                inner = list(each.types)
            case types.DictType():
                inner = [each.value_type]
            case types.VarTupleType():
                inner = [each.item_type]
            case _:
                assert not isinstance(each, types.AnyType)
        customs |= custom_types(inner, seen)
    return customs


def test_shapes_are_freed_with_their_last_pod() -> None:
    pod = make_pod(cpu="1", image="only-here")
    shape = PodShape.of(pod)
    kept = [ref(shape), ref(shape.outline.frame(pod))]
    del shape
    assert [each() for each in kept] == [None, None]
