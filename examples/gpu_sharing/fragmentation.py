"""How much of the idle GPUs the usual pods cannot use: the measure of the FGD paper.

The usual ("typical") pods are the most frequent requests of a workload, with their frequencies. For
one of them the idle GPUs of a node are unusable as a whole if it does not fit there, or requests no
GPU; otherwise those GPUs are that have less left than it requests of each. The fragmentation of a
node is the mean over the typical pods.

All sums are of integers (a frequency is a count of pods); one division at the end makes thousandths
of a GPU of them. So equal states have equal scores, in whichever order the sums are taken.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from gpu_sharing.free_gpus import free_cpu, free_gpus
from gpu_sharing.requests import GPU_MODEL, WHOLE, GpuRequest
from kubestow.plugin import Depends, IntArray, Nodes

# The most frequent requests that make up this share of a workload are its typical pods.
TYPICAL_PERCENT: Final = 95


class TypicalPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One request, as in the arguments of the plugin FGD; `pods` is how many have it."""

    cpu_milli: int
    gpu_count: int = 0
    gpu_milli: int = 0
    gpu_models: tuple[str, ...] = ()  # empty: any
    pods: int = 1


def typical_pods(requests: Iterable[TypicalPod]) -> tuple[TypicalPod, ...]:
    """The most frequent of these requests that together are TYPICAL_PERCENT of all."""
    counts: Counter[TypicalPod] = Counter()
    for request in requests:
        counts[msgspec.structs.replace(request, pods=1)] += request.pods

    def frequency(item: tuple[TypicalPod, int]) -> tuple[int, int, int, int, tuple[str, ...]]:
        pod, count = item
        return count, pod.cpu_milli, pod.gpu_milli, pod.gpu_count, pod.gpu_models

    chosen: list[TypicalPod] = []
    covered, needed = 0, TYPICAL_PERCENT * counts.total() / 100
    for request, count in sorted(counts.items(), key=frequency, reverse=True):
        if covered >= needed:
            break
        chosen.append(msgspec.structs.replace(request, pods=count))
        covered += count
    return tuple(chosen)


class Group(NamedTuple):
    """Typical pods that differ in their CPU only."""

    level: int  # index of its `gpu_milli` among the levels
    count: int
    models: frozenset[str]


class State(NamedTuple):
    """Nodes in numbers: `cpu` int64[node], `gpus` int64[GPU, node], `access` bool[group, node]."""

    cpu: IntArray
    gpus: IntArray
    access: npt.NDArray[np.bool_]


class Fragmentation:
    """The measure for one list of typical pods; compared by identity, as keys of kept arrays are.

    levels    int64[level], the distinct `gpu_milli` of the typical pods
    groups    the typical pods with GPUs; `_weights[i, group]` is how many pods of the group fit a
              CPU of at least `_cpus[i - 1]` and less than `_cpus[i]`
    """

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self.pod_count = sum(pod.pods for pod in typical)
        by_group: dict[Group, Counter[int]] = {}
        with_gpus = [pod for pod in typical if pod.gpu_count]
        levels = sorted({pod.gpu_milli for pod in with_gpus})
        for pod in with_gpus:
            level = levels.index(pod.gpu_milli)
            group = Group(level, pod.gpu_count, frozenset(pod.gpu_models))
            by_group.setdefault(group, Counter())[pod.cpu_milli] += pod.pods
        self.groups: Final = tuple(by_group)
        self._levels = np.array(levels, np.int64)
        self._cpus = np.array(sorted({pod.cpu_milli for pod in with_gpus}), np.int64)
        self._weights = _weights(self._cpus.tolist(), by_group)
        self._level_of = np.array([group.level for group in self.groups], np.intp)
        self._count_of = np.array([group.count for group in self.groups], np.int64)

    # --- of nodes ---

    def of_nodes(self, state: State) -> npt.NDArray[np.float64]:
        """float64[node]: the thousandths of GPUs that are idle and cannot be used."""
        return self.amount(state.gpus.sum(axis=0) * self.pod_count - self.usable(state))

    def state(self, nodes: Nodes) -> State:
        access = nodes.tracked((self, "access"), Depends.NODE, self._node_access)
        return State(free_cpu(nodes), free_gpus(nodes), access)

    def amount(self, summed: IntArray) -> npt.NDArray[np.float64]:
        """Thousandths of GPUs, of a sum over all pods that the typical ones stand for."""
        return summed / self.pod_count

    def usable(self, state: State) -> IntArray:
        """int64[node]: the thousandths that can be used, summed over all pods."""
        enough = state.gpus >= self._levels[:, None, None]
        return self._usable(
            self._fitting(state.cpu, state.access),
            (state.gpus * enough).sum(axis=1),
            np.count_nonzero(enough, axis=1),
        )

    # --- after a placement ---

    def descent(self, state: State, request: GpuRequest, cpu_milli: int) -> IntArray:
        """int64[choice, node]: by how much a pod lowers the sum of each node that it is placed on.

        A choice is each GPU for a pod that shares one (meaningless where it does not fit), and
        otherwise there is one: whole GPUs are all alike.
        """
        enough = state.gpus >= self._levels[:, None, None]
        left, number = (state.gpus * enough).sum(axis=1), np.count_nonzero(enough, axis=1)
        before = self._usable(self._fitting(state.cpu, state.access), left, number)
        fitting = self._fitting(state.cpu - cpu_milli, state.access)
        taken = request.total_milli * self.pod_count
        if not request.is_share:
            after = self._usable(fitting, left - request.count * WHOLE, number - request.count)
            return (taken - before + after)[None, :]
        gpus = state.gpus - request.milli
        still = gpus >= self._levels[:, None, None]
        after = self._usable(
            fitting[:, None, :],
            left[:, None, :] - state.gpus * enough + gpus * still,
            number[:, None, :] - enough.astype(np.int64) + still,
        )
        return taken - before + after

    def _usable(self, fitting: IntArray, left: IntArray, number: IntArray) -> IntArray:
        """Sum over the groups.

        fitting  int64[group, …], how many pods of the group fit the CPU and the model
        left     int64[level, …], what is left on GPUs with at least the level left
        number   int64[level, …], how many such GPUs there are
        """
        counts = self._count_of.reshape(-1, *(1,) * (left.ndim - 1))
        has_enough = number[self._level_of] >= counts
        return (fitting * has_enough * left[self._level_of]).sum(axis=0)

    def _fitting(self, cpu: IntArray, access: npt.NDArray[np.bool_]) -> IntArray:
        return self._weights[:, np.searchsorted(self._cpus, cpu, side="right")] * access

    # --- models ---

    def access(self, models: Sequence[str | None]) -> npt.NDArray[np.bool_]:
        """bool[group, model]: whether the pods of a group may use GPUs of a model."""
        table = [
            [not group.models or model in group.models for model in models] for group in self.groups
        ]
        return np.array(table, bool).reshape(len(self.groups), len(models))

    def _node_access(self, nodes: Nodes) -> npt.NDArray[np.bool_]:
        return self.access(nodes.label_values(GPU_MODEL))[:, nodes.label_ids(GPU_MODEL)]


def _weights(cpus: Sequence[int], by_group: Mapping[Group, Mapping[int, int]]) -> IntArray:
    table = np.zeros((len(by_group), len(cpus) + 1), np.int64)
    for row, pods_by_cpu in enumerate(by_group.values()):
        for column, cpu in enumerate(cpus, start=1):
            table[row, column] = table[row, column - 1] + pods_by_cpu.get(cpu, 0)
    return table
