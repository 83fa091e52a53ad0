"""Spreads pods evenly over topology domains (spec 06 §6.3)."""

from typing import ClassVar, Final

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import PreFilterResult
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.plugins.pod_topology_spread.constraints import HARD, SOFT, Constraints
from kubestow.plugins.pod_topology_spread.filtering import STATUSES, FilterState, filter_state
from kubestow.plugins.pod_topology_spread.hints import Hints
from kubestow.plugins.pod_topology_spread.scoring import (
    ScoreState,
    normalised,
    raw_scores,
    score_state,
)

_PRE_FILTER: Final = "PreFilterPodTopologySpread"
_PRE_SCORE: Final = "PreScorePodTopologySpread"


class PodTopologySpread:
    name: ClassVar[str] = "PodTopologySpread"
    args_type: ClassVar[type[PodTopologySpreadArgs]] = PodTopologySpreadArgs
    # An older version has other constraints.
    constraints_type: ClassVar[type[Constraints]] = Constraints

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        gates = handle.feature_gates
        self._comparison_operators = gates.enabled("TaintTolerationComparisonOperators")
        self._constraints = self.constraints_type(
            args,
            handle.objects,
            merges_label_keys=gates.enabled("MatchLabelKeysInPodTopologySpread"),
        )
        self._hints = Hints(self._constraints)
        self.reuse = Reuse(
            filter=Reads.PODS,
            score=Reads.PODS,
            pod=PodReads.SPEC,
            concerns=self._constraints.are_any_for,
        )

    def events(self) -> Registrations:
        return [
            on(
                Resource.POD,
                Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE,
                self._hints.for_pod,
            ),
            on(
                Resource.NODE,
                Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
                self._hints.for_node,
            ),
        ]

    # --- filtering ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        try:
            constraints = self._constraints.of(pod.pod, HARD)
        except PluginError as error:
            raise PluginError(f"get constraints from pod: {error}") from error
        if not constraints:
            return Status.skip()
        state.write(
            _PRE_FILTER,
            filter_state(
                pod,
                constraints,
                TopologyCounts.at(nodes.snapshot),
                comparison_operators=self._comparison_operators,
            ),
        )
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> None:
        _filter_state(state).add(added, row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> None:
        _filter_state(state).add(removed, row, -1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return _filter_state(state).codes(nodes)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return STATUSES[code]

    # --- scoring ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if len(nodes.snapshot) == 0:
            return Status.skip()
        try:
            constraints = self._constraints.of(pod.pod, SOFT)
        except PluginError as error:
            raise PluginError(f"calculating preScoreState: {error}") from error
        if not constraints:
            return Status.skip()
        has_own = bool(pod.pod.spec.topology_spread_constraints)
        state.write(
            _PRE_SCORE,
            score_state(
                pod,
                constraints,
                nodes,
                TopologyCounts.at(nodes.snapshot),
                # Only the built-in defaults accept nodes that lack a key.
                requires_all_keys=has_own or not self._constraints.is_system_defaulted,
                comparison_operators=self._comparison_operators,
            ),
        )
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return raw_scores(_score_state(state), nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return normalised(scores, _score_state(state).ignored)


def _filter_state(state: CycleState) -> FilterState:
    try:
        return state.read(_PRE_FILTER)
    except PluginError as error:
        raise PluginError(f'reading "{_PRE_FILTER}" from cycleState: {error}') from error


def _score_state(state: CycleState) -> ScoreState:
    try:
        return state.read(_PRE_SCORE)
    except PluginError as error:
        raise PluginError(f'error reading "{_PRE_SCORE}" from cycleState: {error}') from error
