"""Which nodes hold an item, found from both sides."""

from kubestow.index.held import NodesByItem


def test_items_are_found_from_both_sides() -> None:
    index = NodesByItem[str, int]()
    index.put("n1", {"x": 1, "y": 2})
    index.put("n2", {"y": 3})
    assert dict(index.nodes_with("y")) == {"n1": 2, "n2": 3}
    index.put("n1", {"x": 5})
    assert dict(index.nodes_with("x")) == {"n1": 5}
    assert dict(index.nodes_with("y")) == {"n2": 3}
    index.keep_only({"n1"})
    assert dict(index.nodes_with("y")) == {}
