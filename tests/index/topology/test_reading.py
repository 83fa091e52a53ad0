"""A reading gives what a look-up would give now, whatever happened since it was made."""

from collections.abc import Callable

import pytest

from kubestow.api.labels import selector_from_map
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.topology import counts as counts_module
from kubestow.index.topology import ledger
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import Eligibility
from kubestow.index.topology.measures import InAll, PodSet
from kubestow.index.topology.reading import Reading, pods
from kubestow.testing.builders import make_node, make_pod

WEB = InAll((PodSet(None, selector_from_map({"app": "web"})),))
DB = InAll((PodSet(None, selector_from_map({"app": "db"})),))
N1 = make_node("n1", labels={"zone": "z1", "pool": "p"})


class Cluster:
    def __init__(self) -> None:
        self.cache, self.snapshot = Cache(), Snapshot()
        self.cache.add_node(N1)
        self.cache.add_node(make_node("n2", labels={"zone": "z2"}))
        self.run("n1")

    def run(self, node: str) -> None:
        self.cache.add_pod(PodInfo(make_pod(node=node, labels={"app": "web"})))

    def counts(self) -> TopologyCounts:
        self.snapshot.refresh(self.cache)
        return TopologyCounts.at(self.snapshot)


def use_other_tallies(cluster: Cluster) -> None:
    for _ in range(3):  # The first round only finds that the tally was used.
        cluster.counts().pods(DB)
        cluster.counts().pods(InAll(()))


def use_other_keys(cluster: Cluster) -> None:
    cluster.counts().column("pool")


CHANGES: dict[str, Callable[[Cluster], object]] = {
    "nothing": lambda cluster: None,
    "a pod": lambda cluster: cluster.run("n2"),
    "a node": lambda cluster: cluster.cache.add_node(make_node("n0", labels={"zone": "z3"})),
    "a label": lambda cluster: cluster.cache.update_node(N1, make_node("n1", labels={"rack": "r"})),
    "other tallies": use_other_tallies,
    "other keys": use_other_keys,
}


@pytest.mark.parametrize("key", ["zone", "rack"])
@pytest.mark.parametrize("change", CHANGES)
def test_readings_follow(change: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "TALLIES_MAX", 1)
    monkeypatch.setattr(counts_module, "KEYS_MAX", 1)
    cluster = Cluster()
    eligibility = Eligibility(keys=(key,), counts_unlabelled=True)
    reading = pods(key, WEB, eligibility)
    for happens in (lambda cluster: None, CHANGES[change]):
        happens(cluster)
        cluster.run("n1")
        counts = cluster.counts()
        reading.refresh(counts)
        assert read(reading) == read(looked_up(pods(key, WEB, eligibility), counts))


def looked_up(reading: Reading, counts: TopologyCounts) -> Reading:
    reading.refresh(counts)
    return reading


def read(reading: Reading) -> tuple[object, ...]:
    return (
        reading.has_key,
        reading.column.ids.tolist(),
        reading.counted.ids.tolist(),
        reading.sums.amounts.array().tolist(),
        reading.sums.total,
        reading.tally is None or reading.tally.rows.array().tolist(),
    )
