"""Slots of nodes, and what is kept by them."""

import numpy as np

from kubestow.api.node import Node
from kubestow.cache.snapshot import Snapshot
from kubestow.index.devices.changes import NAMES_MAX, DeviceChanges
from kubestow.index.devices.per_node import KeptPerNode, NodeSlots
from kubestow.index.nodes import nodes_of
from kubestow.testing import make_cache, make_node


def test_changes_are_read_from_a_mark_on() -> None:
    changes = DeviceChanges()
    changes.note("a")
    mark = changes.mark
    assert changes.since(mark) == []
    changes.note("b")
    changes.note("a")
    assert changes.since(mark) == ["b", "a"]
    assert changes.since(changes.mark) == []


def test_a_change_for_all_nodes_outdates_every_mark() -> None:
    changes = DeviceChanges()
    old = changes.mark
    changes.note("a")
    recent = changes.mark
    changes.note_all()
    assert changes.since(old) is None
    assert changes.since(recent) is None
    assert changes.since(changes.mark) == []


def test_the_list_does_not_grow_for_ever() -> None:
    changes = DeviceChanges()
    mark = changes.mark
    for _ in range(NAMES_MAX + 1):
        changes.note("a")
    assert changes.since(mark) is None
    assert changes.since(changes.mark - 1) == ["a"]


class Lab:
    def __init__(self, *nodes: Node) -> None:
        self.changes = DeviceChanges()
        self.slots = NodeSlots(self.changes)
        self.cache = make_cache(nodes)
        self.snapshot = Snapshot()

    def slots_of(self) -> dict[str, int]:
        self.snapshot.refresh(self.cache)
        view = nodes_of(self.snapshot)
        return dict(zip(view.names, self.slots.of(view).tolist(), strict=True))


def test_slots_stay_when_rows_move() -> None:
    lab = Lab(make_node("n1"), make_node("n2"), make_node("n3"))
    assert lab.slots_of() == {"n1": 0, "n2": 1, "n3": 2}
    lab.cache.remove_node(make_node("n1"))
    assert lab.slots_of() == {"n2": 1, "n3": 2}
    lab.cache.add_node(make_node("n4"))
    lab.cache.add_node(make_node("n1"))
    assert lab.slots_of() == {"n2": 1, "n3": 2, "n4": 3, "n1": 0}


def test_nodes_that_changed_are_noted() -> None:
    node = make_node("n1")
    lab = Lab(node, make_node("n2"))
    lab.slots_of()
    mark = lab.changes.mark
    lab.cache.update_node(node, make_node("n1", unschedulable=True))
    lab.slots_of()
    assert lab.changes.since(mark) == []  # nothing that devices care for
    lab.cache.update_node(node, make_node("n1", labels={"a": "b"}))
    lab.slots_of()
    assert lab.changes.since(mark) == ["n1"]


def test_only_what_changed_is_missing() -> None:
    lab = Lab(make_node("n1"), make_node("n2"))
    lab.slots_of()
    kept = KeptPerNode(lab.slots, lab.changes)
    both = np.array([0, 1])
    assert kept.missing(both) == [0, 1]
    kept.is_known[:] = True
    assert kept.missing(both) == []
    lab.changes.note("n2")
    lab.changes.note("unknown")
    assert kept.missing(both) == [1]
    kept.is_known[:] = True
    lab.changes.note_all()
    assert kept.missing(both) == [0, 1]
    lab.cache.add_node(make_node("n3"))
    lab.slots_of()
    assert kept.missing(np.array([2])) == [2]
