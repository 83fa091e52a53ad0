"""Runs the plugins that generate and score the placements of a group (spec 11 §8)."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from kubestow.errors import PluginError
from kubestow.framework.answers import is_int64, wrong_answer
from kubestow.framework.faults import fault_error
from kubestow.framework.group_cycle import Assignments, GroupCycle, GroupPlacement
from kubestow.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubestow.framework.profile import PlacementScoreStep, Profile, plugin_name
from kubestow.framework.status import Status

T = TypeVar("T")

PLACEMENT_GENERATE: Final = "PlacementGenerate"
PLACEMENT_SCORE: Final = "PlacementScore"
PLACEMENT_NORMALIZE: Final = "PlacementScoreExtensionNormalize"

# Called when a plugin has answered: its name, the extension point, the answer.
PluginEnded = Callable[[str, str, object], None]


class PlacementTotals(NamedTuple):
    """The weighted scores of each placement: by plugin, and their sum."""

    by_plugin: Sequence[dict[str, int]]
    total: Sequence[int]


def generate_placements(
    profile: Profile, cycle: GroupCycle, parent: GroupPlacement, ended: PluginEnded
) -> Sequence[GroupPlacement] | Status:
    """The placements to try, or why there is none."""
    if not profile.placement_generate:
        return [parent]
    plugin = profile.placement_generate[0]
    name = plugin_name(plugin)
    try:
        placements = plugin.generate_placements(cycle, parent)
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        status = Status.from_error(fault_error(error, name, PLACEMENT_GENERATE))
        ended(name, PLACEMENT_GENERATE, status)
        return status.with_plugin(name)
    ended(name, PLACEMENT_GENERATE, None)
    if not placements:
        return Status.unschedulable("no feasible placements found").with_plugin(name)
    return placements


def score_placements(
    profile: Profile, cycle: GroupCycle, candidates: Sequence[Assignments], ended: PluginEnded
) -> PlacementTotals:
    """The weighted scores of the candidates, in their order; PluginError if a plugin fails."""
    steps = profile.placement_score_steps
    raw: list[list[int]] = [[] for _ in steps]
    for assignments in candidates:
        for step, scores in zip(steps, raw, strict=True):
            scores.append(_score(step, cycle, assignments, ended))
    normalized = [
        _normalize(step, cycle, scores, ended) for step, scores in zip(steps, raw, strict=True)
    ]
    by_plugin: list[dict[str, int]] = []
    for index in range(len(candidates)):
        weighted: dict[str, int] = {}
        for step, scores in zip(steps, normalized, strict=True):
            weighted[step.name] = _in_range(step, scores[index]) * step.weight
        by_plugin.append(weighted)
    return PlacementTotals(by_plugin, [sum(weighted.values()) for weighted in by_plugin])


def _score(
    step: PlacementScoreStep, cycle: GroupCycle, assignments: Assignments, ended: PluginEnded
) -> int:
    def call() -> int:
        score = step.plugin.score_placement(cycle, assignments)
        if not is_int64(score):
            raise wrong_answer(step.name, "score_placement", score, "a whole number")
        return int(score)

    return _called(step, call, PLACEMENT_SCORE, "running PlacementScore plugins: plugin", ended)


def _normalize(
    step: PlacementScoreStep, cycle: GroupCycle, scores: Sequence[int], ended: PluginEnded
) -> Sequence[int]:
    normalizer = step.normalizer
    if normalizer is None:
        return scores

    def call() -> Sequence[int]:
        normalized = normalizer.normalize_placements(cycle, scores)
        if len(normalized) != len(scores):
            allowed = f"{len(scores)} scores, one per placement"
            raise wrong_answer(step.name, "normalize_placements", normalized, allowed)
        return normalized

    prefix = "running NormalizePlacementScore on PlacementScore plugins: plugin"
    return _called(step, call, PLACEMENT_NORMALIZE, prefix, ended)


def _called(
    step: PlacementScoreStep, call: Callable[[], T], point: str, prefix: str, ended: PluginEnded
) -> T:
    try:
        answer = call()
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        fault = fault_error(error, step.name, point)
        ended(step.name, point, Status.from_error(fault))
        raise PluginError(f'{prefix} "{step.name}" failed with: {fault}') from error
    ended(step.name, point, None)
    return answer


def _in_range(step: PlacementScoreStep, score: int) -> int:
    if MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
        return score
    raise PluginError(
        "applying score defaultWeights on PlacementScore plugins: "
        f'plugin "{step.name}" returns an invalid score {score}, it should in the range of '
        f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
