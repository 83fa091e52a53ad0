"""What nodes really use, from measurements, beside what is requested of them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubestow.simulator.reports.figures import percentile
from kubestow.usage.measurement import Measurement

_PERCENT = 95


class NodeUse(NamedTuple):
    """What a node used: 95 % of its measurements do not exceed it."""

    cpu_milli: int
    memory_bytes: int


def nodes_in_use(measurements: Iterable[Measurement]) -> Mapping[str, NodeUse]:
    """The use of each measured node. Of a node that is not measured itself, the pods on it are
    added up, by the time of their measurements."""
    nodes: dict[str, list[tuple[int, int]]] = {}
    pods: dict[str, dict[int, list[int]]] = {}
    for measurement in measurements:
        if not measurement.pod:
            nodes.setdefault(measurement.node, []).append(measurement.average)
        elif measurement.node:
            sums = pods.setdefault(measurement.node, {}).setdefault(measurement.time_ns, [0, 0])
            sums[0] += measurement.average.cpu_milli
            sums[1] += measurement.average.memory_bytes
    for name, by_time in pods.items():
        if name not in nodes:
            nodes[name] = [(cpu, memory) for cpu, memory in by_time.values()]
    return {
        name: NodeUse(
            int(percentile(sorted(cpu for cpu, _ in found), _PERCENT)),
            int(percentile(sorted(memory for _, memory in found), _PERCENT)),
        )
        for name, found in nodes.items()
    }
