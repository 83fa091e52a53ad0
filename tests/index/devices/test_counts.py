"""How many devices of a class the nodes have (spec 05 §8.6)."""

import pytest

from kubestow.api.device import ResourceSlice
from kubestow.api.pod import NodeSelector
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.index.devices import DeviceCounts, KnownDevices
from kubestow.index.nodes import nodes_of
from kubestow.plugins._shared.scoring_resources import scalar_capacity
from kubestow.testing import make_node, make_snapshot, make_term
from kubestow.testing.devices import (
    make_allocation,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
)

GPU = "example.com/gpu"
ON_SSD = NodeSelector(node_selector_terms=(make_term("disk In ssd"),))


def make_counts(
    *slices: ResourceSlice, selector: str = "true"
) -> tuple[ClusterObjects, DeviceCounts]:
    objects = ClusterObjects()
    objects.put(make_device_class("gpu", selector, extended_resource=GPU), *slices)
    return objects, DeviceCounts(KnownDevices.of(objects, DEFAULT_GATES))


def counts_of(counts: DeviceCounts) -> tuple[list[int], list[int]] | None:
    nodes = nodes_of(make_snapshot([make_node("n1", labels={"disk": "ssd"}), make_node("n2")]))
    found = counts.of_resource(GPU, nodes)
    return None if found is None else (found[0].tolist(), found[1].tolist())


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        pytest.param(make_slice("a", "b", node="n1"), [2, 0], id="local"),
        pytest.param(make_slice("a", all_nodes=True), [1, 1], id="everywhere"),
        pytest.param(make_slice("a", node_selector=ON_SSD), [1, 0], id="selected"),
        pytest.param(
            make_slice(
                make_device("a", node="n2"),
                make_device("b", all_nodes=True),
                make_device("c", node_selector=ON_SSD),
                make_device("d"),
                per_device=True,
            ),
            [2, 2],
            id="each-device-for-itself",
        ),
        pytest.param(
            make_slice("a", node="n1", generation=3, slice_count=9), [1, 0], id="incomplete-counts"
        ),
    ],
)
def test_devices_are_counted(published: ResourceSlice, expected: list[int]) -> None:
    _, counts = make_counts(published)
    assert counts_of(counts) == (expected, [0, 0])


def test_only_devices_of_the_class_count() -> None:
    devices = [
        make_device("a", attributes={"big": True}),
        make_device("b", attributes={"big": False}),
    ]
    _, counts = make_counts(
        make_slice(*devices, node="n1"), selector='device.attributes["d.com"].big'
    )
    assert counts_of(counts) == ([1, 0], [0, 0])


def test_an_error_counts_as_nothing() -> None:
    _, counts = make_counts(
        make_slice("a", node="n1"), selector='device.attributes["d.com"].missing'
    )
    assert counts_of(counts) == ([0, 0], [0, 0])


def test_numbers_follow_slices_and_claims() -> None:
    objects, counts = make_counts()
    assert counts_of(counts) == ([0, 0], [0, 0])
    objects.put(make_slice("a", "b", name="s", pool="p", node="n1"))
    assert counts_of(counts) == ([2, 0], [0, 0])
    objects.put(make_claim(allocation=make_allocation("p/a")))
    assert counts_of(counts) == ([2, 0], [1, 0])
    objects.put(make_slice("b", name="s", pool="p", node="n1", generation=2))
    assert counts_of(counts) == ([1, 0], [0, 0])


def test_counts_go_with_their_class() -> None:
    objects, counts = make_counts(make_slice("a", node="n1"))
    for number in range(3):
        assert counts_of(counts) == ([1, 0], [0, 0])
        assert len(counts._kept) == 1
        [device_class] = objects.device_classes.list()
        objects.device_classes.remove(device_class.metadata.name)
        objects.put(make_device_class(f"gpu-{number}", "true", extended_resource=GPU))


def test_resources_no_class_serves_are_not_counted() -> None:
    _, counts = make_counts(make_slice("a"))
    nodes = nodes_of(make_snapshot([make_node()]))
    assert counts.of_resource("example.com/other", nodes) is None
    assert counts.of_resource("cpu", nodes) is None


def test_devices_stand_in_where_a_node_publishes_none() -> None:
    _, counts = make_counts(make_slice("a", all_nodes=True))
    nodes = nodes_of(make_snapshot([make_node("n1", allocatable={GPU: 8}), make_node("n2")]))
    capacity = scalar_capacity(nodes, GPU, counts)
    assert capacity is not None
    assert capacity[0].tolist() == [8, 1]
