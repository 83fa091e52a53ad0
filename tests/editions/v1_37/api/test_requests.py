"""The footprint of pods that are being resized (spec 12 §6)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from tests.api.test_requests import any_pod

from kubestow.api.decode import decode_json
from kubestow.api.pod import Pod
from kubestow.api.pod_shape import PodShape
from kubestow.api.requests import accounted_request
from kubestow.editions.v1_37.api.pod_info import PodInfoV137
from kubestow.editions.v1_37.api.requests import accounted_footprint, is_scaled_down, is_scaled_up
from kubestow.testing import make_pod


def resized(*containers: tuple[str, str, str], **status: Any) -> Pod:
    """A pod with containers (spec, allocated, actual); empty amounts are left out."""
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {
            "containers": [
                {"name": f"c{index}", "resources": {"requests": {"cpu": spec}}}
                for index, (spec, _, _) in enumerate(containers)
            ]
        },
        "status": {
            "containerStatuses": [
                {
                    "name": f"c{index}",
                    **({"allocatedResources": {"cpu": allocated}} if allocated else {}),
                    **({"resources": {"requests": {"cpu": actual}}} if actual else {}),
                }
                for index, (_, allocated, actual) in enumerate(containers)
            ],
            **status,
        },
    }
    return decode_json(Pod, msgspec.json.encode(document))


INFEASIBLE = {
    "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
}


@pytest.mark.parametrize(
    ("pod", "before", "now"),
    [
        pytest.param(resized(("500m", "1", "1"), ("1500m", "1", "1")), 2500, 2000, id="V6-of-sums"),
        pytest.param(resized(("1", "2", "3")), 3000, 3000, id="one-container"),
        pytest.param(resized(("1", "", "")), 1000, 1000, id="nothing-in-the-status"),
        pytest.param(resized(("1", "2", "")), 1000, 2000, id="allocated-alone"),
        pytest.param(resized(("4", "1", "2"), **INFEASIBLE), 2000, 2000, id="infeasible"),
        pytest.param(resized(("4", "", ""), **INFEASIBLE), 4000, 0, id="infeasible-and-no-amounts"),
        pytest.param(
            resized(("4", "1", "2"), ("4", "", ""), **INFEASIBLE),
            6000,
            2000,
            id="infeasible-and-amounts-of-one",
        ),
        pytest.param(
            resized(
                ("1", "2", "2"),
                ("1", "2", "2"),
                allocatedResources={"cpu": "3"},
                resources={"requests": {"cpu": "2500m"}},
            ),
            4000,
            3000,
            id="amounts-of-the-pod",
        ),
    ],
)
def test_the_maximum_is_that_of_the_sums(pod: Pod, before: int, now: int) -> None:
    assert accounted_request(pod).requested.milli_cpu == before
    assert accounted_footprint(pod).requested.milli_cpu == now


def test_of_two_statuses_with_one_name_that_of_the_container_counts() -> None:
    entry = {"name": "c0", "allocatedResources": {"cpu": "5"}}
    pod = resized(("1", "2", ""), initContainerStatuses=[entry])
    assert accounted_footprint(pod).requested.milli_cpu == 2000


@given(any_pod)
def test_the_accounted_request_of_a_plain_shape_is_the_footprint(pod: Pod) -> None:
    shape = PodShape.of(pod)
    assert not shape.is_plain or shape.accounted == accounted_footprint(pod)


def test_an_infeasible_resize_is_noticed_in_an_update() -> None:
    info = PodInfoV137(resized(("4", "", "")))
    assert info.shape.is_plain
    assert info.accounted.requested.milli_cpu == 4000
    info.update(resized(("4", "", ""), **INFEASIBLE))
    assert not info.shape.is_plain
    assert info.accounted.requested.milli_cpu == 0
    assert not PodInfoV137(resized(("4", "", ""))).derive_as(info)


def test_a_pod_without_amounts_in_its_status_counts_as_before() -> None:
    pod = make_pod("p", cpu="250m", memory="1Gi")
    assert accounted_footprint(pod) == accounted_request(pod)


def test_scaling_compares_every_resource() -> None:
    small, large = make_pod("p", cpu="1"), make_pod("p", cpu="2")
    other = make_pod("p", cpu="1", memory="1Gi")
    assert is_scaled_up(small, large)
    assert not is_scaled_down(small, large)
    assert is_scaled_down(large, small)
    assert is_scaled_up(small, other)
    assert is_scaled_down(other, small)
