"""Spreads pods evenly over topology domains (spec 06 §6.3)."""

from collections.abc import Hashable
from typing import ClassVar, Final

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, NarrowArray
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments, PreFilterResult
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.plugins.pod_topology_spread.constraints import HARD, SOFT, Constraints
from kubestow.plugins.pod_topology_spread.filtering import STATUSES, FilterState, HardConstraints
from kubestow.plugins.pod_topology_spread.hints import Hints
from kubestow.plugins.pod_topology_spread.normalising import NEAREST, Rounding, normalised
from kubestow.plugins.pod_topology_spread.scoring import ScoreState, SoftConstraints, raw_scores

_PRE_FILTER: Final = "PreFilterPodTopologySpread"
_PRE_SCORE: Final = "PreScorePodTopologySpread"
_KIND: Final = "PodTopologySpread/kind"

# For how many kinds of pods the constraints are kept; beyond it, all are dropped.
KINDS_MAX: Final = 1024


class PodTopologySpread:
    name: ClassVar[str] = "PodTopologySpread"
    args_type: ClassVar[type[PodTopologySpreadArgs]] = PodTopologySpreadArgs
    # An older version has other constraints, and rounds otherwise.
    constraints_type: ClassVar[type[Constraints]] = Constraints
    rounding: ClassVar[Rounding] = NEAREST
    # A later version has other hints.
    hints_type: ClassVar[type[Hints]] = Hints

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        gates = handle.feature_gates
        self._comparison_operators = gates.enabled("TaintTolerationComparisonOperators")
        self.constraints = self.constraints_type(
            args,
            handle.objects,
            merges_label_keys=gates.enabled("MatchLabelKeysInPodTopologySpread"),
        )
        self._hints = self.hints_type(self.constraints)
        self.signs_none = self.constraints.has_defaults
        self._kinds: dict[Hashable, _Kind] = {}
        self.reuse = Reuse(
            filter=Reads.PODS,
            score=Reads.PODS,
            pod=PodReads.CLUSTER,
            basis=self.constraints.concern,
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
        hard = self._hard(pod, self._kind(state, pod))
        if not hard.count:
            return Status.skip()
        state.write(_PRE_FILTER, hard.state(pod, TopologyCounts.at(nodes.snapshot), state.timer))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> None:
        _filter_state(state, pod).add(added, row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> None:
        _filter_state(state, pod).add(removed, row, -1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> NarrowArray | None:
        return _filter_state(state, pod).codes(nodes)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        is_refused = self.signs_none or pod.pod.spec.topology_spread_constraints
        return None if is_refused else {}

    def filter_status(self, state: CycleState, code: int) -> Status:
        return STATUSES[code]

    def filter_rule(self, state: CycleState, pod: PodInfo) -> FilterState:
        return _filter_state(state, pod)

    # --- scoring ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if len(nodes.snapshot) == 0:
            return Status.skip()
        soft = self._soft(pod, self._kind(state, pod))
        if not soft.count:
            return Status.skip()
        state.write(_PRE_SCORE, soft.state(nodes, TopologyCounts.at(nodes.snapshot), state.timer))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return raw_scores(_score_state(state), nodes, self.rounding)

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return normalised(scores, _score_state(state).ignored)

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int | None:
        soft = self._soft(pod, self._kind(state, pod))
        if not soft.count:
            return None
        counts = TopologyCounts.at(nodes.snapshot)
        return soft.final_scores(nodes, counts, self.rounding, state.timer)

    # --- what pods share ---

    def _kind(self, state: CycleState, pod: PodInfo) -> "_Kind":
        """What is kept for the pod's constraints, looked up once in an attempt."""
        kind = state.get(_KIND)
        if kind is None:
            key = self.constraints.kind_of(pod)
            kind = _Kind() if key is None else self._kinds.get(key)
            if kind is None:
                if len(self._kinds) >= KINDS_MAX:
                    self._kinds.clear()
                kind = self._kinds[key] = _Kind()
            state.write(_KIND, kind)
        return kind

    def _hard(self, pod: PodInfo, kind: "_Kind") -> HardConstraints:
        if kind.hard is None:
            try:
                constraints = self.constraints.of(pod.pod, HARD)
            except PluginError as error:
                raise PluginError(f"get constraints from pod: {error}") from error
            kind.hard = HardConstraints(
                pod, constraints, comparison_operators=self._comparison_operators
            )
        return kind.hard

    def _soft(self, pod: PodInfo, kind: "_Kind") -> SoftConstraints:
        if kind.soft is None:
            try:
                constraints = self.constraints.of(pod.pod, SOFT)
            except PluginError as error:
                raise PluginError(f"calculating preScoreState: {error}") from error
            has_own = bool(pod.pod.spec.topology_spread_constraints)
            kind.soft = SoftConstraints(
                pod,
                constraints,
                # Only the built-in defaults accept nodes that lack a key.
                requires_all_keys=has_own or not self.constraints.is_system_defaulted,
                comparison_operators=self._comparison_operators,
            )
        return kind.soft


class _Kind:
    """The constraints of pods that are equal in them, as far as they were needed."""

    __slots__ = ("hard", "soft")

    def __init__(self) -> None:
        self.hard: HardConstraints | None = None
        self.soft: SoftConstraints | None = None


def _filter_state(state: CycleState, pod: PodInfo) -> FilterState:
    try:
        return state.read(_PRE_FILTER)
    except PluginError as error:
        raise PluginError(f'reading "{_PRE_FILTER}" from cycleState: {error}') from error


def _score_state(state: CycleState) -> ScoreState:
    try:
        return state.read(_PRE_SCORE)
    except PluginError as error:
        raise PluginError(f'error reading "{_PRE_SCORE}" from cycleState: {error}') from error
