"""What readers of traces make of lines: nodes, pods, and a scenario of both."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.errors import InputError
from kubestow.simulator.node_shapes import NodeShape, node_document
from kubestow.simulator.scenario.scenario import SAMPLE_S, Arrival, Scenario

GPU: Final = "nvidia.com/gpu"
# How much longer than the trace a run is: the last pods end, or are tried once more.
AFTER_S: Final = 60.0


class TracePod(NamedTuple):
    """A pod of a trace."""

    arrival: Arrival
    line: int


def trace_node(name: str, capacity: Mapping[str, str], labels: Mapping[str, str]) -> JsonObject:
    """A node without a zone, unless a label has one."""
    return node_document(name, 0, NodeShape(capacity=capacity, labels=labels), zones=())


def pod_spec(requests: Mapping[str, str], **fields: object) -> JsonObject:
    """The spec of a pod with one container; extended resources need equal limits."""
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    container = {
        "name": "main",
        "image": "trace",
        "resources": {"requests": dict(requests), **({"limits": limits} if limits else {})},
    }
    return {"containers": [container], **fields}


def pod_document(name: str, namespace: str, spec: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def trace_scenario(
    path: Path,
    documents: Sequence[Document],
    pods: Sequence[TracePod],
    *,
    last_s: float,
    pool_label: str = "",
) -> Scenario:
    """The pods of a file on the nodes of `documents`; `last_s` is the last time in the file."""
    if not pods:
        raise InputError(f"{path}: has no pods")
    arrivals = sorted((pod.arrival for pod in pods), key=lambda arrival: arrival.time_s)

    def source(seed: int) -> Iterator[Arrival]:
        return iter(arrivals)

    return Scenario(
        name=path.stem,
        until_s=last_s + AFTER_S,
        documents=documents,
        arrivals=[source],
        sample_s=SAMPLE_S,
        pool_label=pool_label,
        # Durations of traces begin when a pod gets its node.
        start_delay_s=0.0,
    )
