"""A snapshot refreshed after any events equals one kept the slow way.

The slow way is spec 03 §6.2 read word for word: whole copies of single entries in a map and a list.
It shares the traps of the fast one (§6.3): a stale order after zone changes, places kept by nodes
that went and came back, counts of images as of the last copy of a row.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from kubestow.api.node import Node
from kubestow.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.cache import Cache
from kubestow.cache.change_log import Depends
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.resource_columns import ResourceColumns
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import CacheError
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import LabelColumns
from kubestow.testing import make_node, make_pod

NAMES = st.sampled_from(["n1", "n2", "n3", "n4", "n5", "n6"])
ZONES = st.sampled_from(["", "A", "B"])
UIDS = st.sampled_from([f"u{number}" for number in range(8)])
AFFINITIES: list[Affinity | None] = [
    None,
    Affinity(pod_affinity=PodAffinity()),
    Affinity(pod_anti_affinity=PodAffinity(required=(PodAffinityTerm(topology_key="z"),))),
]


class Entry(NamedTuple):
    """One node as of its last copy."""

    node: Node
    pods: list[str]
    requested: tuple[int, int, int]
    scalars: dict[str, int]
    allocatable: tuple[int, int, int]
    offered_scalars: dict[str, int]
    non_zero: tuple[int, int]
    allowed_pods: int
    images: dict[str, tuple[int, int]]
    claims: frozenset[str]
    has_affinity: bool
    has_required_anti_affinity: bool


def entry_of(info: NodeInfo) -> Entry:
    assert info.node is not None
    requested, allocatable = info.requested, info.allocatable
    return Entry(
        node=info.node,
        pods=[pod.uid for pod in info.pods],
        requested=(requested.milli_cpu, requested.memory, requested.ephemeral_storage),
        scalars=dict(requested.scalar),
        allocatable=(allocatable.milli_cpu, allocatable.memory, allocatable.ephemeral_storage),
        offered_scalars=dict(allocatable.scalar),
        non_zero=(info.non_zero_cpu, info.non_zero_memory),
        allowed_pods=allocatable.allowed_pods,
        images={record.state().name: (record.size, len(record.nodes)) for record in info.images},
        claims=frozenset(info.pvc_ref_counts),
        has_affinity=bool(info.pods_with_affinity),
        has_required_anti_affinity=bool(info.pods_with_required_anti_affinity),
    )


class SlowSnapshot:
    def __init__(self) -> None:
        self.map: dict[str, Entry] = {}
        self.list: list[str] = []
        self.generation = 0

    def refresh(self, cache: Cache) -> str:
        """Returns the text of the error, or nothing."""
        rebuild_all = False
        for name in reversed(list(cache.nodes)):
            info = cache.nodes[name]
            if info.generation <= self.generation:
                break
            if info.node is None:
                continue
            rebuild_all |= name not in self.map
            self.map[name] = entry_of(info)
        if cache.nodes:
            self.generation = cache.nodes[list(cache.nodes)[-1]].generation
        count = cache.node_tree.node_count
        if len(self.map) > count:
            gone = [name for name in self.map if self._is_gone(cache, name)]
            for name in gone[: len(self.map) - count]:
                del self.map[name]
            rebuild_all = True
        if rebuild_all:
            self._rebuild(cache)
        if len(self.list) == count:
            return ""
        text = (
            f"snapshot state is not consistent, length of NodeInfoList={len(self.list)} not equal "
            f"to length of nodes in tree={count} , length of NodeInfoMap={len(self.map)}, "
            f"length of nodes in cache={len(cache.nodes)}, trying to recover"
        )
        self._rebuild(cache)
        return text

    def _is_gone(self, cache: Cache, name: str) -> bool:
        return name not in cache.nodes or cache.nodes[name].node is None

    def _rebuild(self, cache: Cache) -> None:
        # One difference to the words of §6.2: an entry that lost its place in the list and then its
        # Node object does not come back, though a wrong removal left its name in the tree.
        self.list = [
            name
            for name in cache.node_tree.list()
            if name in self.map and (name in self.list or not self._is_gone(cache, name))
        ]


TRACKED: dict[str, tuple[Depends, Callable[[Nodes], IntArray]]] = {
    "pods": (
        Depends.PODS,
        lambda nodes: np.array([len(info.pods) for info in nodes.infos()], np.int64),
    ),
    "cpu and pods": (
        Depends.PODS,
        lambda nodes: np.stack((nodes.requested(0), nodes.pod_count)),
    ),
    "taints": (
        Depends.NODE,
        lambda nodes: np.array([len(node.spec.taints) for node in nodes.node_objects()], np.int64),
    ),
    "images": (
        Depends.NODE,
        lambda nodes: np.array(
            [sum(image.size * image.node_count for image in images) for images in nodes.images()],
            np.int64,
        ),
    ),
}


class SnapshotMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.slow = SlowSnapshot()
        self.error = ""
        self.is_fresh = False  # nothing changed since the last refresh
        # Whether events may contradict earlier ones. If they do not, the tree lists every node
        # once.
        self.makes_mistakes = False
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}  # what the API would say

    @initialize(makes_mistakes=st.booleans())
    def begin(self, makes_mistakes: bool) -> None:
        self.makes_mistakes = makes_mistakes

    # --- events ---

    @rule(
        name=NAMES,
        zone=ZONES,
        images=st.dictionaries(st.sampled_from(["a", "b"]), st.integers(1, 3), max_size=2),
        gpus=st.none() | st.integers(0, 2),
        tainted=st.booleans(),
        is_update=st.booleans(),
    )
    def node_changes(
        self,
        name: str,
        zone: str,
        images: dict[str, int],
        gpus: int | None,
        tainted: bool,
        is_update: bool,
    ) -> None:
        node = make_node(
            name,
            zone=zone or None,
            images=images,
            allocatable=None if gpus is None else {"example.com/gpu": gpus},
            taints=["key:NoSchedule"] if tainted else [],
            unschedulable=tainted,
        )
        if not self.makes_mistakes and name in self.cache.nodes:
            # A mistake: a node added again under another zone, or an updated ghost (§4.1).
            is_update = name in self.nodes
        if is_update:
            self.cache.update_node(self.nodes.get(name, node), node)
        else:
            self.cache.add_node(node)
        self.nodes[name] = node
        self.is_fresh = False

    @rule(name=NAMES, mistaken_zone=st.none() | ZONES)
    def node_goes(self, name: str, mistaken_zone: str | None) -> None:
        node = self.nodes.pop(name, None) or make_node(name)
        if self.makes_mistakes and mistaken_zone is not None:
            node = make_node(name, zone=mistaken_zone or None)
        with suppress(CacheError):
            self.cache.remove_node(node)
        self.is_fresh = False

    @rule(
        uid=UIDS,
        node=NAMES,
        cpu=st.integers(0, 3),
        claim=st.sampled_from(["", "c1", "c2"]),
        affinity=st.sampled_from(AFFINITIES),
        gpus=st.none() | st.integers(0, 2),
    )
    def pod_comes(
        self,
        uid: str,
        node: str,
        cpu: int,
        claim: str,
        affinity: Affinity | None,
        gpus: int | None,
    ) -> None:
        self.pod_goes(uid)
        self.pods[uid] = make_pod(
            uid,
            uid=uid,
            node=node,
            cpu=cpu,
            pvcs=[claim] if claim else [],
            affinity=affinity,
            requests=None if gpus is None else {"example.com/gpu": gpus, "example.com/fpga": 1},
        )
        self.cache.add_pod(PodInfo(self.pods[uid]))
        self.is_fresh = False

    @rule(uid=UIDS)
    def pod_goes(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.cache.remove_pod(pod)
            self.is_fresh = False

    # --- looking ---

    @rule()
    def refresh(self) -> None:
        self.error = self.slow.refresh(self.cache)
        try:
            self.snapshot.refresh(self.cache)
            got = ""
        except CacheError as error:
            got = str(error)
        assert got == self.error
        self.is_fresh = True

    @precondition(lambda self: self.is_fresh and not self.error)
    @rule(key=st.sampled_from(list(TRACKED)))
    def look_at_a_derived_array(self, key: str) -> None:
        depends, compute = TRACKED[key]
        got = nodes_of(self.snapshot).tracked(key, depends, compute)
        np.testing.assert_array_equal(got, compute(nodes_of(self.snapshot)))

    @precondition(lambda self: self.is_fresh)
    @rule()
    def look_at_a_label(self) -> None:
        column = self.snapshot.derived(LabelColumns).column("topology.kubernetes.io/zone")
        got = [column.values[number] for number in column.ids.tolist()]
        nodes = [self.slow.map[name].node for name in self.slow.list]
        assert got == [node.metadata.labels.get("topology.kubernetes.io/zone") for node in nodes]

    # --- always ---

    @invariant()
    def the_list_is_the_slow_one(self) -> None:
        assert self.snapshot.names == self.slow.list
        assert self.snapshot.generation == self.slow.generation
        for row, name in enumerate(self.snapshot.names):
            found = self.snapshot.row_of(name)
            assert found is not None
            assert found == row or self.snapshot.names[found] == name

    @invariant()
    def every_row_is_as_of_its_last_copy(self) -> None:
        columns = self.snapshot.columns
        for row, name in enumerate(self.slow.list):
            entry = self.slow.map[name]
            assert self.snapshot.nodes[row] is entry.node
            if not self.makes_mistakes:
                images = self.snapshot.images[row]
                assert entry.images == {
                    image.name: (image.size, image.node_count) for image in images
                }
            assert tuple(columns.requested[i][row] for i in range(3)) == entry.requested
            assert tuple(columns.allocatable[i][row] for i in range(3)) == entry.allocatable
            assert tuple(columns.non_zero[:, row].tolist()) == entry.non_zero
            assert columns.pod_count[row] == len(entry.pods)
            assert columns.allowed_pods[row] == entry.allowed_pods
            assert columns.unschedulable[row] == entry.node.spec.unschedulable
            taints = columns.taint_sets.lists[columns.taint_set[row]]
            assert taints == entry.node.spec.taints
            assert self.scalars(columns.requested, row) == positive(entry.scalars)
            assert self.scalars(columns.allocatable, row) == positive(entry.offered_scalars)

    def scalars(self, amounts: ResourceColumns, row: int) -> dict[str, int]:
        names = self.snapshot.columns.resources.names
        laid_out = {name: int(amounts[i][row]) for i, name in enumerate(names) if i >= 3}
        return positive(laid_out)

    @invariant()
    def derived_lists_are_those_of_the_rows(self) -> None:
        entries = [self.slow.map[name] for name in self.slow.list]
        columns = self.snapshot.columns
        assert columns.has_affinity.tolist() == [entry.has_affinity for entry in entries]
        assert columns.has_required_anti_affinity.tolist() == [
            entry.has_required_anti_affinity for entry in entries
        ]
        claims: set[str] = set().union(*(entry.claims for entry in entries))
        assert self.snapshot.used_pvcs.keys() == claims

    @precondition(lambda self: self.is_fresh and not self.makes_mistakes)
    @invariant()
    def a_new_snapshot_has_the_same_rows(self) -> None:
        """But for the traps: order and frozen images."""
        assert not self.error
        fresh = Snapshot()
        fresh.refresh(self.cache)
        assert sorted(fresh.names) == sorted(self.snapshot.names)
        for name in fresh.names:
            assert row_values(fresh, name) == row_values(self.snapshot, name)
        assert fresh.used_pvcs.keys() == self.snapshot.used_pvcs.keys()

    @precondition(lambda self: self.is_fresh and not self.error)
    @invariant()
    def entries_are_the_live_ones(self) -> None:
        for row, name in enumerate(self.snapshot.names):
            live = self.cache.nodes.get(name)
            if live is not None and live.node is not None:
                assert self.snapshot.node_infos[row] is live


def positive(amounts: dict[str, int]) -> dict[str, int]:
    """A resource that is there with zero and one that is not have the same column."""
    return {name: amount for name, amount in amounts.items() if amount}


def row_values(snapshot: Snapshot, name: str) -> dict[str, Any]:
    row = snapshot.row_of(name)
    assert row is not None
    columns = snapshot.columns

    def amounts_at(amounts: ResourceColumns) -> dict[str, int]:
        names = columns.resources.names
        return positive({name: int(amounts[i][row]) for i, name in enumerate(names)})

    return {
        "requested": amounts_at(columns.requested),
        "allocatable": amounts_at(columns.allocatable),
        "non_zero": columns.non_zero[:, row].tolist(),
        "pod_count": columns.pod_count[row],
        "allowed_pods": columns.allowed_pods[row],
        "unschedulable": columns.unschedulable[row],
        "taints": columns.taint_sets.lists[columns.taint_set[row]],
        "features": columns.features[row],
        "node": snapshot.nodes[row],
        "image names": {image.name for image in snapshot.images[row]},
    }


SnapshotMachine.TestCase.settings = settings(stateful_step_count=60)
TestSnapshotMachine = SnapshotMachine.TestCase
