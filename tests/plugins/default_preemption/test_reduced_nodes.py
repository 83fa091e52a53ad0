"""Nodes without their pods of lower priority: what they have left, and what filters see."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.reuse import Needs
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.plugins.default_preemption import reduced_nodes
from kubestow.plugins.default_preemption.reduced_nodes import (
    LOWER,
    PODS,
    SCALARS,
    FreedByPriority,
    ReducedNodes,
    amounts_of,
)
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


def reduced(snapshot: Snapshot) -> ReducedNodes:
    return ReducedNodes(snapshot, np.arange(len(snapshot)), PRIORITY)


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
    assert_same_numbers(view, nodes)
    positions = np.flatnonzero([data.draw(st.booleans()) for _ in counts])
    assert_same_numbers(view.subset(positions), [nodes[position] for position in positions])


def test_nominated_pods_are_counted_in() -> None:
    snapshot = snapshot_of([3, 3, 3])
    nodes = simulated(snapshot)
    extra = PodInfo(make_pod(cpu="1", requests={"x/gpu": 2, "ephemeral-storage": 3}))
    pods = [[extra], [extra, extra]]
    with_nominated = ReducedNodes(snapshot, np.array([2, 0]), PRIORITY, pods)
    for row, count in ((0, 2), (2, 1)):
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


# --- what they have left ---

GPU = "example.com/gpu"


def left_on(snapshot: Snapshot, row: int, priority: int, scalars: Sequence[str]) -> list[int]:
    """The same of one node, by removing pods."""
    node = SimulatedNode(snapshot, row)
    lower = [pod for pod in node.info.pods if pod.priority < priority]
    for pod in lower:
        node.remove_pod(pod)
    offered, used = node.info.allocatable, node.info.requested
    return [
        len(lower),
        offered.allowed_pods - len(node.info.pods),
        offered.milli_cpu - used.milli_cpu,
        offered.memory - used.memory,
        offered.ephemeral_storage - used.ephemeral_storage,
        *[offered.scalar.get(name, 0) - used.scalar.get(name, 0) for name in scalars],
    ]


@given(st.data())
@pytest.mark.parametrize("few", [0, 8])
def test_what_is_kept_follows_the_nodes(few: int, data: st.DataObject) -> None:
    cache, snapshot = Cache(), Snapshot()
    for number in range(3):
        cache.add_node(make_node(f"n{number}", allocatable={GPU: 4} if number else {}))
    placed: list[Pod] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduced_nodes, "FEW", few)
        for step in range(data.draw(st.integers(1, 8))):
            if placed and data.draw(st.booleans(), label="a pod goes"):
                cache.remove_pod(placed.pop())
            else:
                pod = make_pod(
                    f"p{step}",
                    node=f"n{data.draw(st.integers(0, 2))}",
                    priority=data.draw(st.integers(0, 3)),
                    cpu=data.draw(st.sampled_from([None, "1"])),
                    memory=data.draw(st.sampled_from([None, "1Gi"])),
                    requests=data.draw(st.sampled_from([{}, {GPU: 1, "ephemeral-storage": 5}])),
                )
                placed.append(pod)
                cache.add_pod(PodInfo(pod))
            if data.draw(st.booleans(), label="a node comes"):
                cache.add_node(make_node(f"more-{step}"))
            snapshot.refresh(cache)
            priority = data.draw(st.integers(0, 4), label="priority")
            scalars = data.draw(st.sampled_from([(), (GPU,)]), label="scalars")
            freed = snapshot.derived(FreedByPriority).of(priority, scalars)
            rows = data.draw(st.permutations(range(len(snapshot))))[:2]
            expected = [left_on(snapshot, row, priority, scalars) for row in rows]
            assert freed.left(np.array(rows)).T.tolist() == expected
            everywhere = [left_on(snapshot, row, priority, scalars) for row in range(len(snapshot))]
            assert freed.left(slice(0, len(snapshot))).T.tolist() == everywhere


def test_sums_wrap_as_those_of_nodes() -> None:
    most = str(2**63 - 1)
    pods = [make_pod(f"p{number}", node="n1", memory=most) for number in range(3)]
    snapshot = make_snapshot([make_node("n1")], pods)
    left = snapshot.derived(FreedByPriority).of(5, ()).left(np.array([0]))
    assert left[:, 0].tolist() == left_on(snapshot, 0, 5, ())


def test_those_of_many_priorities_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduced_nodes, "_FREED_MAX", 2)
    snapshot = make_snapshot([make_node("n1")], [make_pod("p", node="n1", priority=1)])
    kept = snapshot.derived(FreedByPriority)
    first = kept.of(1, ())
    for priority in (2, 1, 3):
        kept.of(priority, ())
    assert kept.of(1, ()) is first
    assert len(kept._kept) == 2


def test_what_a_pod_needs() -> None:
    needs = Needs([500, None, 0], [(GPU, 2)])
    least = amounts_of(needs)[:, 0].tolist()
    nothing = int(np.iinfo(np.int64).min)
    assert least == [1, 1, 500, nothing, 0, 2]
    without = amounts_of(None)[:, 0].tolist()
    assert (without[LOWER], without[PODS], len(without)) == (1, nothing, SCALARS)
