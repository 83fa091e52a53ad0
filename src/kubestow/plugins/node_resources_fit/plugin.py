"""NodeResourcesFit as the framework calls it (spec 05 §8)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import filter_request, score_request
from kubestow.api.resources import Resources
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Registrations
from kubestow.framework.group_cycle import Assignments, GroupCycle
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFilterResult
from kubestow.framework.reuse import NOTHING_KNOWN, Needs, Reads, Rule
from kubestow.framework.status import Status
from kubestow.index.devices import DeviceCounts, KnownDevices
from kubestow.index.least_free import LeastFree
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins._shared import bases
from kubestow.plugins._shared.basic_loads import BasicLoads
from kubestow.plugins._shared.scoring_resources import Loads, ScoredRequest, ScoringResources
from kubestow.plugins.node_resources_fit.hints import FitHints
from kubestow.plugins.node_resources_fit.shortage import FitRequest, shortage_status, shortages
from kubestow.plugins.node_resources_fit.strategies import most_allocated, strategy_of

_PRE_FILTER: Final = "PreFilterNodeResourcesFit"
_PRE_SCORE: Final = "PreScoreNodeResourcesFit"


class NodeResourcesFit:
    name: ClassVar[str] = "NodeResourcesFit"
    args_type: ClassVar[type[NodeResourcesFitArgs]] = NodeResourcesFitArgs
    # A later version has other hints.
    hints_type: ClassVar[type[FitHints]] = FitHints

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        gates = handle.feature_gates
        self._use_pod_level = gates.enabled("PodLevelResources")
        self._ignored_resources = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        serves_devices = gates.enabled("DRAExtendedResource")
        known = KnownDevices.of(handle.objects, gates) if serves_devices else None
        self._device_classes = None if known is None else known.class_map
        self._hints = self.hints_type(gates, self._device_classes)
        self.strategy = strategy_of(args.scoring_strategy)
        self.reuse = bases.unless_served_by_devices(
            self._device_classes, Reads.NUMBERS, Reads.NUMBERS
        )
        self._resources = ScoringResources(
            args.scoring_strategy.resources,
            use_non_zero=True,
            devices=None if known is None else DeviceCounts(known),
        )
        # Upstream counts no devices for placements.
        self._placement_resources = ScoringResources(
            args.scoring_strategy.resources, use_non_zero=True
        )
        self._is_basic = self.strategy.kind == "LeastAllocated" and self._resources.are_basic
        self._snapshot = handle.snapshot
        self._least_free = handle.snapshot.derived(LeastFree)

    def events(self) -> Registrations:
        return self._hints.registrations()

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        state.write(_PRE_FILTER, self._fit_request(pod))
        return None

    def _fit_request(self, pod: PodInfo) -> FitRequest:
        return FitRequest.of(
            self._request(pod),
            device_classes=self._device_classes,
            ignored_resources=self._ignored_resources,
            ignored_groups=self._ignored_groups,
        )

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return shortages(self.fit_request(state), nodes)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return bases.signed_request(pod, self._device_classes, use_pod_level=self._use_pod_level)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return shortage_status(self.fit_request(state), code)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        state.write(_PRE_SCORE, self._scored_request(pod))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        if self._is_basic:
            cpu, memory = self._resources.amounts_of(pod, score_request)
            loads = BasicLoads.of(nodes, cpu, memory)
            if loads is not None:
                return loads.least_allocated(nodes, cpu, memory)
        request: ScoredRequest = state.get(_PRE_SCORE) or self._scored_request(pod)
        return self.strategy.score(self._resources.loads(nodes, request))

    def score_placement(self, cycle: GroupCycle, assignments: Assignments) -> int:
        nodes = nodes_of(self._snapshot, assignments.placement.rows)
        return placement_score(self._placement_resources, nodes, assignments)

    def fit_request(self, state: CycleState) -> FitRequest:
        """What PreFilter stored."""
        request: FitRequest | None = state.get(_PRE_FILTER)
        if request is None:
            raise PluginError(f'error reading "{_PRE_FILTER}" from cycleState: not found')
        return request

    def scored_request(self, state: CycleState) -> ScoredRequest:
        """What PreScore stored."""
        return state.read(_PRE_SCORE)

    def loads_of(self, pod: PodInfo, nodes: Nodes) -> tuple[tuple[str, ...], Loads]:
        """The resources that a score is made of, and how much of each nodes have; for
        explanations."""
        request = self._scored_request(pod)
        return request.names, self._resources.loads(nodes, request)

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return self.score(state, pod, nodes)

    def filter_rule(self, state: CycleState, pod: PodInfo) -> Rule:
        request: FitRequest | None = state.get(_PRE_FILTER)
        return NOTHING_KNOWN if request is None else FitRule(request, self._least_free)

    def _request(self, pod: PodInfo) -> Resources:
        shape = pod.shape
        if shape.is_plain:
            return shape.accounted.requested
        return filter_request(pod.pod, use_pod_level=self._use_pod_level)

    def _scored_request(self, pod: PodInfo) -> ScoredRequest:
        # Spec 05 §8.5: scoring ignores pod-level requests, whatever the gate.
        return self._resources.request_of(pod, score_request)


class FitRule(Rule):
    """Where no node is full, most pods fit on all of them."""

    __slots__ = ("_least_free", "_request")

    def __init__(self, request: FitRequest, least_free: LeastFree) -> None:
        self._request = request
        self._least_free = least_free

    def passes_all(self) -> bool:
        request = self._request
        return not request.scalars and self._least_free.covers(request.amounts)

    def needs(self) -> Needs | None:
        scalars = self._request.scalars
        # What devices may serve is not what a node has left.
        if any(demand.by_devices for demand in scalars):
            return None
        return Needs(self._request.amounts, [(demand.name, demand.amount) for demand in scalars])


def placement_score(resources: ScoringResources, nodes: Nodes, assignments: Assignments) -> int:
    """How full a placement would be with the members of a group on it (spec 11 §8.4): the share of
    all nodes together that would be used, whatever the configured strategy."""
    amounts = np.zeros(len(resources), np.int64)
    for pod in assignments.pods:
        amounts += resources.amounts(score_request(pod.pod))
    request = resources.counting(amounts.tolist())
    loads = resources.loads(nodes, request)
    # What is used of a resource counts only on nodes that have it.
    used = np.where(loads.allocatable > 0, loads.used, 0)
    total = Loads(
        loads.allocatable.sum(axis=1, keepdims=True),
        used.sum(axis=1, keepdims=True),
        loads.request,
        loads.weight,
    )
    return int(most_allocated(total)[0])
