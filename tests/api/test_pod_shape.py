"""Pods with equal specs have one shape, and shapes are freed with their last pod."""

from typing import Any
from weakref import ref

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.testing import make_pod


def shape_of(name: str = "p", **asked: Any) -> object:
    return PodInfo(make_pod(name, **asked)).shape


@pytest.mark.parametrize(
    "difference",
    [
        pytest.param({"uid": "other"}, id="identity"),
        pytest.param({"priority": 7}, id="priority"),
        pytest.param({"annotations": {"a": "b"}}, id="annotations"),
    ],
)
def test_what_no_rule_about_a_node_reads_makes_no_difference(difference: dict[str, Any]) -> None:
    one = shape_of(cpu="1")
    assert shape_of("q", cpu="1", **difference) is one


@pytest.mark.parametrize(
    "difference",
    [
        pytest.param({"namespace": "other"}, id="namespace"),
        pytest.param({"labels": {"a": "b"}}, id="labels"),
        pytest.param({"memory": "1Gi"}, id="requests"),
        pytest.param({"node_selector": {"a": "b"}}, id="selector"),
        pytest.param({"pvcs": ["claim"]}, id="that-there-is-storage"),
    ],
)
def test_what_a_rule_reads_makes_another_shape(difference: dict[str, Any]) -> None:
    one = shape_of(cpu="1")
    assert shape_of(cpu="1", **difference) is not one


def test_which_claim_it_is_makes_no_difference() -> None:
    one = shape_of(pvcs=["one"])
    assert shape_of(pvcs=["other"]) is one


def test_shapes_are_freed_with_their_last_pod() -> None:
    gone = ref(shape_of(labels={"only": "one"}))
    assert gone() is None
