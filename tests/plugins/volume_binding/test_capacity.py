"""Free storage by class and nodes."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import LabelSelector, parse_label_selector
from kubestow.api.node import Node
from kubestow.api.quantity import INT64_MIN
from kubestow.api.storage import CSIStorageCapacity
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.index.nodes import nodes_of
from kubestow.plugins.volume_binding.capacity import (
    NodeCapacities,
    StorageCapacities,
    limit_of,
)
from kubestow.testing import make_cache, make_node, make_snapshot
from kubestow.testing.storage import FAST, make_capacity
from kubestow.testing.topology import make_selector

GIB = 1 << 30


def test_the_first_sufficient_object_by_name_is_used() -> None:
    objects = ClusterObjects()
    capacities = StorageCapacities(objects.csi_storage_capacities)
    for name, size in (("d", "9Gi"), ("b", "5Gi"), ("a", "1Gi"), ("c", "5Gi")):
        objects.put(make_capacity(name, size=size, topology=LabelSelector()))
    on_node = NodeCapacities(capacities.of_class(FAST), make_node("n"))
    for size_gi, expected in ((3, "b"), (1, "a"), (10, None), (5, "b"), (6, "d")):
        found = on_node.first_sufficient(size_gi * GIB)
        assert (found and found.metadata.name) == expected


# --- as a slow reading of all objects ---

HOSTS = ("a", "b", "c")
labels = st.fixed_dictionaries({}, optional={"host": st.sampled_from(HOSTS), "ssd": st.just("1")})
expressions = st.one_of(
    st.builds("host {} {}".format, st.sampled_from(["In", "NotIn"]), st.sampled_from(HOSTS)),
    st.builds("{} {}".format, st.sampled_from(["host", "ssd"]), st.just("Exists")),
    st.builds("{} {}".format, st.sampled_from(["host", "none"]), st.just("DoesNotExist")),
)
topologies = st.lists(expressions, max_size=2).map(lambda texts: make_selector(*texts))
reports = st.builds(
    make_capacity,
    st.sampled_from([f"c{number}" for number in range(6)]),
    size=st.sampled_from([None, "1Gi", "2Gi", "3Gi"]),
    topology=topologies,
)
# An object, or the name of one that is deleted.
changes = st.lists(st.one_of(reports, st.sampled_from([f"c{number}" for number in range(6)])))


def apply(objects: ClusterObjects, changed: Sequence[CSIStorageCapacity | str]) -> None:
    for each in changed:
        if isinstance(each, str):
            objects.csi_storage_capacities.remove("drivers", each)
        else:
            objects.put(each)


def applying(objects: ClusterObjects, node: Node) -> list[tuple[int, CSIStorageCapacity]]:
    """Each object that applies to the node, with its limit, by name."""
    found: list[tuple[int, CSIStorageCapacity]] = []
    for capacity in sorted(
        objects.csi_storage_capacities.list(), key=lambda each: each.metadata.name
    ):
        selector = parse_label_selector(capacity.node_topology)
        if selector.matches(node.metadata.labels):
            limit = limit_of(capacity)
            found.append((INT64_MIN if limit is None else limit.value(), capacity))
    return found


def check(objects: ClusterObjects, capacities: StorageCapacities, snapshot: Snapshot) -> None:
    of_class = capacities.of_class(FAST)
    largest = of_class.largest(nodes_of(snapshot)).tolist()
    for node, found in zip(snapshot.nodes, largest, strict=True):
        expected = applying(objects, node)
        assert found == max((limit for limit, _ in expected), default=INT64_MIN)
        on_node = NodeCapacities(of_class, node)
        for size in (2 * GIB, GIB, 4 * GIB, 3 * GIB):
            first = next((each for limit, each in expected if limit >= size), None)
            assert on_node.first_sufficient(size) is first


@given(
    st.lists(labels, min_size=1, max_size=20), changes, changes, labels, st.sampled_from([0, 1, 16])
)
def test_what_applies_to_nodes_equals_a_reading_of_all_objects(
    node_labels: list[dict[str, str]],
    first: list[CSIStorageCapacity | str],
    more: list[CSIStorageCapacity | str],
    changed: dict[str, str],
    few: int,
) -> None:
    """Also where one or two objects are treated as very many."""
    nodes = [make_node(f"n{row}", labels=each) for row, each in enumerate(node_labels)]
    cache, snapshot = make_cache(nodes), Snapshot()
    snapshot.refresh(cache)
    objects = ClusterObjects()
    capacities = StorageCapacities(objects.csi_storage_capacities)
    with mock.patch("kubestow.index.selector_patterns._CANDIDATES_FEW", few):
        apply(objects, first)
        check(objects, capacities, snapshot)
        cache.update_node(nodes[0], make_node("n0", labels=changed))
        snapshot.refresh(cache)
        check(objects, capacities, snapshot)
        apply(objects, more)
        check(objects, capacities, snapshot)


# --- many objects ---


def steps_of(work: Callable[[], object]) -> int:
    """How many instructions of Python the work takes: each element of a loop counts."""
    count = 0

    def note(frame: FrameType, event: str, value: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


# Of each object, the nodes it applies to.
@pytest.mark.parametrize(
    "topology",
    [
        pytest.param("host NotIn n{}", id="all-but-one"),
        pytest.param("host In n{}", id="one"),
        pytest.param("zone=z;key-{} DoesNotExist", id="all"),
        pytest.param("zone NotIn z,z{}", id="none"),
    ],
)
def test_the_work_grows_with_objects_and_nodes_not_with_their_product(topology: str) -> None:
    def work(count: int) -> int:
        snapshot = make_snapshot(
            [make_node(f"n{row}", labels={"host": f"n{row}", "zone": "z"}) for row in range(count)]
        )
        selectors = [make_selector(*topology.format(row).split(";")) for row in range(count)]
        made = [
            make_capacity(f"c{row}", size=f"{row + 1}Gi", topology=selector)
            for row, selector in enumerate(selectors)
        ]
        objects = ClusterObjects()
        capacities = StorageCapacities(objects.csi_storage_capacities)

        def read() -> None:
            objects.put(*made)
            of_class = capacities.of_class(FAST)
            of_class.largest(nodes_of(snapshot))
            NodeCapacities(of_class, snapshot.nodes[0]).first_sufficient(count * GIB)
            objects.put(make_capacity("c0", size="7Gi", topology=make_selector("host Exists")))
            of_class.largest(nodes_of(snapshot))

        return steps_of(read)

    work(100)  # What is imported and cached at the first use.
    assert work(200) < 2.3 * work(100)
