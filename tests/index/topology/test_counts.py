"""What is kept from cycle to cycle equals what a look at every node and pod would give."""

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import EVERYTHING, Selector, selector_from_map
from kubestow.api.node import Node
from kubestow.api.node_selector import RequiredNodeAffinity
from kubestow.api.pod import Pod, Toleration
from kubestow.api.pod_info import PodClass, PodInfo
from kubestow.api.taints import TolerationTable, first_untolerated
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.topology import counts as counts_module
from kubestow.index.topology import domains, ledger
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import EVERY_NODE, DomainColumn, Eligibility
from kubestow.index.topology.measures import (
    NO_PODS,
    Exposure,
    InAll,
    Live,
    PodSet,
    Pull,
    WeightedSets,
)
from kubestow.index.topology.reading import pods as pods_reading
from kubestow.index.topology.what_if import DomainCounts
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.snapshots import make_snapshot
from kubestow.testing.topology import make_affinity, make_pod_term

LEAVING = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("n1", "n2", "n3", "n4", "n5", "n6")
POOL = RequiredNodeAffinity.of(make_pod(node_selector={"pool": "p"}))

WEB = selector_from_map({"app": "web"})
ELIGIBILITIES = (
    EVERY_NODE,
    Eligibility(keys=("zone",)),
    Eligibility(keys=("rack", "zone")),
    Eligibility(affinity=POOL),
    Eligibility(tolerations=()),
    Eligibility(tolerations=(Toleration(operator="Exists"),)),
    Eligibility(keys=("rack",), affinity=POOL, tolerations=()),
    Eligibility(counts_unlabelled=True),
    Eligibility(affinity=POOL, counts_unlabelled=True),
)


def pods_of(selector: Selector, *namespaces: str) -> PodSet:
    return PodSet(frozenset(namespaces) or None, selector)


MEASURES = (
    NO_PODS,
    InAll((pods_of(WEB, "default"),)),
    InAll((pods_of(WEB), pods_of(selector_from_map({"tier": "fe"}), "default", "team"))),
    InAll((pods_of(EVERYTHING),)),
    WeightedSets(((pods_of(WEB), 3), (pods_of(EVERYTHING, "team"), -2))),
    WeightedSets(((pods_of(WEB), 5),)),
)
EXPOSED = PodClass.of("default", {"app": "web"})
PULLS = (
    Pull(required_anti_affinity=1),
    Pull(required_affinity=4, preferred_affinity=1, preferred_anti_affinity=-1, is_weighted=True),
)
TERMS = (make_pod_term("zone", "app=web"), make_pod_term("rack", "app Exists"))
AFFINITIES = (
    None,
    None,
    make_affinity(apart=[TERMS[0], TERMS[1]]),
    make_affinity(near=[TERMS[0]], prefers=[(7, TERMS[1])]),
    make_affinity(avoids=[(7, TERMS[0]), (7, TERMS[0])]),
    make_affinity(apart=[make_pod_term("zone", "app=db")]),
)

nodes = st.builds(
    make_node,
    st.sampled_from(NAMES),
    labels=st.fixed_dictionaries(
        {},
        optional={
            "zone": st.sampled_from(["z1", "z2", "z3", ""]),
            "rack": st.sampled_from(["r1", "r2"]),
            "pool": st.just("p"),
        },
    ),
    taints=st.sampled_from([(), ("x:NoSchedule",), ("x:PreferNoSchedule",)]),
)
pods = st.builds(
    make_pod,
    namespace=st.sampled_from(["default", "team"]),
    labels=st.sampled_from([{}, {"app": "web"}, {"app": "web", "tier": "fe"}, {"app": "db"}]),
    node=st.sampled_from(NAMES),
    deleted=st.sampled_from([None, None, LEAVING]),
    affinity=st.sampled_from(AFFINITIES),
)
put_node = st.tuples(st.just("put node"), nodes)
add_pod = st.tuples(st.just("add pod"), pods)
remove_node = st.tuples(st.just("remove node"), st.sampled_from(NAMES))
remove_pod = st.tuples(st.just("remove pod"), st.integers(0, 20))
terminate = st.tuples(st.just("terminate"), st.integers(0, 20))
changes = st.lists(
    put_node | put_node | add_pod | add_pod | remove_node | remove_pod | terminate, max_size=5
)


class Cluster:
    def __init__(self) -> None:
        self.cache, self.snapshot = Cache(), Snapshot()
        self.nodes: dict[str, Node] = {}
        self.pods: list[Pod] = []

    def apply(self, kind: str, subject: Any) -> None:
        match kind:
            case "put node":
                old = self.nodes.get(subject.metadata.name)
                if old is None:
                    self.cache.add_node(subject)
                else:
                    self.cache.update_node(old, subject)
                self.nodes[subject.metadata.name] = subject
            case "remove node":
                if subject in self.nodes:
                    self.cache.remove_node(self.nodes.pop(subject))
            case "add pod":
                # One example may draw the same object twice.
                metadata = msgspec.structs.replace(subject.metadata, uid=make_pod().metadata.uid)
                pod = msgspec.structs.replace(subject, metadata=metadata)
                self.cache.add_pod(PodInfo(pod))
                self.pods.append(pod)
            case "remove pod":
                if subject < len(self.pods):
                    self.cache.remove_pod(self.pods.pop(subject))
            case _:
                if subject < len(self.pods):
                    self.terminate(subject)

    def terminate(self, index: int) -> None:
        old = self.pods[index]
        metadata = msgspec.structs.replace(old.metadata, deletion_timestamp=LEAVING)
        self.pods[index] = msgspec.structs.replace(old, metadata=metadata)
        self.cache.update_pod(old, PodInfo(self.pods[index]))

    def on(self, name: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == name]


@pytest.mark.slow
@given(
    rounds=st.lists(
        st.tuples(st.lists(changes, min_size=1, max_size=10), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    weighed_unread_max=st.sampled_from([ledger.WEIGHED_UNREAD_MAX, 0, 5]),
)
def test_counts_follow_whatever_happens(
    rounds: list[tuple[list[list[tuple[str, Any]]], bool]], weighed_unread_max: int
) -> None:
    """Between two looks at the counts lie one or more refreshes of the snapshot."""
    cluster = Cluster()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "WEIGHED_UNREAD_MAX", weighed_unread_max)
        for refreshes, looks_at_all in rounds:
            for some_changes in refreshes:
                for kind, subject in some_changes:
                    cluster.apply(kind, subject)
                cluster.snapshot.refresh(cluster.cache)
            # What is not read in one round must still be right in the next.
            check(cluster, ELIGIBILITIES if looks_at_all else ELIGIBILITIES[:2])


def check(cluster: Cluster, eligibilities: Iterable[Eligibility]) -> None:
    names = cluster.snapshot.names
    for key in ("zone", "rack"):
        for eligibility in eligibilities:
            column = TopologyCounts.at(cluster.snapshot).column(key, eligibility)
            expected = [domain_of(cluster.nodes[name], key, eligibility) for name in names]
            assert column.domain_count == len(set(expected) - {None})
            check_tallies(cluster, column, expected)
        check_terms(cluster, key)


def check_tallies(cluster: Cluster, column: DomainColumn, values: list[str | None]) -> None:
    counts = TopologyCounts.at(cluster.snapshot)
    for measure in MEASURES:
        weigh = weigher(measure.weigh)
        everyone = [sum(map(weigh, cluster.on(name))) for name in cluster.snapshot.names]
        check_sums(counts.pods(measure), column, everyone, values)
        staying = [
            sum(weigh(pod) for pod in cluster.on(name) if not pod.metadata.deletion_timestamp)
            for name in cluster.snapshot.names
        ]
        check_sums(counts.pods(Live(measure)), column, staying, values)


def check_terms(cluster: Cluster, key: str) -> None:
    counts = TopologyCounts.at(cluster.snapshot)
    column = counts.column(key)
    values = [domain_of(cluster.nodes[name], key, EVERY_NODE) for name in cluster.snapshot.names]
    for pull in PULLS:
        exposure = Exposure(counts.terms.selecting(EXPOSED, {}), key, pull)
        rows = [
            sum(pulled(pod, key, pull) for pod in cluster.on(name))
            for name in cluster.snapshot.names
        ]
        check_sums(counts.terms.tally(exposure), column, rows, values)


def check_sums(
    tally: domains.RowCounts, column: DomainColumn, rows: list[int], values: list[str | None]
) -> None:
    assert tally.rows.array().tolist() == rows
    sums = tally.sums(column)
    per_value: dict[str, int] = {}
    for value, count in zip(values, rows, strict=True):
        if value is not None:
            per_value[value] = per_value.get(value, 0) + count
    found = sums.amounts.take(column.ids).tolist()
    assert found == [0 if value is None else per_value[value] for value in values]
    assert sums.total == sum(per_value.values())
    assert sums.highest() == max(0, *per_value.values()) if per_value else sums.highest() == 0
    occupied = [value is not None and per_value[value] > 0 for value in values]
    assert (sums.vacant().take(column.ids) == 0).tolist() == occupied
    if per_value:
        assert sums.lowest(column) == min(per_value.values())
    sizes = Counter(value for value in values if value is not None)
    assert column.has_single_rows() == all(size == 1 for size in sizes.values())


def domain_of(node: Node, key: str, eligibility: Eligibility) -> str | None:
    labels = node.metadata.labels
    kept_out = eligibility.tolerations is not None and first_untolerated(
        node.spec.taints, TolerationTable(eligibility.tolerations)
    )
    if kept_out or not eligibility.affinity.matches(labels, node.metadata.name):
        return None
    if any(needed not in labels for needed in eligibility.keys):
        return None
    return labels.get(key, "" if eligibility.counts_unlabelled else None)


def weigher(weigh: Callable[[PodClass], int]) -> Callable[[Pod], int]:
    return lambda pod: weigh(PodInfo(pod).pod_class)


def pulled(pod: Pod, key: str, pull: Pull) -> int:
    """What the pod's terms of one key add up to for a web pod of the default namespace."""
    info = PodInfo(pod)
    required = [
        *((term, pull.required_affinity) for term in info.required_affinity_terms),
        *((term, pull.required_anti_affinity) for term in info.required_anti_affinity_terms),
    ]
    preferred = [
        *((entry, pull.preferred_affinity) for entry in info.preferred_affinity_terms),
        *((entry, pull.preferred_anti_affinity) for entry in info.preferred_anti_affinity_terms),
    ]
    weighted = [
        (entry.term, amount * (entry.weight if pull.is_weighted else 1))
        for entry, amount in preferred
    ]
    return sum(
        amount
        for term, amount in (*required, *weighted)
        if term.topology_key == key and term.matches("default", {"app": "web"}, {})
    )


def test_a_taint_alone_changes_which_nodes_count() -> None:
    cluster = Cluster()
    labels = {"zone": "z1"}
    for taints in ((), ("x:NoSchedule",), ()):
        cluster.apply("put node", make_node("n1", labels=labels, taints=taints))
        cluster.snapshot.refresh(cluster.cache)
        check(cluster, ELIGIBILITIES)


def test_more_new_orders_than_the_log_remembers_can_be_missed() -> None:
    cluster = Cluster()
    # Two nodes stay as they are all the time. (Of the first row the log may speak without need.)
    for name in NAMES[4:]:
        cluster.apply("put node", make_node(name, labels={"zone": "z2", "rack": "r2"}))
        cluster.apply("add pod", make_pod(node=name, labels={"app": "web"}))
    for round_of_twelve in range(3):
        for i in range(12):
            name = NAMES[(i + round_of_twelve) % 4]
            cluster.apply("remove node", name)
            cluster.snapshot.refresh(cluster.cache)
            cluster.apply("put node", make_node(name, labels={"zone": f"z{i % 3}", "rack": "r1"}))
            cluster.apply("add pod", make_pod(node=name, labels={"app": "web"}))
            cluster.apply("add pod", make_pod(node=name, affinity=AFFINITIES[2]))
            cluster.snapshot.refresh(cluster.cache)
        check(cluster, ELIGIBILITIES)


# --- keeping few things ---


def test_terms_that_no_pod_owns_are_forgotten() -> None:
    cluster = Cluster()
    for name in NAMES[:2]:
        cluster.apply("put node", make_node(name))
        cluster.apply("add pod", make_pod(node=name, affinity=AFFINITIES[2]))
    cluster.snapshot.refresh(cluster.cache)

    def keys() -> list[str]:
        terms = TopologyCounts.at(cluster.snapshot).terms
        return sorted(terms.topology_keys("RequiredAntiAffinity", "PreferredAffinity"))

    assert keys() == ["rack", "zone"]
    cluster.apply("remove node", "n1")
    cluster.snapshot.refresh(cluster.cache)
    assert keys() == ["rack", "zone"]
    cluster.apply("remove node", "n2")
    cluster.snapshot.refresh(cluster.cache)
    assert keys() == []


def test_numbers_of_vanished_values_are_given_away_again() -> None:
    cache, snapshot = Cache(), Snapshot()
    for i in range(100):
        node = make_node(f"n{i}", labels={"host": f"h{i}"})
        cache.add_node(node)
        snapshot.refresh(cache)
        column = TopologyCounts.at(snapshot).column("host")
        assert column.domain_count == 1
        cache.remove_node(node)
    assert len(column.populations) == 8


def test_columns_that_are_forgotten_are_not_kept_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(domains, "VARIANTS_MAX", 1)
    cluster = Cluster()
    cluster.apply("put node", make_node("n1", labels={"zone": "z1", "rack": "r1", "pool": "p"}))
    cluster.snapshot.refresh(cluster.cache)
    counts = TopologyCounts.at(cluster.snapshot)
    first = counts.column("zone", Eligibility(affinity=POOL))
    assert first is counts.column("zone", Eligibility(affinity=POOL))
    assert first.is_kept
    second = counts.column("zone", Eligibility(keys=("rack", "zone")))
    assert (first.is_kept, second.is_kept) == (False, True)


@pytest.mark.parametrize(
    "limits", [{"TALLIES_MAX": 1}, {"TALLY_ROWS_MAX": 2, "TALLIES_FEW": 1}], ids=str
)
def test_columns_and_tallies_used_last_are_kept(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "VARIANTS_MAX", 1)
    for name, value in limits.items():
        monkeypatch.setattr(ledger, name, value)
    cluster = Cluster()
    labels = {"zone": "z1", "rack": "r1", "pool": "p"}
    cluster.apply("put node", make_node("n1", labels=labels))
    cluster.apply("put node", make_node("n2", labels={"zone": "z2"}))
    for i in range(4):
        app = ("web", "db")[i % 2]
        cluster.apply("add pod", make_pod(node="n1", labels={"app": app}, affinity=AFFINITIES[i]))
        cluster.snapshot.refresh(cluster.cache)
        check(cluster, ELIGIBILITIES)
    counts = TopologyCounts.at(cluster.snapshot)
    tally = counts.pods(MEASURES[1])
    assert tally is counts.pods(MEASURES[1])
    # What it counted is gone by the time it is dropped.
    for _ in range(4):
        cluster.apply("remove pod", 0)
    cluster.snapshot.refresh(cluster.cache)
    counts = TopologyCounts.at(cluster.snapshot)
    counts.pods(MEASURES[2])
    assert tally is not counts.pods(MEASURES[1])


def test_tallies_that_are_read_without_a_look_up_count_as_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "TALLIES_MAX", 2)
    counts = TopologyCounts.at(make_snapshot([make_node("n1", labels={"zone": "z1"})]))
    reading = pods_reading("zone", MEASURES[1])
    reading.refresh(counts)
    tally = reading.tally
    for measure in (*MEASURES[2:], *MEASURES[2:]):
        counts.pods(measure)
        reading.refresh(counts)
    assert reading.tally is tally
    for measure in (*MEASURES[2:], *MEASURES[2:]):
        counts.pods(measure)
    reading.refresh(counts)
    assert reading.tally is not tally


def test_many_new_kinds_of_pods_are_not_weighed_for_tallies_that_nobody_reads() -> None:
    cluster = Cluster()
    cluster.apply("put node", make_node("n1", labels={"zone": "z1"}))
    cluster.snapshot.refresh(cluster.cache)
    # None of them requires a particular value of a label: each has to weigh every kind.
    measures = [_CountedMeasure(number) for number in range(20)]
    for measure in measures:
        TopologyCounts.at(cluster.snapshot).pods(measure)
    kinds = ledger.WEIGHED_UNREAD_MAX // 2
    for number in range(kinds):
        cluster.apply("add pod", make_pod(node="n1", labels={"app": f"app-{number}"}))
    cluster.snapshot.refresh(cluster.cache)
    counts = TopologyCounts.at(cluster.snapshot)
    tally = counts.pods(measures[0])
    assert tally.rows.array().tolist() == [kinds]
    weighed = sum(measure.weighed for measure in measures)
    assert weighed <= ledger.WEIGHED_UNREAD_MAX + len(measures) + kinds


class _CountedMeasure:
    """Counts every pod."""

    size = 1

    def __init__(self, number: int) -> None:
        self.number = number
        self.weighed = 0

    def weigh(self, pod_class: PodClass, /) -> int:
        self.weighed += 1
        return 1


def test_topology_keys_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts_module, "KEYS_MAX", 2)
    cluster = Cluster()
    for name in ("n1", "n2"):
        labels = {"zone": "z1", "rack": name, "host": name}
        cluster.apply("put node", make_node(name, labels=labels))
    cluster.snapshot.refresh(cluster.cache)
    counts = TopologyCounts.at(cluster.snapshot)
    tally = counts.pods(MEASURES[1])
    zone = counts.column("zone")
    for number in range(4):
        cluster.apply("add pod", make_pod(node="n1", labels={"app": "web"}))
        cluster.snapshot.refresh(cluster.cache)
        counts = TopologyCounts.at(cluster.snapshot)
        assert tally.sums(counts.column("zone")).total == number + 1
        for key in ("rack", "host", f"key-{number}"):
            tally.sums(counts.column(key))
        # A dropped column leaves the tally, so nothing is summed for it any more.
        assert len(tally._sums) == 2
    assert counts.column("zone") is not zone


def test_a_column_that_made_room_serves_its_attempt_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counts_module, "KEYS_MAX", 1)
    cluster = Cluster()
    cluster.apply("put node", make_node("n1", labels={"zone": "z1", "rack": "r1"}))
    cluster.apply("add pod", make_pod(node="n1", labels={"app": "web"}))
    cluster.snapshot.refresh(cluster.cache)
    counts = TopologyCounts.at(cluster.snapshot)
    tally = counts.pods(MEASURES[1])
    zone, rack = counts.column("zone"), counts.column("rack")
    assert [tally.sums(column).total for column in (zone, rack)] == [1, 1]
    # Rows and pods come that the column knows nothing of.
    cluster.apply("put node", make_node("n2", labels={"zone": "z2", "rack": "r2"}))
    cluster.apply("add pod", make_pod(node="n2", labels={"app": "web"}))
    cluster.snapshot.refresh(cluster.cache)
    check(cluster, ELIGIBILITIES)


def test_counts_go_with_their_snapshot() -> None:
    snapshot = make_snapshot([make_node("n1")])
    counts = weakref.ref(TopologyCounts.at(snapshot))
    del snapshot
    gc.collect()
    assert counts() is None


# --- counts of one attempt ---


def test_an_attempt_changes_its_own_counts_only() -> None:
    snapshot = make_snapshot(
        [make_node(name, labels={"zone": zone}) for name, zone in (("n1", "a"), ("n2", "b"))],
        [make_pod(node="n1", labels={"app": "web"})],
    )
    counts = TopologyCounts.at(snapshot)
    column = counts.column("zone")
    kept = counts.pods(MEASURES[1]).sums(column).amounts
    first = DomainCounts(kept, column)
    second = first.clone()
    second.add(0, 5)
    third = second.clone()
    # The second goes on changing after the third was taken from it.
    second.add(0, 10)
    third.add(1, 1)
    everywhere = slice(None)
    assert [each.at(everywhere).tolist() for each in (first, second, third)] == [
        [1, 0],
        [16, 0],
        [6, 1],
    ]
    assert kept.take(column.ids).tolist() == [1, 0]


def test_pods_on_rows_that_do_not_count_change_nothing() -> None:
    snapshot = make_snapshot([make_node("n1", labels={"zone": "a"}), make_node("n2")])
    counts = TopologyCounts.at(snapshot)
    column = counts.column("zone")
    counted = counts.column("zone", Eligibility(affinity=POOL))
    subject = DomainCounts(Amounts(len(column.populations)), column, counted)
    subject.add(0, 1)
    subject.add(1, 1)
    assert subject.at(slice(None)).tolist() == [0, 0]
