"""Batching of v1.37: the node that the pod before got competes again (spec 12 §5.3)."""

from collections.abc import Callable
from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.engine.batching import (
    NODE_MISSING,
    Asking,
    BatchRules,
    KeptNodes,
    LastNodeCheck,
    ScoredNodes,
    Unusable,
)
from kubestow.engine.evaluation import PlainEvaluation
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.runner import (
    ScoreError,
    check_ranges,
    normalize_of,
    run_pre_score,
    score_of,
)
from kubestow.index.nodes import nodes_of

POD_NOMINATED: Final = Unusable("pod_nominated")
FILTER_ERROR: Final = Unusable("filter_error")
PRE_SCORE_ERROR: Final = Unusable("prescore_error")
RESCORE_ERROR: Final = Unusable("rescore_error")
NORMALIZE_ERROR: Final = Unusable("normalize_error")


class BatchRulesV137(BatchRules):
    """`shares_cycles`: several pods are tried in one cycle, the members of a group."""

    keeps_raw = True

    def __init__(self, now_s: Callable[[], float], *, shares_cycles: bool) -> None:
        self._now_s = now_s
        self._shares_cycles = shares_cycles

    def follows(self, cycle: int, last: int) -> bool:
        return super().follows(cycle, last) or (self._shares_cycles and cycle == last)

    def refusal(self, asking: Asking) -> Unusable | None:
        return POD_NOMINATED if asking.nominated_node_name else None

    def after_last_node(
        self, kept: KeptNodes, last: str, check: LastNodeCheck
    ) -> KeptNodes | Unusable:
        row = check.snapshot.row_of(last)
        if row is None:
            return NODE_MISSING
        status = check.filter(row)
        if status is not None:
            return kept if status.is_rejected else FILTER_ERROR
        started_s = self._now_s()
        rescored = _rescored(kept.nodes, last, row, check)
        check.rescoring_s = self._now_s() - started_s
        return rescored if isinstance(rescored, Unusable) else kept._replace(nodes=rescored)


def _rescored(
    kept: ScoredNodes, last: str, last_row: int, check: LastNodeCheck
) -> ScoredNodes | Unusable:
    """The kept nodes and the last one, which alone is scored; all are normalised together.

    The others keep their raw scores, although normalising and PreScore are for the nodes that are
    left. A plugin that took no part then has 0 for them.
    """
    profile, snapshot, pod = check.profile, check.snapshot, check.pod
    names = [*kept.names, last]
    rows = [row for name in names if (row := snapshot.row_of(name)) is not None]
    if len(rows) < len(names):
        return NODE_MISSING
    state = _state_after_filter(last_row, check)
    try:
        run_pre_score(profile, state, pod, nodes_of(snapshot, np.array(rows, np.intp)))
    except ScoreError:
        return PRE_SCORE_ERROR
    check.skip_score = state.skip_score
    steps = [step for step in profile.score_steps if step.name not in state.skip_score]
    only = nodes_of(snapshot, np.array([last_row], np.intp))
    try:
        fresh = {step.name: score_of(step, state, pod, only) for step in steps}
    except ScoreError:
        return RESCORE_ERROR
    raw = _joined(kept, fresh)
    try:
        normalized = [normalize_of(step, state, pod, raw[step.name]) for step in steps]
        check_ranges(steps, normalized)
    except ScoreError:
        return NORMALIZE_ERROR
    totals = np.zeros(len(names), np.int64)
    for step, scores in zip(steps, normalized, strict=True):
        totals += scores * step.weight
    return ScoredNodes(names, range(len(names)), totals, raw)


def _state_after_filter(last_row: int, check: LastNodeCheck) -> CycleState:
    """A state of its own, as plugins leave it after Filter: that of the attempt may lack what
    those store whose answers are reused."""
    again = PlainEvaluation(check.profile, check.pod, check.snapshot)
    again.state.group_cycle = check.evaluation.state.group_cycle
    again.pre_filter()
    again.status_on(last_row)
    return again.state


def _joined(kept: ScoredNodes, fresh: dict[str, IntArray]) -> dict[str, IntArray]:
    """The raw scores of the kept nodes in their present order, and of the last one behind them."""
    positions = kept.positions
    nothing = np.zeros(1, np.int64)
    joined: dict[str, IntArray] = {}
    for name in kept.raw.keys() | fresh.keys():
        found = kept.raw.get(name)
        earlier = np.zeros(len(positions), np.int64) if found is None else found[positions]
        joined[name] = np.concatenate((earlier, fresh.get(name, nothing)))
    return joined
