"""The view of many nodes without some of their pods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.plugins.default_preemption.evictable import PodSlots, RankedPods
from kubestow.plugins.default_preemption.reduced_nodes import ReducedNodes
from kubestow.testing import make_node, make_pod, make_snapshot

PRIORITY = 5


def snapshot_of(counts: list[int]) -> Snapshot:
    """Nodes with these numbers of pods, every second of which may be evicted."""
    return make_snapshot(
        [
            make_node(f"n{row}", allocatable={"x/gpu": 9}, labels={"zone": f"z{row % 2}"})
            for row in range(len(counts))
        ],
        [
            make_pod(
                f"p{row}-{number}",
                node=f"n{row}",
                priority=9 if number % 2 else number % 3,
                cpu=f"{10 + number}m",
                memory=str(100 + row),
                requests={"x/gpu": number % 2, "ephemeral-storage": 1},
            )
            for row, count in enumerate(counts)
            for number in range(count)
        ],
    )


def slots_of(snapshot: Snapshot) -> PodSlots:
    return snapshot.derived(RankedPods).below(np.arange(len(snapshot)), PRIORITY)


def reduced(snapshot: Snapshot) -> ReducedNodes:
    return ReducedNodes(snapshot, np.arange(len(snapshot)), PRIORITY, slots_of(snapshot))


def simulated(snapshot: Snapshot) -> list[SimulatedNode]:
    nodes = [SimulatedNode(snapshot, row) for row in range(len(snapshot))]
    for node in nodes:
        for pod in [pod for pod in node.info.pods if pod.priority < PRIORITY]:
            node.remove_pod(pod)
    return nodes


def assert_same_numbers(view: ReducedNodes, nodes: list[SimulatedNode]) -> None:
    assert view.pod_count.tolist() == [int(node.pod_count[0]) for node in nodes]
    for column in range(4):
        expected = [int(node.requested(column)[0]) for node in nodes]
        assert view.requested(column).tolist() == expected


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_numbers_are_those_of_simulated_nodes(counts: list[int], data: st.DataObject) -> None:
    snapshot = snapshot_of(counts)
    view, nodes = reduced(snapshot), simulated(snapshot)
    slots = slots_of(snapshot)
    if data.draw(st.booleans(), label="numbers are asked for before pods come back"):
        assert_same_numbers(view, nodes)
    for slot in range(len(slots)):
        view.put_back(slot)
        exists: list[bool] = slots.exists[slot].tolist()
        mask = np.array(
            [exist and data.draw(st.booleans(), label="taken away again") for exist in exists]
        )
        view.take_away(slot, mask)
        for pods, node, is_back in zip(slots.pods, nodes, exists & ~mask, strict=True):
            if is_back:
                node.add_pod(pods[slot])
    assert_same_numbers(view, nodes)
    positions = np.flatnonzero([data.draw(st.booleans()) for _ in counts])
    assert_same_numbers(view.subset(positions), [nodes[position] for position in positions])


def test_nominated_pods_are_counted_in() -> None:
    snapshot = snapshot_of([3, 3, 3])
    view, nodes = reduced(snapshot), simulated(snapshot)
    extra = PodInfo(make_pod(cpu="1", requests={"x/gpu": 2, "ephemeral-storage": 3}))
    (first,) = {int(slots_of(snapshot).exists[:, row].argmax()) for row in range(3)}
    view.put_back(first)
    with_nominated = view.with_nominated(np.array([2, 0]), [[extra], [extra, extra]])
    for row, count in ((0, 2), (2, 1)):
        nodes[row].add_pod(slots_of(snapshot).pods[row][first])
        for _ in range(count):
            nodes[row].add_pod(extra)
    assert_same_numbers(with_nominated, [nodes[2], nodes[0]])
    assert_same_numbers(with_nominated.subset(np.array([1])), [nodes[0]])


# --- what the view answers, and what it does not ---

SAME_AS_PLAIN = {
    "allowed_pods",
    "basic_allocatable",
    "features",
    "names",
    "taint_lists",
    "taint_set",
    "unschedulable",
}
PLAIN_CALLS = {
    "allocatable": (0,),
    "image_column": ("app",),
    "image_sums": ({"app": 1}, lambda size, nodes: size),
    "images": (),
    "label_ids": ("zone",),
    "label_values": ("zone",),
    "node_objects": (),
    "resource_column": ("x/gpu",),
}
NUMBERS = {"basic_requested", "pod_count", "requested"}
REFUSED = {"has_affinity", "has_required_anti_affinity", "non_zero"}
REFUSED_CALLS = {"infos": (), "non_zero_requested": (0,)}
# Lead to the pods as they are: a filter that declares Reads.NUMBERS does not read pods this way.
AS_THEY_ARE = {"rows", "snapshot"}


def test_everything_a_view_can_be_asked_for_has_its_place() -> None:
    """What is added to `Nodes` has to be listed here, with what a reduced view does."""
    known = {
        *SAME_AS_PLAIN,
        *PLAIN_CALLS,
        *NUMBERS,
        *REFUSED,
        *REFUSED_CALLS,
        *AS_THEY_ARE,
        "few_with",
        "subset",
        "tracked",
    }
    assert {name for name in dir(Nodes) if not name.startswith("_")} == known


def test_what_comes_from_node_objects_is_the_same() -> None:
    snapshot = snapshot_of([2, 2])
    view, plain = reduced(snapshot), nodes_of(snapshot)
    for name in SAME_AS_PLAIN:
        assert np.array_equal(getattr(view, name), getattr(plain, name)), name
    for name, arguments in PLAIN_CALLS.items():
        found, expected = getattr(view, name)(*arguments), getattr(plain, name)(*arguments)
        assert np.array_equal(found, expected), name
    assert view.few_with(view.resource_column("x/gpu") or 0) is None
    numbers = view.tracked("rows", Depends.NODE, lambda nodes: np.arange(len(nodes)))
    assert numbers.tolist() == [0, 1]
    assert len(view) == 2


@pytest.mark.parametrize("name", sorted(REFUSED | REFUSED_CALLS.keys()))
def test_more_than_numbers_is_refused(name: str) -> None:
    part = reduced(snapshot_of([2, 2])).subset(np.array([1]))
    with pytest.raises(PluginError, match=r"declares Reads\.NUMBERS"):
        getattr(part, name)(*REFUSED_CALLS.get(name, ()))


def test_arrays_over_pods_are_refused() -> None:
    view = reduced(snapshot_of([2]))
    with pytest.raises(PluginError, match=r"declares Reads\.NUMBERS"):
        view.tracked("pods", Depends.PODS, lambda nodes: nodes.pod_count)
