"""FGD, fragmentation gradient descent: the node, and the GPU, whose fragmentation grows least."""

from typing import ClassVar

import numpy as np

from gpu_sharing.fragmentation import Fragmentation, TypicalPod
from gpu_sharing.requests import WHOLE, GpuRequest, cpu_milli, gpu_request
from kubestow.plugin import (
    CycleState,
    Depends,
    Handle,
    IntArray,
    Nodes,
    PluginArgs,
    PluginError,
    PodInfo,
)


class FGDArgs(PluginArgs, frozen=True, kw_only=True):
    typical_pods: tuple[TypicalPod, ...] = ()


class FGD:
    name: ClassVar[str] = "FGD"
    args_type: ClassVar[type[FGDArgs]] = FGDArgs

    def __init__(self, args: FGDArgs, handle: Handle) -> None:
        if not args.typical_pods:
            raise PluginError(
                "typicalPods is empty: name the usual requests, as `python -m gpu_sharing.config` "
                "counts them in a trace"
            )
        self._fragmentation = Fragmentation(args.typical_pods)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        request, cpu = gpu_request(pod.pod), cpu_milli(pod)

        def best_scores(changed: Nodes) -> IntArray:
            # Where the pod does not fit there is nothing to compare: 0 as a score needs.
            return np.maximum(self._scores(request, cpu, changed).max(axis=0), 0)

        # Kept for each request, and computed again for nodes whose pods changed.
        key = (self._fragmentation, request.count, request.milli, cpu)
        return nodes.tracked(key, Depends.PODS, best_scores)

    def choose_gpu(self, pod: PodInfo, request: GpuRequest, node: Nodes) -> int:
        return int(self._scores(request, cpu_milli(pod), node)[:, 0].argmax())

    def _scores(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        """int64[choice, node]: of each GPU for a share, otherwise of the node; -1 if it is full."""
        fragmentation = self._fragmentation
        state = fragmentation.state(nodes)
        summed = fragmentation.descent(state, request, cpu)
        descent = fragmentation.amount(summed) / WHOLE
        scores = (100 * (1 / (1 + np.exp(-descent)))).astype(np.int64)
        if request.is_share:
            return np.where(state.gpus >= request.milli, scores, -1)
        return scores
