"""Places pods by what nodes really use (docs/guides/load-aware.md).

    Filter    leaves out nodes over a threshold; never for pods of DaemonSets or critical pods
    Score     prefers nodes that will use little with the pod on them
    Reserve   counts a placed pod by an estimate, which fades into the measurement

Without a usable measurement of any node the plugin takes no part in an attempt.
"""

from datetime import datetime
from typing import ClassVar, Final

from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, first_condition
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.clock import NANOSECONDS
from kubestow.config.field_errors import raise_if_any
from kubestow.config.load_aware_args import LoadAwareArgs, load_aware_errors
from kubestow.errors import ConfigError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.reuse import Concern, PodReads, Reads, Reuse, RowAnswers, RowCodes, Rule
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins.load_aware.estimates import Estimates
from kubestow.plugins.load_aware.overcommitment import OvercommitmentStrategy
from kubestow.plugins.load_aware.placed import PLACED_MAX
from kubestow.plugins.load_aware.rows import LoadRows
from kubestow.plugins.load_aware.scoring import LeastUsed, LoadStrategy
from kubestow.plugins.load_aware.trimaran import BalancingStrategy, PackingStrategy
from kubestow.usage.measurement import Amounts
from kubestow.usage.store import UsageStore

# Pods of the priority classes system-cluster-critical and system-node-critical have at least this.
CRITICAL_PRIORITY: Final = 2_000_000_000
_ENDED: Final = ("Succeeded", "Failed")
_REASON_START: Final = " in use above "
# Members of an enumeration are slow to look up.
_NOTHING, _SCORE, _BOTH = Concern.NOTHING, Concern.SCORE, Concern.BOTH


class LoadAware:
    name: ClassVar[str] = "LoadAware"
    args_type: ClassVar[type[LoadAwareArgs]] = LoadAwareArgs

    def __init__(self, args: object, handle: Handle) -> None:
        if not isinstance(args, LoadAwareArgs):
            raise ConfigError(f"got args of type {type(args).__name__}, want LoadAwareArgs")
        raise_if_any(load_aware_errors(args))
        self.args = args
        self._handle = handle
        self._snapshot = handle.snapshot
        self._now_ns = handle.clock.now_ns
        usage = UsageStore() if handle.usage is None else handle.usage
        self.load = LoadRows(args, usage, handle.clock)
        self._recent = self.load.placed.recent
        self.estimates = Estimates(args.estimate, usage)
        self._strategy = strategy = _strategy(args, self.load, handle)
        # The others look at all nodes for each pod.
        self._scores_for = strategy.kept if isinstance(strategy, LeastUsed) else _no_scores
        self._answers: RowAnswers | None = None
        # Of the pod of the current attempt: its UID and estimate.
        self._current = "", Amounts(0, 0)
        self._counts_placed = args.estimate.enabled and handle.usage is not None
        self._rule = _LoadRule(self.load)
        self.reuse = Reuse(
            filter=Reads.PODS,
            score=Reads.PODS,
            pod=PodReads.CLUSTER,
            basis=self._concern,
        )
        # Pods that wait because of a threshold, by UID.
        self._waiting: dict[str, Pod] = {}
        if handle.usage is not None:
            handle.objects.pods.subscribe(self._after_pod_change)
            handle.usage.subscribe(self._after_measurements)

    # --- Filter ---

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        load = self.load
        load.refresh(self._snapshot)
        if not load.over_count or is_exempt(pod):
            return None
        return load.codes[nodes.rows]

    def filter_status(self, state: CycleState, code: int) -> Status:
        # Not resolvable: what an eviction changes is measured later.
        return Status.unresolvable(self.load.thresholds[code - 1].reason)

    def events(self) -> Registrations:
        """New measurements are no event of the cluster: see `_after_measurements`."""
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)]

    # --- Score ---

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        self.load.refresh(self._snapshot)
        return None if self.load.usable_count else Status.skip()

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        self.load.refresh(self._snapshot)
        scores = self.final_scores(state, pod, nodes)
        return 0 if scores is None else scores

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if not self.load.usable_count:
            return None
        return self._strategy.of(pod, self._estimate(pod))[nodes.rows]

    def _estimate(self, pod: PodInfo) -> Amounts:
        uid, estimate = self._current
        if uid != pod.uid:
            estimate = self.estimates.of(pod)
            self._current = pod.uid, estimate
        return estimate

    # --- reuse ---

    def _concern(self, pod: PodInfo) -> Concern:
        load, snapshot = self.load, self._snapshot
        # As `refresh`, without a call: mostly nothing is new.
        if (
            load.node_end != snapshot.log.node_end
            or load.names is not snapshot.names
            or self._now_ns() > load.expiry_ns
        ):
            load.refresh(snapshot)
        estimate = self.estimates.of(pod)
        self._current = pod.uid, estimate
        if not load.usable_count:
            return _NOTHING
        # Whether thresholds hold for the pod, and nodes are over one.
        is_filtered = load.over_count > 0 and not is_exempt(pod)
        scores = load.followed
        if scores is None or scores.estimate is not estimate or scores.has_mean:
            scores = self._scores_for(estimate)
        if scores is not None:
            self._answers = scores.with_codes if is_filtered else scores.plain
        return _BOTH if is_filtered else _SCORE

    def row_answers(self, pod: PodInfo) -> RowAnswers | None:
        """Called after `_concern`, for pods that the plugin has something to say about."""
        return self._answers

    def filter_rule(self, state: CycleState, pod: PodInfo) -> Rule:
        return self._rule

    # --- pods that were just placed ---

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        if not self._counts_placed:
            return None
        # A pod that is assigned to a node has to be looked at again, which takes long.
        uid, estimate = self._current
        if uid != pod.uid:
            uid, estimate = pod.uid, self._estimate(pod)
            self.load.renumber(self._snapshot)
        row = self._snapshot.row_of(node_name)
        if row is not None:
            self.load.place(row, uid, self._now_ns(), estimate)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.load.remove(pod.uid)

    def _after_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        """Count pods that others placed, or that were placed before this process started."""
        if (
            new is not None
            and new.metadata.uid in self._recent
            and new.status.phase not in _ENDED
            and not self._waiting
        ):
            return  # As for most pods that this process has placed.
        if new is None:
            assert old is not None
            self._note(self.load.remove(old.metadata.uid))
            self._waiting.pop(old.metadata.uid, None)
            return
        uid = new.metadata.uid
        if not new.spec.node_name:
            self._note_waiting(new)
        elif new.status.phase in _ENDED:
            self._note(self.load.remove(uid))
        elif old is None or not old.spec.node_name:
            self._waiting.pop(uid, None)
            if self._counts_placed:
                self._count_placed(new, is_new=old is not None)

    def _count_placed(self, pod: Pod, *, is_new: bool) -> None:
        if pod.metadata.uid in self.load.placed:
            return
        now_ns = self._handle.clock.now_ns()
        placed_ns = now_ns if is_new else _placed_ns(pod)
        if placed_ns > now_ns - self.load.placed.fade_ns:
            estimate, snapshot = self.estimates.of(PodInfo(pod)), self._snapshot
            self.load.renumber(snapshot)
            row = snapshot.row_of(pod.spec.node_name)
            if row is not None and self.load.place(row, pod.metadata.uid, placed_ns, estimate):
                self._note(row)

    def _note(self, row: int | None) -> None:
        """The row counts something else: the snapshot may have it from before, as of a pod that
        another profile has placed."""
        snapshot = self._snapshot
        if row is not None and self.load.is_of(snapshot):
            snapshot.log.note_pods(row)

    # --- pods that wait for nodes to use less ---

    def _note_waiting(self, pod: Pod) -> None:
        """Keep the pod if its last attempt ended because of a threshold, too."""
        uid = pod.metadata.uid
        condition = first_condition(pod.status.conditions, "PodScheduled")
        if condition is None or _REASON_START not in condition.message:
            self._waiting.pop(uid, None)
        elif uid in self._waiting or len(self._waiting) < PLACED_MAX:
            self._waiting[uid] = pod

    def _after_measurements(self) -> None:
        """Try pods again once a node that was over a threshold is below it."""
        if not self._waiting:
            return
        over_count = self.load.over_count
        self.load.refresh(self._snapshot)
        if self.load.over_count < over_count:
            self._handle.activate(list(self._waiting.values()))


class _LoadRule(Rule):
    """What is known of the filter in an attempt."""

    __slots__ = ("_load",)

    def __init__(self, load: LoadRows) -> None:
        self._load = load

    def passes_all(self) -> bool:
        return not self._load.over_count

    def row_codes(self) -> RowCodes:
        return RowCodes(self._load.codes_version, self._load.codes.item)


def is_exempt(pod: PodInfo) -> bool:
    """Whether thresholds do not hold for the pod: it is critical, or has to be on its node."""
    if pod.priority >= CRITICAL_PRIORITY:
        return True
    controller = controller_of(pod.pod)
    return controller is not None and controller.kind == "DaemonSet"


def _no_scores(estimate: Amounts) -> None:
    """In place of scores that are kept."""


def _placed_ns(pod: Pod) -> int:
    """When a pod that is on a node was placed there, at the latest."""
    condition = first_condition(pod.status.conditions, "PodScheduled")
    times = (
        None if condition is None else condition.last_transition_time,
        pod.status.start_time,
        pod.metadata.creation_timestamp,
    )
    placed = next((time for time in times if isinstance(time, datetime)), None)
    return 0 if placed is None else int(placed.timestamp()) * NANOSECONDS


def _strategy(args: LoadAwareArgs, load: LoadRows, handle: Handle) -> LoadStrategy:
    if args.target_load_packing is not None:
        return PackingStrategy(args.target_load_packing, load)
    if args.load_variation_risk_balancing is not None:
        return BalancingStrategy(args.load_variation_risk_balancing, load)
    if args.low_risk_over_commitment is not None:
        return OvercommitmentStrategy(args.low_risk_over_commitment, load, handle)
    return LeastUsed(args, load)
