"""Runs the plugins of a profile at one extension point, combines their answers (spec 04 §2.2, §4,
§8).

Everything here is a plain function of a profile, the state of one attempt and the nodes. A plugin
that raises or returns a wrong answer (`answers`) fails the attempt with a status of code Error and
the framework's prefix; it never stops the scheduler.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import ALL_ROWS, IntArray, NarrowArray, Rows
from kubestow.errors import PluginError
from kubestow.framework.answers import (
    array_answer,
    codes_answer,
    no_answer,
    permit_answer,
    post_filter_answer,
    pre_filter_answer,
    score_answer,
    status_answer,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED, Diagnosis, decode_status, filter_failure
from kubestow.framework.faults import fault_error, fault_status
from kubestow.framework.metrics import (
    FILTER,
    NORMALIZE,
    PERMIT,
    POST_FILTER,
    PRE_FILTER,
    PRE_SCORE,
    RESERVE,
    SCORE,
    UNRESERVE,
)
from kubestow.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    FilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Restriction,
)
from kubestow.framework.profile import FilterStep, Profile, ScoreStep, plugin_name
from kubestow.framework.reuse import FinalScores
from kubestow.framework.status import Code, Status, wrapped_text
from kubestow.index.nodes import Nodes, SimulatedNode

T = TypeVar("T")


def guarded(call: Callable[[], T], plugin: str, point: str) -> T | Status:
    """The result of a plugin's method, or its exception as a status of code Error."""
    try:
        return call()
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        return fault_status(error, plugin, point)


def failure(prefix: str, plugin: str, status: Status) -> Status:
    """An Error status with the framework's prefix before the plugin's text."""
    text = f'{prefix} "{plugin}": {wrapped_text(status)}'
    return Status(Code.ERROR, error=PluginError(text), plugin=plugin)


# --- PreFilter ---


class PreFilterOutcome(NamedTuple):
    """`node_names` None means all nodes; `restricting` are the plugins that restricted them."""

    node_names: frozenset[str] | None
    status: Status | None
    restricting: tuple[str, ...]


UNRESTRICTED: Final = PreFilterOutcome(None, None, ())


def run_pre_filter(
    profile: Profile, state: CycleState, pod: PodInfo, nodes: Nodes
) -> PreFilterOutcome:
    """All PreFilter plugins in order (spec 04 §4).

    A plain rejection does not stop the others: preemption needs the state they leave.
    """
    names: frozenset[str] | None = None
    restricting: list[str] = []
    pending: Status | None = None
    state.skip_filter = frozenset()
    sampler = state.sampler
    for name, plugin in profile.pre_filter_steps:
        answer = pre_filter_of(name, plugin, state, pod, nodes)
        sampler.plugin_ended(name, PRE_FILTER, answer)
        if answer is None:
            continue
        if isinstance(answer, Restriction):
            restricting.append(name)
            names = answer.node_names if names is None else names & answer.node_names
            if not names:
                return PreFilterOutcome(None, _empty_restriction(restricting), tuple(restricting))
        elif answer.code == Code.SKIP:
            state.skip_filter |= {name}
        elif answer.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PreFilterOutcome(None, answer.with_plugin(name), ())
        elif answer.code == Code.UNSCHEDULABLE:
            pending = answer.with_plugin(name)
        elif not answer.is_success:
            return PreFilterOutcome(None, failure("running PreFilter plugin", name, answer), ())
    return PreFilterOutcome(names, pending, tuple(restricting))


def pre_filter_of(
    name: str, plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> PreFilterResult:
    """One plugin's answer; a fault as a status of code Error."""
    try:
        answer = plugin.pre_filter(state, pod, nodes)
        return answer if answer is None else pre_filter_answer(answer, name)
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        return fault_status(error, name, PRE_FILTER)


def _empty_restriction(restricting: Sequence[str]) -> Status:
    if len(restricting) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {restricting[0]}")
    joined = " ".join(sorted(restricting))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{joined}] simultaneously")


def run_add_pod(
    profile: Profile, state: CycleState, pod: PodInfo, added: PodInfo, row: int
) -> Status | None:
    """Add a pod to that node in the state of every plugin, for a simulation."""
    for plugin in profile.pre_filter_extensions:
        name = plugin_name(plugin)
        if name in state.skip_filter:
            continue
        try:
            answer = status_answer(plugin.add_pod(state, pod, added, row), name, "add_pod")
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            answer = fault_status(error, name, PRE_FILTER)
        if answer is not None and not answer.is_success:
            return failure("running AddPod on PreFilter plugin", name, answer)
    return None


def run_remove_pod(
    profile: Profile, state: CycleState, pod: PodInfo, removed: PodInfo, row: int
) -> Status | None:
    """Remove a pod from that node in the state of every plugin, for a simulation."""
    for plugin in profile.pre_filter_extensions:
        name = plugin_name(plugin)
        if name in state.skip_filter:
            continue
        try:
            answer = status_answer(plugin.remove_pod(state, pod, removed, row), name, "remove_pod")
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            answer = fault_status(error, name, PRE_FILTER)
        if answer is not None and not answer.is_success:
            return failure("running RemovePod on PreFilter plugin", name, answer)
    return None


# --- Filter ---


class Verdicts(NamedTuple):
    """The filters' verdicts on some nodes.

    failed_by   index of the first filter that rejected each node, or PASSED
    codes       that filter's code
    """

    failed_by: NarrowArray
    codes: NarrowArray


def run_filters(profile: Profile, state: CycleState, pod: PodInfo, nodes: Nodes) -> Verdicts:
    """All Filter plugins over these nodes; for each node the first that rejects it decides."""
    count = len(nodes)
    failed_by = np.full(count, PASSED, np.int64)
    codes = np.zeros(count, np.int64)
    # Positions of the nodes that passed so far; None while all did.
    passing: npt.NDArray[np.intp] | None = None
    for step in profile.filter_steps:
        index, name, plugin = step.filter_index, step.name, step.plugin
        if name in state.skip_filter:
            continue
        if passing is not None and len(passing) == 0:
            break
        narrowed = step.per_node and passing is not None
        asked = nodes.subset(passing) if narrowed and passing is not None else nodes
        result = filter_of(plugin, name, state, pod, asked)
        if result is None:
            continue
        if passing is None:
            # The first filter that rejects a node: its codes are the verdicts so far.
            is_rejected = result != 0
            failed_by[is_rejected] = index
            codes[:] = result
            passing = np.flatnonzero(~is_rejected)
            passing = None if len(passing) == count else passing
            continue
        rejected = np.flatnonzero(result)
        if len(rejected) == 0:
            continue
        if narrowed:
            positions = passing[rejected]
        else:
            rejected = rejected[failed_by[rejected] == PASSED]
            positions = rejected
        failed_by[positions] = index
        codes[positions] = result[rejected]
        passing = np.flatnonzero(failed_by == PASSED)
    return Verdicts(failed_by, codes)


def filter_of(
    plugin: FilterPlugin, name: str, state: CycleState, pod: PodInfo, nodes: Nodes
) -> NarrowArray | None:
    """One plugin's codes, one per node; FilterError when it fails."""
    try:
        result = plugin.filter(state, pod, nodes)
        if result is not None:
            result = codes_answer(result, name, len(nodes))
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        status = fault_status(error, name, FILTER)
        state.sampler.plugin_ended(name, FILTER, status)
        raise FilterError(filter_failure(name, status)) from error
    state.sampler.plugin_ended(name, FILTER)
    return result


class FilterError(Exception):
    """A Filter plugin failed as a whole, not for one node; carries the status of the attempt."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def run_filters_on_one(
    profile: Profile, state: CycleState, pod: PodInfo, nodes: Nodes
) -> Status | None:
    """All Filter plugins on a view of one node; None when it passes."""
    for step in profile.filter_steps:
        if step.name in state.skip_filter:
            continue
        try:
            code = code_of_one(step, state, pod, nodes)
        except FilterError as error:
            return error.status
        if code:
            return decode_status(step.plugin, state, code)
    return None


def code_of_one(step: FilterStep, state: CycleState, pod: PodInfo, nodes: Nodes) -> int:
    """One plugin's code for a view of one node."""
    name, row_form = step.name, step.row_form
    if row_form is None or not isinstance(nodes, SimulatedNode):
        codes = filter_of(step.plugin, name, state, pod, nodes)
        return 0 if codes is None else int(codes[0])
    try:
        code = row_form(state)(nodes.info)
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        status = fault_status(error, name, FILTER)
        state.sampler.plugin_ended(name, FILTER, status)
        raise FilterError(filter_failure(name, status)) from error
    state.sampler.plugin_ended(name, FILTER)
    return code


def run_filters_with_nominated(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    node: SimulatedNode,
    nominated: Sequence[PodInfo],
) -> Status | None:
    """Filter one node, with the pods nominated to it counted in and without them (spec 04 §7).

    Only nominated pods of equal or higher priority are counted in. The pod must fit in both cases:
    nominated pods may come, or they may not.
    """
    ahead = nominated_ahead(pod, nominated)
    status = run_filters_with(profile, state, pod, node, ahead) if ahead else None
    return status if status is not None else run_filters_on_one(profile, state, pod, node)


def nominated_ahead(pod: PodInfo, nominated: Iterable[PodInfo]) -> list[PodInfo]:
    """The nominated pods that are counted in: those of equal or higher priority."""
    return [other for other in nominated if other.priority >= pod.priority and other.uid != pod.uid]


def run_filters_with(
    profile: Profile,
    state: CycleState,
    pod: PodInfo,
    node: SimulatedNode,
    others: Iterable[PodInfo],
) -> Status | None:
    """Filter one node with these pods counted in."""
    with_others, its_state = node.clone(), state.clone()
    for other in others:
        with_others.add_pod(other)
        status = run_add_pod(profile, its_state, pod, other, node.row)
        if status is not None:
            return status
    return run_filters_on_one(profile, its_state, pod, with_others)


# --- PostFilter ---


def run_post_filter(
    profile: Profile, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
) -> tuple[PostFilterResult | None, Status]:
    """All PostFilter plugins until one succeeds or ends the attempt (spec 04 §9)."""
    if state.skip_post_filter:
        return None, Status.unschedulable("All PostFilter plugins are skipped")
    kept: PostFilterResult | None = None
    reasons: list[str] = []
    first_plugin = ""
    for plugin in profile.post_filter:
        name = plugin_name(plugin)
        try:
            answer = plugin.post_filter(state, pod, diagnosis)
            result, status = post_filter_answer(answer, name)
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            result, status = None, fault_status(error, name, POST_FILTER)
        state.sampler.plugin_ended(name, POST_FILTER, status)
        if status.is_success or status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return result, status if status.plugin == name else status.with_plugin(name)
        if not status.is_rejected:
            return None, Status(Code.ERROR, error=status.as_error(), plugin=name)
        kept = result if result is not None else kept
        reasons.extend(status.all_reasons)
        first_plugin = first_plugin or name
    return kept, Status(Code.UNSCHEDULABLE, *reasons, plugin=first_plugin)


# --- Score ---


class PluginScores(NamedTuple):
    """One plugin's part in the totals, all int64[node] in the order of the feasible nodes."""

    plugin: str
    weight: int
    raw: IntArray
    normalized: IntArray


class Scores:
    """Totals of the feasible nodes, and each plugin's part in them, computed at the first read.

    varying   the totals less what is the same for all nodes: a node is chosen by it
    """

    __slots__ = ("_constant", "_find_parts", "_parts", "_rows", "_total", "varying")

    def __init__(
        self,
        varying: NarrowArray,
        constant: int,
        find_parts: "Callable[[Rows], tuple[PluginScores, ...]]",
        rows: Rows,
    ) -> None:
        self.varying = varying
        self._constant = constant
        self._total: IntArray | None = None
        self._find_parts = find_parts
        self._rows = rows
        self._parts: tuple[PluginScores, ...] | None = None

    @classmethod
    def known(cls, total: IntArray, parts: "tuple[PluginScores, ...]") -> "Scores":
        return cls(total, 0, lambda _: parts, ALL_ROWS)

    @property
    def total(self) -> IntArray:
        if self._total is None:
            self._total = self.varying.astype(np.int64) + self._constant
        return self._total

    @property
    def by_plugin(self) -> "tuple[PluginScores, ...]":
        if self._parts is None:
            self._parts = self._find_parts(self._rows)
        return self._parts


class ScoreError(Exception):
    """Scoring failed; carries the status of the attempt."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def run_scores(profile: Profile, state: CycleState, pod: PodInfo, nodes: Nodes) -> Scores:
    """PreScore, Score and Normalize over the feasible nodes; the weighted sum (spec 04 §8)."""
    run_pre_score(profile, state, pod, nodes)
    state.meter.point_ended(PRE_SCORE)
    steps = [step for step in profile.score_steps if step.name not in state.skip_score]
    # All plugins score before the first normalizes, and all normalize before any range is checked:
    # which failure is reported depends on it.
    raw = [score_of(step, state, pod, nodes) for step in steps]
    normalized = [
        normalize_of(step, state, pod, scores) for step, scores in zip(steps, raw, strict=True)
    ]
    check_ranges(steps, normalized)
    total = np.zeros(len(nodes), np.int64)
    for step, scores in zip(steps, normalized, strict=True):
        total += scores * step.weight
    by_plugin = tuple(
        PluginScores(step.name, step.weight, *scores)
        for step, *scores in zip(steps, raw, normalized, strict=True)
    )
    return Scores.known(total, by_plugin)


def run_pre_score(profile: Profile, state: CycleState, pod: PodInfo, nodes: Nodes) -> None:
    state.skip_score = frozenset()
    sampler = state.sampler
    for name, plugin in profile.pre_score_steps:
        status = pre_score_of(name, plugin, state, pod, nodes)
        sampler.plugin_ended(name, PRE_SCORE, status)
        if status is None or status.is_success:
            continue
        if status.code != Code.SKIP:
            raise ScoreError(failure("running PreScore plugin", name, status))
        state.skip_score |= {name}


def pre_score_of(
    name: str, plugin: PreScorePlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> Status | None:
    """One plugin's answer; a fault as a status of code Error."""
    try:
        answer = plugin.pre_score(state, pod, nodes)
        return answer if answer is None else status_answer(answer, name, "pre_score")
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        return fault_status(error, name, PRE_SCORE)


def score_of(step: ScoreStep, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
    """One plugin's raw scores, one per node."""
    try:
        answer = step.plugin.score(state, pod, nodes)
        scores = score_answer(answer, step.name, len(nodes))
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        raise _failed_score("running Score plugins", step.name, SCORE, state, error) from error
    state.sampler.plugin_ended(step.name, SCORE)
    return scores


def normalize_of(step: ScoreStep, state: CycleState, pod: PodInfo, raw: IntArray) -> IntArray:
    """Raw scores as they enter the total."""
    if step.normalizer is None:
        return raw
    try:
        answer = step.normalizer.normalize(state, pod, raw)
        scores = array_answer(answer, step.name, "scores", len(raw))
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        raise _failed_score(
            "running Normalize on Score plugins", step.name, NORMALIZE, state, error
        ) from error
    state.sampler.plugin_ended(step.name, NORMALIZE)
    return scores


def final_scores_of(
    step: ScoreStep,
    final_scores: FinalScores,
    state: CycleState,
    pod: PodInfo,
    nodes: Nodes,
    count: int,
) -> IntArray | int | None:
    """One plugin's scores of `count` nodes as they enter the total; one number if it is the same
    for all, None if PreScore leaves it out."""
    try:
        answer = final_scores(state, pod, nodes)
        if answer is not None and type(answer) is not int:
            answer = score_answer(answer, step.name, count)
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        raise _failed_score("running Score plugins", step.name, SCORE, state, error) from error
    state.sampler.plugin_ended(step.name, SCORE)
    return answer


def _failed_score(
    prefix: str, name: str, point: str, state: CycleState, error: BaseException
) -> ScoreError:
    """The failure of one plugin, which is measured as well."""
    failed = _score_error(prefix, name, fault_error(error, name, point))
    state.sampler.plugin_ended(name, point, failed.status)
    return failed


def _score_error(prefix: str, name: str, error: Exception) -> ScoreError:
    text = f'{prefix}: plugin "{name}" failed with: {error}'
    return ScoreError(Status(Code.ERROR, error=PluginError(text), plugin=name))


def check_ranges(steps: Sequence[ScoreStep], normalized: Sequence[IntArray]) -> None:
    """Raise ScoreError for the first node with a score out of range, and its first such plugin."""
    first: tuple[int, str, int] | None = None
    for step, scores in zip(steps, normalized, strict=True):
        if len(scores) == 0 or (scores.min() >= MIN_NODE_SCORE and scores.max() <= MAX_NODE_SCORE):
            continue
        position = int(np.argmax((scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)))
        if first is None or position < first[0]:
            first = (position, step.name, int(scores[position]))
    if first is None:
        return
    _, name, score = first
    text = (
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score '
        f"{score}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
    raise ScoreError(Status(Code.ERROR, error=PluginError(text), plugin=name))


# --- Reserve, Permit ---

_NONE_SKIPPED: Final[frozenset[str]] = frozenset()


def run_reserve(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
    # Where single plugin calls are measured, all of them are made: upstream makes and counts them.
    skipped = _NONE_SKIPPED if state.meter.is_sampled else state.skip_filter
    for name, plugin, reserves_filtered in profile.reserve_steps:
        if reserves_filtered and name in skipped:
            continue
        try:
            answer = plugin.reserve(state, pod, node_name)
            if answer is not None:
                answer = status_answer(answer, name, "reserve")
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            answer = fault_status(error, name, RESERVE)
        state.sampler.plugin_ended(name, RESERVE, answer)
        if answer is None or answer.is_success:
            continue
        if answer.is_rejected:
            return answer.with_plugin(name)
        return failure("running Reserve plugin", name, answer)
    return None


def run_unreserve(profile: Profile, state: CycleState, pod: PodInfo, node_name: str) -> None:
    """Undo every Reserve, last first, including those that did not run."""
    for name, plugin, _ in reversed(profile.reserve_steps):
        answer = guarded(
            lambda name=name, plugin=plugin: no_answer(
                plugin.unreserve(state, pod, node_name), name, "unreserve"
            ),
            name,
            UNRESERVE,
        )
        state.sampler.plugin_ended(name, UNRESERVE, answer)


class PermitOutcome(NamedTuple):
    """Status None: the pod is permitted. Wait comes with each plugin's timeout."""

    status: Status | None
    timeouts_s: dict[str, float]


def run_permit(
    profile: Profile, state: CycleState, pod: PodInfo, node_name: str, longest_s: float
) -> PermitOutcome:
    timeouts_s: dict[str, float] = {}
    waiting: Status | None = None
    for plugin in profile.permit:
        name = plugin_name(plugin)
        try:
            status, timeout_s = permit_answer(plugin.permit(state, pod, node_name), name)
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            status, timeout_s = fault_status(error, name, PERMIT), 0
        state.sampler.plugin_ended(name, PERMIT, status)
        if status is None or status.is_success:
            continue
        if status.is_rejected:
            return PermitOutcome(status.with_plugin(name), {})
        if status.code != Code.WAIT:
            return PermitOutcome(failure("running Permit plugin", name, status), {})
        timeouts_s[name] = min(timeout_s, longest_s)
        waiting = status.with_plugin(name)
    if waiting is None:
        return PermitOutcome(None, {})
    return PermitOutcome(
        waiting.with_reasons("one or more plugins asked to wait and no plugin rejected pod"),
        timeouts_s,
    )
