"""The policies of the FGD paper as Score plugins; a profile has exactly one of them.

All work on the free CPU and the free GPUs of the nodes as arrays, and answer with integers from
0 to 100. FGD is in `fgd.py`.
"""

from typing import ClassVar, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from gpu_sharing.free_gpus import class_bit, free_cpu, free_gpus, gpu_counts, hosted_classes
from gpu_sharing.requests import GPUS_MAX, WHOLE, GpuRequest, cpu_milli, gpu_request
from kubestow.plugin import CycleState, Depends, Handle, IntArray, Nodes, PluginArgs, PodInfo

# The largest node of the trace, by which free resources and requests are divided.
CPU_MILLI_LARGEST: Final = 128_000
GPU_MILLI_LARGEST: Final = 8_000


class RandomArgs(PluginArgs, frozen=True, kw_only=True):
    seed: int = 0


class Random:
    """One of the feasible nodes at random, and one of its GPUs.

    Each pod draws a number for each node, and the largest wins. Numbers are made of the seed, the
    pod's UID and the node's name: the same question has the same answer.
    """

    name: ClassVar[str] = "Random"
    args_type: ClassVar[type[RandomArgs]] = RandomArgs

    def __init__(self, args: RandomArgs, handle: Handle) -> None:
        self._seed = args.seed

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        names = nodes.tracked("gpu_sharing/names", Depends.NODE, _name_numbers)
        return self._draw(pod, names)

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        chosen = np.zeros(len(scores), np.int64)
        chosen[scores.argmax()] = 100
        return chosen

    def choose_gpu(self, pod: PodInfo, request: GpuRequest, node: Nodes) -> int:
        drawn = self._draw(pod, np.arange(GPUS_MAX, dtype=np.uint64))
        return int(np.where(free_gpus(node)[:, 0] >= request.milli, drawn, -1).argmax())

    def _draw(self, pod: PodInfo, numbers: npt.NDArray[np.uint64]) -> IntArray:
        """int64, 0 or more: a number for each of these."""
        start = np.uint64(crc32(f"{self._seed}/{pod.uid}".encode()) << 32)
        return (_mixed(start + numbers) >> np.uint64(1)).astype(np.int64)


class DotProd:
    """Nodes whose free resources point in another direction than the request go first."""

    name: ClassVar[str] = "DotProd"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        cpu, gpu = _free(nodes)
        product = cpu / CPU_MILLI_LARGEST * (cpu_milli(pod) / CPU_MILLI_LARGEST)
        product += gpu / GPU_MILLI_LARGEST * (gpu_request(pod.pod).total_milli / GPU_MILLI_LARGEST)
        return (100 * (1 - product / 2)).astype(np.int64)


class BestFit:
    """Nodes with the least left after the placement go first."""

    name: ClassVar[str] = "BestFit"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        cpu, gpu = _free(nodes)
        left = (cpu - cpu_milli(pod)) / CPU_MILLI_LARGEST * 0.5
        left += (gpu - gpu_request(pod.pod).total_milli) / GPU_MILLI_LARGEST * 0.5
        return ((1 - left) * 100).astype(np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        lowest, highest = scores.min(), scores.max()
        return (scores - lowest) * 100 // max(highest - lowest, 1)


class GpuPacking:
    """GPUs in use go first, then idle GPUs of nodes in use, then nodes that are not in use."""

    name: ClassVar[str] = "GpuPacking"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        request = gpu_request(pod.pod)
        if not request.count:
            return 0
        free, counts = free_gpus(nodes), gpu_counts(nodes)
        idle = np.count_nonzero(free == WHOLE, axis=0)
        untouched = np.maximum(33 - idle, idle)
        with_idle = np.maximum(50 - request.count, 33)
        if not request.is_share:
            return np.where(idle == counts, untouched, with_idle)
        # The GPU that a share would get: of those that it fits on, the one with the least left.
        left = np.where(free >= request.milli, free, WHOLE).min(axis=0)
        in_use = np.maximum(100 - left * 100 // WHOLE // 10, 50)
        return np.where(idle == counts, untouched, np.where(left == WHOLE, with_idle, in_use))


class GpuClustering:
    """Pods with the same number of GPUs go to the same nodes."""

    name: ClassVar[str] = "GpuClustering"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        own = class_bit(gpu_request(pod.pod))
        if not own:
            return 0
        hosted = hosted_classes(nodes)
        base = np.where(hosted == own, 75, np.where(hosted & own, 50, np.where(hosted, 0, 25)))
        in_use = GPU_MILLI_LARGEST - free_gpus(nodes).sum(axis=0)
        return base + 25 * in_use // GPU_MILLI_LARGEST


def _free(nodes: Nodes) -> tuple[IntArray, IntArray]:
    """int64[node] each: the free CPU, and what is left of all GPUs together."""
    return free_cpu(nodes), free_gpus(nodes).sum(axis=0)


def _name_numbers(nodes: Nodes) -> npt.NDArray[np.uint64]:
    return np.array([crc32(name.encode()) for name in nodes.names], np.uint64)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64: numbers that look random, from numbers that do not."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
