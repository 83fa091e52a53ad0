"""The snapshot a cycle decides on: what a refresh copies, and what it leaves alone (spec 03)."""

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from kubestow.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, PodStatus
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.cache import Cache
from kubestow.cache.change_log import Depends
from kubestow.cache.columns import CPU
from kubestow.cache.numbering import numbered_max
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import CacheError
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import LabelColumns
from kubestow.testing import make_cache, make_node, make_pod, make_snapshot

HOSTNAME = "kubernetes.io/hostname"
AFFINITY = Affinity(pod_affinity=PodAffinity())
ANTI_AFFINITY = Affinity(pod_anti_affinity=PodAffinity(required=(PodAffinityTerm(),)))


class Watched:
    """A snapshot of which one sees the rows that a refresh copied."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.snapshot = Snapshot()
        self._end = 0

    def refresh(self) -> list[str]:
        """Names of the rows copied, in the order they were."""
        self.snapshot.refresh(self.cache)
        log = self.snapshot.log
        rows = log.pods_since(self._end)
        self._end = log.pod_end
        return [self.names[row] for row in rows] if rows is not None else self.names

    @property
    def names(self) -> list[str]:
        return self.snapshot.names


def watched(*nodes: str, pods: Sequence[Pod] = ()) -> Watched:
    """Nodes written as `name` or `name/zone`."""
    made = (text.partition("/") for text in nodes)
    return Watched(make_cache([make_node(name, zone=zone) for name, _, zone in made], pods))


def flagged(snapshot: Snapshot, column: str) -> list[str]:
    mask = getattr(snapshot.columns, column)
    return [snapshot.names[row] for row in np.flatnonzero(mask).tolist()]


# --- worked examples (§6.7) ---


def test_6_7_1_only_what_changed_is_copied() -> None:
    watch = watched("n1", "n2", "n3")
    start = watch.cache.node("n1").generation - 2
    generations = [watch.cache.node(name).generation - start for name in ("n1", "n2", "n3")]
    assert generations == [2, 4, 6]
    watch.refresh()
    assert watch.names == ["n1", "n2", "n3"]
    assert watch.snapshot.generation - start == 6
    watch.cache.add_pod(PodInfo(make_pod(node="n1")))
    assert list(reversed(watch.cache.nodes)) == ["n1", "n3", "n2"]
    assert watch.refresh() == ["n1"]
    assert watch.snapshot.generation - start == 7
    assert watch.refresh() == []


def test_6_7_2_a_zone_change_shows_only_with_the_next_new_node() -> None:
    watch = watched("a1/A", "b1/B", "a2/A")
    watch.refresh()
    assert watch.names == ["a1", "b1", "a2"]
    watch.cache.update_node(make_node("a1", zone="A"), make_node("a1", zone="B"))
    assert watch.cache.node_tree.list() == ["a2", "b1", "a1"]
    assert watch.refresh() == ["a1"]
    assert watch.names == ["a1", "b1", "a2"]
    watch.cache.add_node(make_node("c1", zone="C"))
    watch.refresh()
    assert watch.names == ["a2", "b1", "c1", "a1"]


def test_6_7_3_a_node_gone_and_back_keeps_its_place() -> None:
    watch = watched("n1", "n2", "n3")
    watch.refresh()
    watch.cache.remove_node(make_node("n1"))
    watch.cache.add_node(make_node("n1"))
    assert watch.cache.node_tree.list() == ["n2", "n3", "n1"]
    watch.refresh()
    assert watch.names == ["n1", "n2", "n3"]
    watch.cache.remove_node(make_node("n3"))
    watch.refresh()
    assert watch.names == ["n2", "n1"]


def test_6_7_4_ghosts_use_no_claims_and_the_generation_may_fall() -> None:
    pod = make_pod("p", namespace="ns", node="n1", pvcs=["v1"])
    watch = watched("n1", "n2", pods=[pod])
    watch.refresh()
    assert set(watch.snapshot.used_pvcs) == {"ns/v1"}
    assert watch.snapshot.is_pvc_used("ns/v1")
    watch.cache.remove_node(make_node("n1"))
    watch.refresh()
    assert watch.names == ["n2"]
    assert watch.snapshot.used_pvcs == {}
    before = watch.snapshot.generation
    watch.cache.remove_pod(pod)
    watch.refresh()
    assert watch.snapshot.generation == watch.cache.node("n2").generation < before


def test_6_7_5_affinity_lists_follow_single_nodes() -> None:
    watch = watched("n1", "n2")
    watch.refresh()
    first = make_pod("first", node="n2", affinity=AFFINITY)
    watch.cache.add_pod(PodInfo(first))
    assert watch.refresh() == ["n2"]
    assert flagged(watch.snapshot, "has_affinity") == ["n2"]
    assert flagged(watch.snapshot, "has_required_anti_affinity") == []
    watch.cache.add_pod(PodInfo(make_pod("second", node="n2", affinity=ANTI_AFFINITY)))
    watch.refresh()
    assert flagged(watch.snapshot, "has_required_anti_affinity") == ["n2"]
    watch.cache.remove_pod(first)
    watch.refresh()
    assert flagged(watch.snapshot, "has_affinity") == ["n2"]


def test_6_7_6_claims_count_by_name_not_by_pod() -> None:
    def using(claim: str, uid: str) -> Pod:
        return make_pod(uid, namespace="ns", uid=uid, node="n1", pvcs=[claim])

    watch = watched("n1")
    watch.refresh()
    watch.cache.add_pod(PodInfo(using("a", "u3")))
    watch.refresh()
    assert set(watch.snapshot.used_pvcs) == {"ns/a"}
    watch.cache.add_pod(PodInfo(using("a", "u4")))
    watch.refresh()
    watch.cache.remove_pod(using("a", "u3"))
    watch.refresh()
    assert set(watch.snapshot.used_pvcs) == {"ns/a"}
    watch.cache.remove_pod(using("a", "u4"))
    watch.cache.add_pod(PodInfo(using("b", "u5")))
    watch.refresh()
    assert set(watch.snapshot.used_pvcs) == {"ns/b"}


def test_a_claim_used_on_two_nodes_is_used_until_both_drop_it() -> None:
    pods = [make_pod(node, namespace="ns", node=node, pvcs=["a"]) for node in ("n1", "n2")]
    watch = watched("n1", "n2", pods=pods)
    watch.refresh()
    watch.cache.remove_pod(pods[0])
    watch.refresh()
    assert watch.snapshot.is_pvc_used("ns/a")
    watch.cache.remove_pod(pods[1])
    watch.refresh()
    assert not watch.snapshot.is_pvc_used("ns/a")


# --- contradictions (§6.2 step 8, §6.7 example 7) ---

INCONSISTENT = (
    "snapshot state is not consistent, length of NodeInfoList={} not equal to length of nodes in "
    "tree={} , length of NodeInfoMap={}, length of nodes in cache={}, trying to recover"
)


def test_6_7_7_a_name_left_in_the_tree_fails_every_refresh() -> None:
    cache = make_cache([make_node("n1", zone="A")])
    with pytest.raises(CacheError, match=r'^node "n1" in group ":\\x00:B" was not found$'):
        cache.remove_node(make_node("n1", zone="B"))
    snapshot = Snapshot()
    for _ in range(2):
        with pytest.raises(CacheError) as caught:
            snapshot.refresh(cache)
        assert str(caught.value) == INCONSISTENT.format(0, 1, 0, 0)


def test_6_7_7_a_snapshot_that_had_the_node_keeps_it() -> None:
    watch = watched("n1/A")
    watch.refresh()
    with pytest.raises(CacheError):
        watch.cache.remove_node(make_node("n1", zone="B"))
    watch.refresh()
    assert watch.names == ["n1"]
    assert watch.snapshot.nodes[0].metadata.name == "n1"


def test_a_node_added_under_a_second_zone_fails_one_refresh() -> None:
    watch = watched("n1/A")
    watch.refresh()
    watch.cache.add_node(make_node("n1", zone="B"))
    with pytest.raises(CacheError) as caught:
        watch.snapshot.refresh(watch.cache)
    assert str(caught.value) == INCONSISTENT.format(1, 2, 1, 1)
    watch.refresh()
    assert watch.names == ["n1", "n1"]
    watch.cache.add_pod(PodInfo(make_pod(node="n1", cpu="1", pvcs=["c"])))
    watch.refresh()
    assert watch.snapshot.columns.requested[CPU].tolist() == [1000, 1000]
    watch.cache.remove_node(make_node("n1", zone="A"))
    with pytest.raises(CacheError) as caught:
        watch.snapshot.refresh(watch.cache)
    assert str(caught.value) == INCONSISTENT.format(2, 1, 1, 1)
    watch.refresh()
    assert watch.names == ["n1"]


def test_a_doubled_row_leaves_no_derived_array_behind() -> None:
    others = [f"m{number}/A" for number in range(9)]
    watch = watched("n1/A", *others)
    watch.refresh()
    assert not cpu_requested(watch.snapshot).any()
    # The row changes, then doubles, before the array is read again.
    watch.cache.add_pod(PodInfo(make_pod(node="n1", cpu="1")))
    watch.refresh()
    watch.cache.add_node(make_node("n1", zone="B"))
    with pytest.raises(CacheError):
        watch.snapshot.refresh(watch.cache)
    assert watch.names[:3] == ["n1", "n1", "m0"]
    assert cpu_requested(watch.snapshot).tolist() == [1000, 1000, *[0] * 9]


def cpu_requested(snapshot: Snapshot) -> IntArray:
    def compute(nodes: Nodes) -> IntArray:
        return np.array([info.requested.milli_cpu for info in nodes.infos()], np.int64)

    return nodes_of(snapshot).tracked("cpu", Depends.PODS, compute)


def test_a_ghost_that_was_updated_forces_a_rebuild_but_is_never_listed() -> None:
    watch = watched("n1", "n2", pods=[make_pod(node="n1")])
    watch.cache.remove_node(make_node("n1"))
    watch.cache.update_node(make_node("n1"), make_node("n1"))
    for _ in range(3):
        watch.refresh()
        assert watch.names == ["n2"]
        assert watch.snapshot.row_of("n1") is None


def test_a_change_of_pods_is_no_change_of_the_node() -> None:
    watch = watched("n1", "n2")
    watch.refresh()
    log = watch.snapshot.log
    end = log.node_end
    watch.cache.add_pod(PodInfo(make_pod(node="n1")))
    assert watch.refresh() == ["n1"]
    assert log.nodes_since(end) == array("q")
    watch.cache.update_node(make_node("n2"), make_node("n2"))
    assert watch.refresh() == ["n2"]
    assert log.nodes_since(end) == array("q", [1])


def _running(**options: Any) -> Pod:
    given: dict[str, Any] = {"node": "n2", "cpu": "1", "labels": {"app": "web"}, **options}
    pod = make_pod("a", uid="a", **given)
    return msgspec.structs.replace(pod, status=PodStatus(phase="Running"))


@pytest.mark.parametrize(
    ("later", "is_counted"),
    [
        pytest.param(_running(), False, id="status"),
        pytest.param(_running(labels={"app": "other"}), True, id="class"),
        pytest.param(_running(cpu="2"), True, id="requests"),
        pytest.param(_running(deleted=datetime(2026, 1, 1, tzinfo=UTC)), True, id="terminating"),
    ],
)
def test_a_pod_that_counts_the_same_changes_no_counts(later: Pod, is_counted: bool) -> None:
    pod = make_pod("a", uid="a", node="n2", cpu="1", labels={"app": "web"})
    watch = watched("n1", "n2", pods=[pod])
    watch.refresh()
    log = watch.snapshot.log
    end = log.count_end
    watch.cache.update_pod(pod, PodInfo(later))
    assert watch.refresh() == ["n2"]
    assert log.counts_since(end) == array("q", [1] if is_counted else [])
    # The row shows what a new snapshot shows.
    fresh = Watched(watch.cache)
    fresh.refresh()
    assert np.array_equal(watch.snapshot.columns.block, fresh.snapshot.columns.block)
    assert watch.snapshot.node_infos[1].pods[0].pod is later


# --- reading ---


def test_get_finds_listed_nodes_only() -> None:
    snapshot = make_snapshot([make_node("n1")])
    assert snapshot.get("n1").name == "n1"
    assert snapshot.row_of("n1") == 0
    with pytest.raises(CacheError, match=r'^nodeinfo not found for node name "n2"$'):
        snapshot.get("n2")


def test_a_new_snapshot_is_empty() -> None:
    snapshot = Snapshot()
    assert len(snapshot) == 0
    assert snapshot.generation == 0
    snapshot.refresh(Cache())
    assert snapshot.names == []


def test_the_last_node_may_go_and_another_come() -> None:
    watch = watched("n1", pods=[make_pod(node="n1", cpu="2", requests={"example.com/gpu": 1})])
    watch.refresh()
    assert cpu_requested(watch.snapshot).tolist() == [2000]
    watch.cache.remove_node(make_node("n1"))
    watch.refresh()
    assert watch.names == []
    assert cpu_requested(watch.snapshot).tolist() == []
    watch.cache.add_node(make_node("n2"))
    watch.refresh()
    assert watch.names == ["n2"]
    assert cpu_requested(watch.snapshot).tolist() == [0]
    assert len(watch.snapshot.columns.requested[0]) == 1


def test_label_columns_follow_their_nodes() -> None:
    cache = make_cache([make_node("n1", labels={"rack": "r1"}), make_node("n2")])
    snapshot = Snapshot()
    snapshot.refresh(cache)
    rack = snapshot.derived(LabelColumns).column("rack")
    assert [rack.values[number] for number in rack.ids] == ["r1", None]
    assert rack.id_of("r1") == 1
    assert rack.id_of("r2") is None
    cache.update_node(make_node("n2"), make_node("n2", labels={"rack": "r2"}))
    cache.add_node(make_node("n0", labels={"rack": "r1"}))
    snapshot.refresh(cache)
    assert snapshot.derived(LabelColumns).column("rack") is rack
    assert [rack.values[number] for number in rack.ids] == ["r1", "r2", "r1"]


def test_the_least_recently_used_array_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.index.tracked.TRACKED_MAX", 2)
    snapshot = make_snapshot([make_node("n1")])
    computed: list[str] = []

    def ask(key: str) -> None:
        def compute(nodes: Nodes) -> IntArray:
            computed.append(key)
            return np.zeros(len(nodes), np.int64)

        nodes_of(snapshot).tracked(key, Depends.NODE, compute)

    for key in ("a", "b", "a", "c", "a", "b"):
        ask(key)
    assert computed == ["a", "b", "c", "b"]


def test_values_of_labels_that_are_gone_are_forgotten() -> None:
    watch = watched()
    for number in range(2 * numbered_max(1)):
        name = f"n{number}"
        node = make_node(name, labels={HOSTNAME: name})
        watch.cache.add_node(node)
        watch.snapshot.refresh(watch.cache)
        nodes = nodes_of(watch.snapshot)
        (number_of_value,) = nodes.label_ids(HOSTNAME)
        assert nodes.label_values(HOSTNAME)[number_of_value] == name
        assert len(nodes.label_values(HOSTNAME)) <= numbered_max(1)
        watch.cache.remove_node(node)


def test_values_that_a_label_had_are_forgotten() -> None:
    before = make_node("n1")
    watch = Watched(make_cache([before, make_node("n2", labels={"load": "other"})]))
    for number in range(2 * numbered_max(2)):
        node = make_node("n1", labels={"load": str(number)})
        watch.cache.update_node(before, node)
        before = node
        watch.snapshot.refresh(watch.cache)
        nodes = nodes_of(watch.snapshot)
        values = [nodes.label_values("load")[number] for number in nodes.label_ids("load")]
        assert values == [str(number), "other"]
        assert len(nodes.label_values("load")) <= numbered_max(2)


def test_the_least_recently_used_label_column_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubestow.index.tracked.LABEL_COLUMNS_MAX", 2)
    columns = make_snapshot([make_node("n1", labels={"a": "x"})]).derived(LabelColumns)
    first = columns.column("a")
    columns.column("b")
    assert columns.column("a") is first
    columns.column("c")
    assert columns.column("a") is first
    columns.column("b")
    columns.column("c")
    assert columns.column("a") is not first
    assert columns.column("a").ids.tolist() == [1]


def test_the_log_does_not_grow_without_bound() -> None:
    watch = watched("n1", "n2")
    watch.refresh()
    for number in range(2000):
        watch.cache.add_pod(PodInfo(make_pod(f"p{number}", node="n1")))
        watch.refresh()
        assert len(watch.snapshot.log._pod_rows) <= 4 * 2 + 1024
