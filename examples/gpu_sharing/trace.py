"""The files of an openb trace: nodes and pods, as manifests and as the paper's workload.

`openb_node_list_gpu_node.csv` and `openb_pod_list_<NAME>.csv`; the trace is not part of this
repository (README.md has its address).
"""

import csv
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gpu_sharing.fragmentation import TypicalPod
from gpu_sharing.requests import GPU_COUNT, GPU_MILLI, GPU_MODEL, WHOLE

NODES_FILE: Final = "openb_node_list_gpu_node.csv"
PODS_FILE: Final = "openb_pod_list_{}.csv"
POD_SLOTS: Final = 1001
# The paper's load: GPUs requested by all pods, divided by the GPUs of the cluster.
LOAD: Final = 1.3

Manifest = dict[str, Any]


class TraceError(Exception):
    """A file of the trace is missing, or not what it should be."""


class TraceNode(NamedTuple):
    name: str
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    model: str

    def manifest(self) -> Manifest:
        resources = {
            "cpu": f"{self.cpu_milli}m",
            "memory": f"{self.memory_mib}Mi",
            "pods": str(POD_SLOTS),
            GPU_COUNT: str(self.gpu_count),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {GPU_MODEL: self.model}},
            "status": {"capacity": resources, "allocatable": resources},
        }


class TracePod(NamedTuple):
    name: str
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    models: str  # joined by "|"

    @property
    def total_milli(self) -> int:
        return self.gpu_count * self.gpu_milli

    def request(self) -> TypicalPod:
        return TypicalPod(
            cpu_milli=self.cpu_milli,
            gpu_count=self.gpu_count,
            gpu_milli=self.gpu_milli if self.gpu_count else 0,
            gpu_models=tuple(sorted(filter(None, self.models.split("|")))),
        )

    def manifest(self, *, name: str = "", uid: str = "", scheduler_name: str = "") -> Manifest:
        metadata: Manifest = {"name": name or self.name, "namespace": "default"}
        if uid:
            metadata["uid"] = uid
        if self.gpu_count:
            metadata["annotations"] = {
                GPU_MILLI: str(self.gpu_milli),
                GPU_COUNT: str(self.gpu_count),
                GPU_MODEL: self.models,
            }
        requests = {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_mib}Mi"}
        container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
        spec: Manifest = {"containers": [container]}
        if scheduler_name:
            spec["schedulerName"] = scheduler_name
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def read_nodes(folder: Path) -> list[TraceNode]:
    """The nodes, by name."""
    rows = _rows(folder / NODES_FILE, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
    nodes = [
        TraceNode(
            row["sn"],
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["gpu"]),
            row["model"],
        )
        for row in rows
    ]
    return sorted(nodes)


def read_pods(folder: Path, name: str = "default") -> list[TracePod]:
    """The pods of one list, by name."""
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    rows = _rows(folder / PODS_FILE.format(name), columns)
    pods = [
        TracePod(
            row["name"],
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            # Some lists have the first five columns only.
            row.get("gpu_spec") or "",
        )
        for row in rows
    ]
    return sorted(pods)


def workload(
    pods: list[TracePod], capacity_milli: int, rng: np.random.Generator, load: float = LOAD
) -> list[TracePod]:
    """All pods in random order, then pods drawn with replacement until the load is reached.

    A list that requests more than the load is pruned at random.
    """
    if not any(pod.gpu_count for pod in pods):
        raise TraceError("no pod of the list requests a GPU")
    arriving = [pods[index] for index in rng.permutation(len(pods))]
    requested, wanted = sum(pod.total_milli for pod in pods), load * capacity_milli
    if requested > wanted:
        while requested > wanted:
            requested -= arriving.pop(int(rng.integers(len(arriving)))).total_milli
        return arriving
    while True:
        drawn = pods[int(rng.integers(len(pods)))]
        # As in the paper's simulator, which compares with one GPU of the pod that is drawn.
        if requested + drawn.gpu_milli > wanted:
            return arriving
        requested += drawn.total_milli
        arriving.append(drawn)


def capacity_milli(nodes: list[TraceNode]) -> int:
    return sum(node.gpu_count for node in nodes) * WHOLE


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = set(columns) - set(reader.fieldnames or ())
            if missing:
                raise TraceError(f'"{path}" has no column {", ".join(sorted(missing))}')
            return list(reader)
    except OSError as error:
        raise TraceError(f'cannot read "{path}": {error.strerror}') from error
