"""PreFilter and PreScore of the plugins whose answers are kept, outside the order in which the
framework runs them.

A failure here is not reported: it occurs again when every plugin is asked.
"""

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.record import Record
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import NO_METER, PRE_FILTER, PRE_SCORE
from kubestow.framework.plugin import PreScorePlugin, Restriction
from kubestow.framework.profile import Profile
from kubestow.framework.runner import pre_filter_of, pre_score_of
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of


def build_frame(
    plan: ReusePlan, pod: PodInfo, snapshot: Snapshot, timer: AttemptTimer | None = None
) -> FrameRecord | None:
    """Prepare the reused plugins for this frame; None if one of them rejects it."""
    reused = plan.reused(pod)
    state = CycleState()
    state.measure(NO_METER, timer)
    restrictions: list[tuple[str, Restriction]] = []
    is_prepared = _prepare(
        plan.profile, reused - plan.by_amounts, state, pod, nodes_of(snapshot), restrictions
    )
    if not is_prepared or len(restrictions) > 1:
        return None
    restriction = restrictions[0] if restrictions else None
    return FrameRecord(plan, reused, pod, snapshot, state, restriction)


def build_record(
    frame: FrameRecord, pod: PodInfo, timer: AttemptTimer | None = None
) -> Record | None:
    """Prepare the plugins that read amounts as well; None if one of them rejects the shape."""
    # What frames share must not hold what plugins stored for one of them.
    state = CycleState() if frame.shares_record else frame.state.shallow_copy()
    state.measure(NO_METER, timer)
    restrictions: list[tuple[str, Restriction]] = []
    names = frame.reused & frame.plan.by_amounts
    is_prepared = _prepare(frame.profile, names, state, pod, nodes_of(frame.snapshot), restrictions)
    if not is_prepared or restrictions:
        return None
    return Record(frame, pod, state)


def _prepare(
    profile: Profile,
    names: frozenset[str],
    state: CycleState,
    pod: PodInfo,
    nodes: Nodes,
    restrictions: list[tuple[str, Restriction]],
) -> bool:
    """Whether all are prepared, or leave themselves out."""
    for name, plugin in profile.pre_filter_steps:
        if name not in names:
            continue
        answer = pre_filter_of(name, plugin, state, pod, nodes)
        state.sampler.plugin_ended(name, PRE_FILTER, answer)
        if isinstance(answer, Restriction):
            restrictions.append((name, answer))
        elif isinstance(answer, Status) and answer.code == Code.SKIP:
            state.skip_filter |= {name}
        elif answer is not None:
            return False
    return all(
        ask_pre_score(name, plugin, state, pod, nodes)
        for name, plugin in profile.pre_score_steps
        if name in names
    )


def ask_pre_score(
    name: str, plugin: PreScorePlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> bool:
    """Whether the plugin is prepared, or leaves itself out."""
    status = pre_score_of(name, plugin, state, pod, nodes)
    state.sampler.plugin_ended(name, PRE_SCORE, status)
    if status is not None and status.code == Code.SKIP:
        state.skip_score |= {name}
        return True
    return status is None or status.is_success
