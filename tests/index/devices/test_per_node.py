"""Slots of nodes, and what is kept by them."""

import numpy as np

from kubestow.api.node import Node
from kubestow.cache.numbering import numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.index.devices.per_node import NOTED_MAX, KeptPerNode, NodeSlots
from kubestow.index.nodes import nodes_of
from kubestow.testing import make_cache, make_node


def noted(slots: NodeSlots, since: int) -> list[int] | None:
    found = slots.log.nodes_since(since)
    return None if found is None else list(found)


def test_the_log_does_not_grow_without_bound() -> None:
    lab = Lab(make_node("n1"))
    lab.slots_of()
    start = lab.slots.log.node_end
    for _ in range(NOTED_MAX + 1):
        lab.slots.note("n1")
    assert noted(lab.slots, start) is None
    lab.slots.note("n1")
    assert noted(lab.slots, lab.slots.log.node_end - 1) == [0]


class Lab:
    def __init__(self, *nodes: Node) -> None:
        self.slots = NodeSlots()
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
    start = lab.slots.log.node_end
    lab.cache.update_node(node, make_node("n1", unschedulable=True))
    lab.slots_of()
    assert noted(lab.slots, start) == []  # nothing that devices care for
    lab.cache.update_node(node, make_node("n1", labels={"a": "b"}))
    lab.slots_of()
    assert noted(lab.slots, start) == [0]


def test_only_what_changed_is_missing() -> None:
    lab = Lab(make_node("n1"), make_node("n2"))
    lab.slots_of()
    kept = KeptPerNode(lab.slots)
    both = np.array([0, 1])
    assert kept.missing(both) == [0, 1]
    kept.is_known[:] = True
    assert kept.missing(both) == []
    lab.slots.note("n2")
    lab.slots.note("unknown")
    assert kept.missing(both) == [1]
    kept.is_known[:] = True
    lab.slots.log.invalidate()
    assert kept.missing(both) == [0, 1]
    lab.cache.add_node(make_node("n3"))
    lab.slots_of()
    assert kept.missing(np.array([2])) == [2]


def test_slots_are_renumbered_when_most_nodes_are_gone() -> None:
    lab = Lab(make_node("stays"))
    kept, before = KeptPerNode(lab.slots), 0
    for number in range(2 * numbered_max(2)):
        node = make_node(f"n{number}")
        lab.cache.add_node(node)
        slots = lab.slots_of()
        assert len(set(slots.values())) == 2
        assert len(lab.slots) <= numbered_max(2)
        for name, slot in slots.items():
            assert lab.slots.find(name) == slot
            assert lab.slots.node(slot).metadata.name == name
        # Nothing holds under a number that is another node's now.
        missing = kept.missing(np.array(list(slots.values())))
        assert slots[f"n{number}"] in missing
        assert slots["stays"] in (before, *missing)
        before = slots["stays"]
        kept.is_known[list(slots.values())] = True
        lab.cache.remove_node(node)
