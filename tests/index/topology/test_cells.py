"""Cells equal those that would be numbered now, whatever happened since."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import selector_from_map
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.topology import cells as cells_module
from kubestow.index.topology.cells import CELLS_MAX, CellIndex, Cells
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import InAll, PodSet
from kubestow.testing.builders import make_node, make_pod

WEB = InAll((PodSet(None, selector_from_map({"app": "web"})),))


class Cluster:
    def __init__(self) -> None:
        self.cache, self.snapshot = Cache(), Snapshot()
        self.nodes = [make_node(f"n{number}", zone=f"z{number % 2}") for number in range(4)]
        self.pods: list[PodInfo] = []
        for node in self.nodes:
            self.cache.add_node(node)

    def run(self, number: int) -> None:
        pod = make_pod(
            node=self.nodes[number % len(self.nodes)].metadata.name, labels={"app": "web"}
        )
        self.pods.append(PodInfo(pod))
        self.cache.add_pod(self.pods[-1])

    def end(self, number: int) -> None:
        if self.pods:
            self.cache.remove_pod(self.pods.pop(number % len(self.pods)).pod)

    def join(self, number: int) -> None:
        self.nodes.append(make_node(f"n{len(self.nodes)}", zone=f"z{number}"))
        self.cache.add_node(self.nodes[-1])

    def move(self, number: int) -> None:
        place = number % len(self.nodes)
        old, new = self.nodes[place], make_node(self.nodes[place].metadata.name, zone=f"z{number}")
        self.cache.update_node(old, new)
        self.nodes[place] = new

    def cells(self, key: str = "topology.kubernetes.io/zone") -> Cells:
        self.snapshot.refresh(self.cache)
        counts = TopologyCounts.at(self.snapshot)
        index = self.snapshot.derived(CellIndex)
        return index.of(counts.pods(WEB), counts.column(key), counts.layout_token)

    def numbered(self, cells: Cells) -> list[int]:
        counts = TopologyCounts.at(self.snapshot)
        domains = counts.column("topology.kubernetes.io/zone").ids
        return (counts.pods(WEB).rows.array() * cells.width + domains).tolist()


steps = st.lists(
    st.tuples(
        st.sampled_from(["run", "run", "run", "end", "join", "move"]),
        st.integers(0, 9),
        # Few changes are entered one by one, many together.
        st.sampled_from([1, 1, 2, 40]),
    ),
    max_size=8,
)


@given(steps=steps)
def test_cells_follow_the_pods(steps: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()
    for action, number, times in steps:
        for offset in range(times if action in ("run", "end") else 1):
            getattr(cluster, action)(number + offset)
        cells = cluster.cells()
        expected = cluster.numbered(cells)
        if cells.are_few:
            assert cells.ids.tolist() == expected
            assert cells.populations.tolist() == np.bincount(expected, minlength=CELLS_MAX).tolist()
        else:
            assert any(pods >= CELLS_MAX // cells.width for pods in most_pods(cluster))


def most_pods(cluster: Cluster) -> list[int]:
    return [len(info.pods) for info in cluster.snapshot.node_infos]


def test_many_pods_on_one_node_make_too_many_cells() -> None:
    cluster = Cluster()
    assert cluster.cells().are_few
    for _ in range(CELLS_MAX // cluster.cells().width):
        cluster.run(0)
        cells = cluster.cells()
    assert not cells.are_few


def test_cells_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "NUMBERED_BY_CELL_MAX", 1)
    cluster = Cluster()
    first = cluster.cells()
    assert cluster.cells() is first
    cluster.cells("kubernetes.io/hostname")
    assert cluster.cells() is not first
