"""NodeResourcesFit, the scores by load and BalancedAllocation of v1.20 (spec 05 §19)."""

from collections.abc import Collection
from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import score_request
from kubestow.api.resources import Resources
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import (
    NodeResourcesFitArgs,
    PluginArgs,
    ResourceSpec,
    UtilizationShapePoint,
)
from kubestow.errors import ConfigError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE, PreFilterResult
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared.curve import MAX_UTILIZATION, UtilizationCurve
from kubestow.plugins._shared.scoring_resources import Loads, ScoringResources
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import (
    FitRequest,
    shortage_status,
    shortages,
)

_PRE_FILTER: Final = "PreFilterNodeResourcesFit"


class NodeResourcesFit120(NodeResourcesFit):
    """Compares every basic resource for a pod that requests any, also those it does not request: an
    overcommitted node rejects it. Evicting pods is tried for any shortage."""

    too_many_pods: ClassVar[str] = "Too many pods"

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.reuse = Reuse(filter=Reads.NUMBERS, pod=PodReads.AMOUNTS)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        ignored = self._ignored_resources, self._ignored_groups
        state.write(_PRE_FILTER, fit_request_120(self._request(pod), *ignored))
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return shortages(self.fit_request(state), nodes)

    def filter_status(self, state: CycleState, code: int) -> Status:
        reasons = shortage_status(self.fit_request(state), code).reasons
        named = (self.too_many_pods if reason == "Too many pods" else reason for reason in reasons)
        return Status.unschedulable(*named)


class _LoadScore:
    """A score of what would be used of cpu and memory; pods without requests count with the
    defaults, and a resource that the node lacks scores 0."""

    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(score=Reads.NUMBERS, pod=PodReads.AMOUNTS)

    def __init__(self, args: object, handle: Handle) -> None:
        self._resources = ScoringResources((), use_non_zero=True)

    def _loads(self, pod: PodInfo, nodes: Nodes) -> Loads:
        return self._resources.loads(nodes, self._resources.request_of(pod, score_request))


class NodeResourcesLeastAllocated(_LoadScore):
    name: ClassVar[str] = "NodeResourcesLeastAllocated"

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        loads = self._loads(pod, nodes)
        free = np.maximum(loads.allocatable - loads.used - loads.request, 0)
        return mean(free, loads)


class NodeResourcesMostAllocated(_LoadScore):
    name: ClassVar[str] = "NodeResourcesMostAllocated"

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        loads = self._loads(pod, nodes)
        return mean(np.minimum(loads.used + loads.request, loads.allocatable), loads)


class BalancedAllocation120(_LoadScore):
    """100 where the pod leaves equal shares of cpu and memory used; 0 where one is used up."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        loads = self._loads(pod, nodes)
        shares = np.ones(loads.allocatable.shape)
        taken = loads.used + loads.request
        np.divide(taken, loads.allocatable, out=shares, where=loads.allocatable != 0)
        scores = ((1 - np.abs(shares[0] - shares[1])) * float(MAX_NODE_SCORE)).astype(np.int64)
        return np.where((shares >= 1).any(axis=0), 0, scores)


class RequestedToCapacityRatioArgs(PluginArgs, frozen=True, kw_only=True):
    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class RequestedToCapacityRatio:
    """Reads the score of each resource off a curve; its utilization is rounded up. Only a Policy
    enables it (spec 05 §19, 09 §13.4)."""

    name: ClassVar[str] = "RequestedToCapacityRatio"
    args_type: ClassVar[type[RequestedToCapacityRatioArgs]] = RequestedToCapacityRatioArgs
    reuse: ClassVar[Reuse] = Reuse(score=Reads.NUMBERS, pod=PodReads.AMOUNTS)

    def __init__(self, args: RequestedToCapacityRatioArgs, handle: Handle) -> None:
        if not args.shape:
            raise ConfigError("at least one point must be specified")
        self._curve = UtilizationCurve.from_args(args.shape)
        self._resources = ScoringResources(args.resources, use_non_zero=True)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        loads = self._resources.loads(nodes, self._resources.request_of(pod, score_request))
        free = np.maximum(loads.allocatable - loads.used - loads.request, 0)
        utilization = MAX_UTILIZATION - free * MAX_UTILIZATION // np.maximum(loads.allocatable, 1)
        scores = self._curve.scores(utilization)
        weight = (scores > 0) * loads.weight
        mean = (scores * weight).sum(axis=0) / np.maximum(weight.sum(axis=0), 1)
        return np.floor(mean + 0.5).astype(np.int64)


def fit_request_120(
    resources: Resources,
    ignored_resources: Collection[str] = (),
    ignored_groups: Collection[str] = (),
) -> FitRequest:
    """What Filter compares: today's request, with zeros unless the pod requests nothing at all."""
    today = FitRequest.of(
        resources,
        device_classes=None,
        ignored_resources=ignored_resources,
        ignored_groups=ignored_groups,
    )
    if not any(resources.scalar.values()) and len(today.demands) == 0:
        return today
    amounts = [resources.milli_cpu, resources.memory, resources.ephemeral_storage]
    return FitRequest(amounts, today.scalars)


def mean(part: IntArray, loads: Loads) -> IntArray:
    """int64[node]: the mean percentage of cpu and memory; one the node lacks counts as 0."""
    percent = part * MAX_NODE_SCORE // np.maximum(loads.allocatable, 1)
    percent *= loads.allocatable > 0
    return percent.sum(axis=0) // len(percent)
