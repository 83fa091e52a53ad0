"""A small cluster for tests of v1.9 predicates and priorities.

bench = BenchV19(nodes=[make_node("n1")], pods=[make_pod("a", node="n1")])
bench.verdicts(HostName(), make_pod(node="n2"))        {"n1": ["HostName"]}
bench.scores(EqualPriority(), make_pod())              {"n1": 1}
"""

from collections.abc import Iterable

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_9.plugins.contract import (
    Attempt,
    LegacyCluster,
    Predicate,
    Priority,
    is_reducing,
)
from kubestow.editions.v1_9.plugins.pod import PodInfoV19
from kubestow.editions.v1_9.plugins.reasons import FITS, reasons_of
from kubestow.index.nodes import Nodes, nodes_of


class BenchV19:
    """Cache, snapshot and stores. Pods may name nodes that do not exist."""

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        objects: Iterable[ApiObject] = (),
    ) -> None:
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.objects = ClusterObjects()
        self.cluster = LegacyCluster(self.cache, self.objects)
        for node in nodes:
            self.cache.add_node(node)
        for pod in pods:
            self.cache.add_pod(PodInfoV19(pod))
        self.objects.put(*objects)

    def attempt(self, pod: Pod) -> Attempt:
        """An attempt on the cluster as it is now."""
        self.snapshot.refresh(self.cache)
        return Attempt(PodInfoV19(pod), self.cluster)

    def verdicts(
        self, predicate: Predicate, pod: Pod, nodes: Nodes | None = None
    ) -> dict[str, list[str]]:
        """Node → reasons, for those that do not fit; an error is a reason that begins with
        `error: `."""
        attempt = self.attempt(pod)
        nodes = nodes_of(self.snapshot) if nodes is None else nodes
        codes, errors = predicate.check(attempt, nodes)
        if codes is None:
            return {}
        found: dict[str, list[str]] = {}
        for name, code in zip(nodes.names, codes.tolist(), strict=True):
            if code < FITS:
                found[name] = [f"error: {errors[-1 - code]}"]
            elif code > FITS:
                found[name] = list(reasons_of(code))
        return found

    def scores(
        self, priority: Priority, pod: Pod, names: Iterable[str] | None = None
    ) -> dict[str, int]:
        """Node → score, of all nodes or only those named."""
        attempt = self.attempt(pod)
        rows = [row for name in names or self.snapshot.names if (row := self._row(name)) >= 0]
        nodes = nodes_of(self.snapshot, np.array(rows, np.intp))
        scores = priority.map(attempt, nodes)
        if is_reducing(priority):
            scores = priority.reduce(attempt, nodes, scores)
        values: list[int] = scores.tolist()
        return dict(zip(nodes.names, values, strict=True))

    def _row(self, name: str) -> int:
        row = self.snapshot.row_of(name)
        return -1 if row is None else row
