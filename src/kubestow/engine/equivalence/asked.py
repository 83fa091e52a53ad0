"""The plugins that are asked about a pod, of those whose answers are not kept for it."""

from collections.abc import Callable
from typing import NamedTuple

from kubestow.framework.plugin import PreFilterPlugin, PreScorePlugin
from kubestow.framework.profile import FilterStep, Profile, ScoreStep


class Skipped(NamedTuple):
    """The plugins whose Filter, and whose Score, have nothing to say about a pod."""

    filter: frozenset[str]
    score: frozenset[str]

    def joined(self, other: "Skipped") -> "Skipped":
        return Skipped(self.filter | other.filter, self.score | other.score)


class AskedSteps(NamedTuple):
    """The steps to run in an attempt, in the order of the profile.

    `skipped` are all plugins that the attempt leaves out, whether asked or kept.
    """

    pre_filter: list[tuple[str, PreFilterPlugin]]
    filter: list[FilterStep]
    pre_score: list[tuple[str, PreScorePlugin]]
    score: list[ScoreStep]
    skipped: Skipped


def asked_steps(
    profile: Profile,
    *,
    is_prepared: Callable[[str], bool],
    is_filter_kept: Callable[[FilterStep], bool],
    is_score_kept: Callable[[ScoreStep], bool],
    answered: str | None,
    skipped: Skipped,
    prepared: Skipped,
) -> AskedSteps:
    """The steps of a profile less those that are kept. A prepared plugin has run its PreFilter and
    PreScore, which left out `prepared`; one that gives final scores needs no PreScore."""
    left_out = skipped.joined(prepared)
    scores = [
        step
        for step in profile.score_steps
        if step.name not in skipped.score and step.name != answered and not is_score_kept(step)
    ]
    final = {step.name for step in scores if step.final_scores is not None}
    return AskedSteps(
        [
            (name, plugin)
            for name, plugin in profile.pre_filter_steps
            if name not in skipped.filter and not is_prepared(name)
        ],
        [
            step
            for step in profile.filter_steps
            if step.name not in left_out.filter
            and step.name != answered
            and not is_filter_kept(step)
        ],
        [
            (name, plugin)
            for name, plugin in profile.pre_score_steps
            if name not in skipped.score and name not in final and not is_prepared(name)
        ],
        scores,
        left_out,
    )
