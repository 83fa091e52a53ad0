"""The visiting order of nodes (spec 03 §5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.node import Node
from kubestow.api.topology import zone_key
from kubestow.cache.node_tree import NodeTree
from kubestow.errors import CacheError
from kubestow.testing import make_node


def tree_of(*placed: tuple[str, str]) -> NodeTree:
    tree = NodeTree()
    for name, zone in placed:
        tree.add(make_node(name, zone=zone))
    return tree


def move(tree: NodeTree, name: str, old_zone: str, new_zone: str) -> None:
    tree.update(make_node(name, zone=old_zone), make_node(name, zone=new_zone))


def test_5_3_1_zones_take_turns() -> None:
    tree = tree_of(("a1", "A"), ("a2", "A"), ("b1", "B"), ("b2", "B"), ("b3", "B"), ("c1", "C"))
    assert tree.list() == ["a1", "b1", "c1", "a2", "b2", "b3"]


def test_5_3_2_a_node_that_moves_goes_to_the_end_of_its_new_zone() -> None:
    tree = tree_of(("a1", "A"), ("b1", "B"), ("a2", "A"), ("b2", "B"))
    assert tree.list() == ["a1", "b1", "a2", "b2"]
    move(tree, "a1", "A", "B")
    assert tree.list() == ["a2", "b1", "b2", "a1"]
    move(tree, "a2", "A", "C")
    assert tree.list() == ["b1", "a2", "b2", "a1"]
    tree.add(make_node("a3", zone="A"))  # a zone that emptied comes back at the end
    assert tree.list() == ["b1", "a2", "a3", "b2", "a1"]
    assert tree.node_count == 5


def test_5_3_3_updating_a_node_that_is_not_there_adds_it() -> None:
    tree = tree_of(("b1", "B"))
    move(tree, "n1", "A", "B")
    assert tree.list() == ["b1", "n1"]
    assert tree.node_count == 2


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        pytest.param(
            {"failure-domain.beta.kubernetes.io/zone": "", "topology.kubernetes.io/zone": "z1"},
            "",
            id="5.3-5-the-older-label-wins-even-if-empty",
        ),
        pytest.param({"topology.kubernetes.io/region": "r1"}, "r1:\x00:", id="5.3-6-region-only"),
    ],
)
def test_zone_keys(labels: dict[str, str], key: str) -> None:
    assert zone_key(labels) == key
    tree = NodeTree()
    with pytest.raises(CacheError) as caught:
        tree.remove(make_node("n1", labels=labels))
    shown = key.replace("\x00", "\\x00")
    assert str(caught.value) == f'node "n1" in group "{shown}" was not found'


def test_an_update_within_a_zone_keeps_the_place() -> None:
    tree = tree_of(("a1", "A"), ("a2", "A"))
    move(tree, "a1", "A", "A")
    assert tree.list() == ["a1", "a2"]


def test_adding_a_node_twice_changes_nothing_within_a_zone() -> None:
    tree = tree_of(("a1", "A"), ("a2", "A"), ("a1", "A"))
    assert tree.list() == ["a1", "a2"]
    assert tree.node_count == 2


def test_adding_a_node_under_two_zones_counts_it_twice() -> None:
    tree = tree_of(("n1", "A"), ("n1", "B"))
    assert tree.list() == ["n1", "n1"]
    assert tree.node_count == 2
    tree.remove(make_node("n1", zone="A"))
    assert tree.list() == ["n1"]


def test_an_update_without_an_old_node_counts_as_no_zone() -> None:
    tree = tree_of(("n1", "A"))
    tree.update(None, make_node("n1"))
    assert tree.list() == ["n1"]
    tree.update(None, make_node("n2", zone="A"))
    assert tree.list() == ["n1", "n2"]


def test_an_empty_tree_lists_nothing() -> None:
    assert NodeTree().list() == []


class SlowTree:
    """Spec 03 §5.2, word for word."""

    def __init__(self) -> None:
        self.zones: list[str] = []
        self.tree: dict[str, list[str]] = {}
        self.num_nodes = 0

    def add(self, node: Node) -> None:
        name, zone = node.metadata.name, zone_key(node.metadata.labels)
        if zone in self.tree:
            if name in self.tree[zone]:
                return
            self.tree[zone].append(name)
        else:
            self.zones.append(zone)
            self.tree[zone] = [name]
        self.num_nodes += 1

    def remove(self, node: Node) -> bool:
        name, zone = node.metadata.name, zone_key(node.metadata.labels)
        if name not in self.tree.get(zone, []):
            return False
        self.tree[zone].remove(name)
        if not self.tree[zone]:
            del self.tree[zone]
            self.zones.remove(zone)
        self.num_nodes -= 1
        return True

    def update(self, old: Node, new: Node) -> None:
        if zone_key(old.metadata.labels) != zone_key(new.metadata.labels):
            self.remove(old)
            self.add(new)

    def list(self) -> list[str]:
        result: list[str] = []
        index = 0
        while len(result) < self.num_nodes:
            columns = (self.tree[zone] for zone in self.zones)
            result += [names[index] for names in columns if index < len(names)]
            index += 1
        return result


NODES = st.builds(
    lambda name, zone: make_node(name, zone=zone), st.sampled_from("abcde"), st.sampled_from("XYZ")
)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "update"]), NODES, NODES), max_size=40)


@given(STEPS)
def test_any_sequence_of_changes_lists_as_the_specification_says(
    steps: list[tuple[str, Node, Node]],
) -> None:
    tree, slow = NodeTree(), SlowTree()
    for operation, node, other in steps:
        if operation == "add":
            tree.add(node)
            slow.add(node)
        elif operation == "update":
            old = make_node(node.metadata.name, labels=other.metadata.labels)
            tree.update(old, node)
            slow.update(old, node)
        elif slow.remove(node):
            tree.remove(node)
        else:
            with pytest.raises(CacheError):
                tree.remove(node)
        assert tree.list() == slow.list()
        assert tree.node_count == slow.num_nodes


def test_a_copy_changes_by_itself() -> None:
    tree = NodeTree()
    tree.add(make_node("a", zone="z1"))
    copy = tree.copy()
    copy.add(make_node("b", zone="z1"))
    copy.add(make_node("c", zone="z2"))
    assert (tree.list(), tree.node_count) == (["a"], 1)
    assert (copy.list(), copy.node_count) == (["a", "c", "b"], 3)
