"""What is left of each GPU: arrays over the nodes, made from the pods on them.

The source are the pods: the annotation of a placed pod names its GPUs, so a scheduler that is
started again finds what the one before has placed. Between Reserve and the moment in which the
annotation is visible, `GpuChoices` has it. The arrays are kept with the snapshot and computed again
for nodes whose pods changed (`nodes.tracked`).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from gpu_sharing.requests import (
    GPU_COUNT,
    GPU_MODEL,
    GPUS_MAX,
    WHOLE,
    GpuRequest,
    gpu_indices,
    gpu_request,
)
from kubestow.plugin import Depends, IntArray, Nodes, Pod, PodInfo, Snapshot


class GpuChoices:
    """The GPUs of pods that were reserved and whose annotation cannot be seen yet.

    One for all profiles of a scheduler: `snapshot.derived(GpuChoices)`. It holds pods that are
    being bound, and is emptied by `GpuShare`.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_uid: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def put(self, uid: str, indices: tuple[int, ...]) -> None:
        self._by_uid[uid] = indices

    def drop(self, uid: str) -> None:
        self._by_uid.pop(uid, None)

    def reserved(self, uid: str) -> tuple[int, ...]:
        return self._by_uid.get(uid, ())

    def of(self, pod: Pod) -> tuple[int, ...] | None:
        """The GPUs of a pod; None if neither a choice nor an annotation names them."""
        chosen = self._by_uid.get(pod.metadata.uid)
        return chosen if chosen is not None else gpu_indices(pod) or None


def gpu_counts(nodes: Nodes) -> IntArray:
    """int64[node]: the number of GPUs."""
    return nodes.tracked("gpu_sharing/counts", Depends.NODE, _counts)


def free_gpus(nodes: Nodes) -> IntArray:
    """int64[GPUS_MAX, node]: thousandths left of each GPU; 0 where the node has no such GPU."""
    return nodes.tracked("gpu_sharing/free", Depends.PODS, _free)


def hosted_classes(nodes: Nodes) -> IntArray:
    """int64[node]: the classes of GPU requests on each node, as bits of `class_bit`."""
    return nodes.tracked("gpu_sharing/classes", Depends.PODS, _classes)


def model_allowed(nodes: Nodes, models: frozenset[str]) -> IntArray:
    """bool[node]: whether the node has a GPU of one of the models; all do if there are none."""
    if not models:
        return np.ones(len(nodes), bool)
    values = nodes.label_values(GPU_MODEL)
    return np.array([value in models for value in values])[nodes.label_ids(GPU_MODEL)]


def free_cpu(nodes: Nodes) -> IntArray:
    """int64[node]: thousandths of a core that no pod requests."""
    return nodes.allocatable(0) - nodes.requested(0)


def tightest(free: Sequence[int], request: GpuRequest) -> tuple[int, ...]:
    """The GPUs for a request: of the GPUs that a share fits on the one with the least left, the
    first of equals; whole GPUs from the lowest index on. Empty if it does not fit."""
    fitting = [index for index, left in enumerate(free) if left >= request.milli]
    if len(fitting) < request.count:
        return ()
    if request.is_share:
        return (min(fitting, key=lambda index: free[index]),)
    return tuple(fitting[: request.count])


def class_bit(request: GpuRequest) -> int:
    """Requests are of one class that share a GPU, or request the same number of whole GPUs."""
    if request.count == 0:
        return 0
    return 1 if request.is_share else 1 << request.count


def _counts(nodes: Nodes) -> IntArray:
    # A node that was made before the first pod asked for GPUs may lack the column.
    column = nodes.resource_column(GPU_COUNT)
    if column is None:
        return np.zeros(len(nodes), np.int64)
    return np.minimum(nodes.allocatable(column), GPUS_MAX)


def _free(nodes: Nodes) -> IntArray:
    choices = nodes.snapshot.derived(GpuChoices)
    free = np.zeros((GPUS_MAX, len(nodes)), np.int64)
    counts: list[int] = gpu_counts(nodes).tolist()
    for position, (info, count) in enumerate(zip(nodes.infos(), counts, strict=True)):
        if count:
            free[:count, position] = _left([WHOLE] * count, info.pods, choices)
    return free


def _left(left: list[int], pods: Iterable[PodInfo], choices: GpuChoices) -> list[int]:
    unknown: list[GpuRequest] = []
    for pod in pods:
        request = gpu_request(pod.pod)
        if request.count:
            indices = choices.of(pod.pod)
            if indices is None:
                unknown.append(request)
            else:
                _take(left, indices, request)
    # Placed by a scheduler that names no GPUs, or only assumed to be there, as in preemption.
    for request in unknown:
        _take(left, tightest(left, request), request)
    return left


def _take(left: list[int], indices: tuple[int, ...], request: GpuRequest) -> None:
    for index in indices:
        if index < len(left):
            left[index] = max(left[index] - request.milli, 0)


def _classes(nodes: Nodes) -> IntArray:
    hosted = np.zeros(len(nodes), np.int64)
    for position, info in enumerate(nodes.infos()):
        bits = 0
        for pod in info.pods:
            bits |= class_bit(gpu_request(pod.pod))
        hosted[position] = bits
    return hosted
