"""Clusters and pods that arrive, made from a seed.

Pods are of unequal shapes: some need much cpu, some much memory, and a few are so large that they
fit only on a node that is nearly empty. In total they ask for more than there is, so how much of
the cluster is used in the end depends on which nodes are kept free for which pods.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

MIB = 1 << 20


class Amounts(NamedTuple):
    """What a node offers or a pod requests."""

    cpu_milli: int
    memory_mib: int

    def quantities(self) -> dict[str, str]:
        return {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_mib}Mi"}


class Arrival(NamedTuple):
    """A pod and its place in the sequence of arrivals."""

    name: str
    requests: Amounts

    def manifest(self) -> dict[str, Any]:
        container = {"name": "main", "image": "main", "resources": self._resources()}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name},
            "spec": {"containers": [container]},
        }

    def _resources(self) -> dict[str, Any]:
        return {"requests": self.requests.quantities()}


class Episode(NamedTuple):
    """A cluster without pods, and the pods that arrive one after the other."""

    nodes: Sequence[Amounts]
    arrivals: Sequence[Arrival]

    def manifests(self) -> list[dict[str, Any]]:
        nodes = [_node(f"node-{number:02}", offered) for number, offered in enumerate(self.nodes)]
        return [*nodes, *(arrival.manifest() for arrival in self.arrivals)]


class Workload(NamedTuple):
    """What episodes are drawn from.

    node_shapes   nodes in equal parts
    pod_shapes    the mean requests of each kind of pod, and how often it arrives
    load          what all pods request together, as a share of the cluster
    """

    node_count: int = 12
    node_shapes: Sequence[Amounts] = (
        Amounts(16_000, 32 * 1024),
        Amounts(16_000, 64 * 1024),
        Amounts(8_000, 64 * 1024),
    )
    pod_shapes: Sequence[tuple[Amounts, float]] = (
        (Amounts(1_500, 1536), 0.40),
        (Amounts(500, 5 * 1024), 0.35),
        (Amounts(7_000, 12 * 1024), 0.15),
        (Amounts(3_000, 28 * 1024), 0.10),
    )
    load: float = 1.15

    def episode(self, random: np.random.Generator) -> Episode:
        kinds = len(self.node_shapes)
        nodes = [self.node_shapes[number % kinds] for number in range(self.node_count)]
        return Episode(nodes, list(self._arrivals(nodes, random)))

    def _arrivals(self, nodes: Sequence[Amounts], random: np.random.Generator) -> list[Arrival]:
        """Pods until both resources together are asked for to the full `load`."""
        capacity = total(nodes)
        shapes, shares = zip(*self.pod_shapes, strict=True)
        arrivals: list[Arrival] = []
        asked = 0.0
        while asked < self.load:
            shape = shapes[random.choice(len(shapes), p=shares)]
            requests = Amounts(*(int(mean * random.uniform(0.6, 1.4)) for mean in shape))
            arrivals.append(Arrival(f"pod-{len(arrivals):03}", requests))
            asked += share(requests, capacity)
        return arrivals


def total(amounts: Sequence[Amounts]) -> Amounts:
    return Amounts(*(sum(column) for column in zip(*amounts, strict=True)))


def share(part: Amounts, whole: Amounts) -> float:
    """The mean of the shares of cpu and of memory."""
    return (part.cpu_milli / whole.cpu_milli + part.memory_mib / whole.memory_mib) / 2


def _node(name: str, offered: Amounts) -> dict[str, Any]:
    allocatable = offered.quantities() | {"pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
