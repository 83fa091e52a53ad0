"""One run of the experiment: one policy, one order of the pods, until all have arrived.

The pods are tried one at a time by the scheduler of kubestow with the plugins of this example. One
that does not fit is dropped, and no pod is ever deleted. What is measured is counted here from the
placements, apart from the plugins' own arrays; a GPU that was given away twice ends the run.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from gpu_sharing.config import configuration, write_configuration
from gpu_sharing.fragmentation import Fragmentation, State, TypicalPod, typical_pods
from gpu_sharing.gpu_share import GpuShare
from gpu_sharing.requests import GPUS_MAX, WHOLE
from gpu_sharing.trace import LOAD, TraceNode, TracePod, capacity_milli, workload
from kubestow import LoadedCluster, load_cluster
from kubestow.plugin import IntArray

# Measured at each whole percent of arrived load.
PERCENT: Final = 100


class Run(NamedTuple):
    """What is measured, in percent of the GPUs of the cluster, at each percent of load from 0 on.

    allocated    float64[percent]
    fragmented   float64[percent]: idle, and of no use to the typical pods
    """

    policy: str
    seed: int
    allocated: npt.NDArray[np.float64]
    fragmented: npt.NDArray[np.float64]
    arrived_count: int
    placed_count: int


def run(policy: str, seed: int, nodes: list[TraceNode], pods: list[TracePod], *, ties: str) -> Run:
    """The seed fixes the order of the pods, which is the same for all policies."""
    typical = typical_pods(pod.request() for pod in pods)
    capacity = capacity_milli(nodes)
    arriving = workload(pods, capacity, np.random.default_rng(seed))
    cluster = _cluster(policy, seed, nodes, typical, ties)
    share = cast(GpuShare, cluster.plugin(GpuShare.name))
    ledger = Ledger(nodes, typical)
    requested, placed_count = 0, 0
    for number, pod in enumerate(arriving):
        requested += pod.total_milli
        ledger.measure_below(requested)
        uid = f"{seed}-{number}"
        node = cluster.place(pod.manifest(name=f"{pod.name}-{number}", uid=uid))
        if node:
            placed_count += 1
            ledger.add(pod, node, share.reserved(uid))
    # The last pods bring the load to a few thousandths of a percent below the full one.
    ledger.measure_below(LOAD * capacity + 1)
    return Run(policy, seed, *ledger.measured(), len(arriving), placed_count)


def _cluster(
    policy: str, seed: int, nodes: list[TraceNode], typical: tuple[TypicalPod, ...], ties: str
) -> LoadedCluster:
    config = configuration(policy, typical, ties=ties, seed=seed)
    with TemporaryDirectory() as folder:
        path = write_configuration(config, Path(folder) / "config.yaml")
        return load_cluster(*(node.manifest() for node in nodes), config=path)


class Ledger:
    """What is left on the nodes, from the placements so far, and what was measured."""

    def __init__(self, nodes: list[TraceNode], typical: tuple[TypicalPod, ...]) -> None:
        self._capacity = capacity_milli(nodes)
        self._rows = {node.name: row for row, node in enumerate(nodes)}
        self._cpu: IntArray = np.array([node.cpu_milli for node in nodes], np.int64)
        counts = np.array([node.gpu_count for node in nodes])
        self._gpus: IntArray = np.where(np.arange(GPUS_MAX)[:, None] < counts, WHOLE, 0)
        self._fragmentation = Fragmentation(typical)
        self._access = self._fragmentation.access([node.model for node in nodes])
        self._allocated: list[float] = []
        self._fragmented: list[float] = []

    def add(self, pod: TracePod, node: str, gpus: tuple[int, ...]) -> None:
        row = self._rows[node]
        if len(gpus) != pod.gpu_count or len(set(gpus)) != len(gpus):
            raise AssertionError(f"{pod.name} requests {pod.gpu_count} GPUs and got {gpus}")
        self._cpu[row] -= pod.cpu_milli
        for gpu in gpus:
            self._gpus[gpu, row] -= pod.gpu_milli
        if self._cpu[row] < 0 or self._gpus[:, row].min() < 0:
            raise AssertionError(f"{pod.name} got what {node} does not have: {self._gpus[:, row]}")

    def measure_below(self, requested_milli: float) -> None:
        """Measure at each percent of load that is below this one and was not measured before."""
        while len(self._allocated) * self._capacity < requested_milli * PERCENT:
            state = State(self._cpu, self._gpus, self._access)
            fragmented = float(self._fragmentation.of_nodes(state).sum())
            idle = int(self._gpus.sum())
            self._allocated.append(PERCENT * (self._capacity - idle) / self._capacity)
            self._fragmented.append(PERCENT * fragmented / self._capacity)

    def measured(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        return np.array(self._allocated), np.array(self._fragmented)
