"""Indexes beside a snapshot follow it row by row."""

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.index.held import ChangedRows, NodesByItem
from kubestow.index.tracked import Depends
from kubestow.testing import make_cache, make_node, make_pod


def test_all_rows_at_first_then_those_that_changed() -> None:
    cache = make_cache([make_node(name) for name in ("a", "b", "c")])
    snapshot = Snapshot()
    snapshot.refresh(cache)
    changed = ChangedRows(Depends.PODS)
    assert list(changed.take(snapshot).rows) == [0, 1, 2]
    assert list(changed.take(snapshot).rows) == []
    cache.add_pod(PodInfo(make_pod(node="b")))
    snapshot.refresh(cache)
    changes = changed.take(snapshot)
    assert list(changes.rows) == [1]
    assert not changes.is_relaid
    assert list(changed.take(snapshot).rows) == []


def test_a_new_node_lays_the_rows_anew() -> None:
    cache = make_cache([make_node("a")])
    snapshot = Snapshot()
    snapshot.refresh(cache)
    changed = ChangedRows(Depends.PODS)
    changed.take(snapshot)
    cache.add_node(make_node("b"))
    snapshot.refresh(cache)
    changes = changed.take(snapshot)
    assert changes.is_relaid
    assert [snapshot.names[row] for row in changes.rows] == ["b"]


def test_another_snapshot_is_read_from_the_start() -> None:
    cache = make_cache([make_node("a"), make_node("b")])
    changed = ChangedRows(Depends.PODS)
    for _ in range(2):
        snapshot = Snapshot()
        snapshot.refresh(cache)
        changes = changed.take(snapshot)
        assert changes.is_relaid
        assert list(changes.rows) == [0, 1]


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
