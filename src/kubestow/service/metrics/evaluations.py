"""Counts how often each plugin was asked, `plugin_evaluation_total`, and how hints of the pod
before were used (spec 09 §8.1).

Every attempt asks some thirty plugins, and at Filter and Score about each node. Usually the same
plugins skip one pod and the next, so attempts are counted by the set of skipped plugins; the counts
of each plugin are computed when they are read.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubestow.engine.decision import Decision
from kubestow.engine.metrics import EMPTY_LIST, NO_HINT, POD_NOT_BATCHABLE
from kubestow.framework.metrics import FILTER, PRE_FILTER, PRE_SCORE, SCORE
from kubestow.framework.profile import Profile

if TYPE_CHECKING:
    from kubestow.engine.batching import BatchAttempt


class Evaluations:
    """How often the plugins of one profile are asked."""

    def __init__(self, profile: Profile) -> None:
        self._pre_filters = [name for name, _ in profile.pre_filter_steps]
        self._filters = [step.name for step in profile.filter_steps]
        self._pre_scores = [name for name, _ in profile.pre_score_steps]
        self._scores = [step.name for step in profile.score_steps]
        self.reset()

    def reset(self) -> None:
        self._filtering = defaultdict[frozenset[str], _Asked](_Asked)
        self._scoring = defaultdict[frozenset[str], _Asked](_Asked)
        # Plugin and point → how often it was not asked, because an earlier plugin had rejected.
        self._not_asked: dict[tuple[str, str], int] = {}
        # Attempts in which no hint was looked for, as PreFilter came to nothing.
        self._without_search = 0
        self._single_node_count = 0
        self._batched_count = self._batched_scored_count = 0
        self._hints = Counter[str]()
        self._flushes = Counter[str]()

    def add(self, decision: Decision) -> None:
        state, evaluated = decision.state, decision.evaluated_count
        feasible = decision.feasible_count
        asked = self._filtering[state.skip_filter]
        asked.attempts += 1
        asked.nodes += evaluated
        if decision.pre_filter.status is not None:
            self._count_behind(decision.pre_filter.status.plugin)
            self._without_search += 1
        elif not decision.node_names:
            self._without_search += 1
        elif decision.batch is not None:
            self._add_batch(decision, decision.batch, asked)
        elif decision.scores is None and decision.node_name:
            self._single_node_count += 1
        if evaluated != feasible:
            for filter_index, count in decision.rejected_counts().items():
                asked.rejected[filter_index] += count
        if decision.scores is not None:
            asked = self._scoring[state.skip_score]
            asked.attempts += 1
            asked.nodes += feasible

    def _add_batch(self, decision: Decision, batch: "BatchAttempt", asked: "_Asked") -> None:
        self._batched_count += 1
        self._batched_scored_count += decision.scores is not None
        check = batch.check
        if check is not None and check.is_filtered:
            asked.nodes += 1
            if check.status is not None:
                asked.rejected[self._filters.index(check.status.plugin)] += 1
        if check is not None and check.skip_score is not None:
            rescored = self._scoring[check.skip_score]
            rescored.attempts += 1
            rescored.nodes += 1
            self._batched_scored_count += 1
        self._hints[batch.result] += 1
        self._flushes.update(batch.flushed)

    def hints(self) -> Mapping[str, int]:
        """How often a hint was used, or there was none, by the value of the label `result`."""
        attempts = sum(asked.attempts for asked in self._filtering.values())
        alone = attempts - self._without_search - self._batched_count
        counts = self._hints + Counter({NO_HINT: alone})
        counts.pop("", None)
        return counts

    def flushes(self) -> Mapping[str, int]:
        """How often nothing was kept for the next pod, or not used, by the reason."""
        scored = sum(asked.attempts for asked in self._scoring.values())
        return self._flushes + Counter(
            {
                EMPTY_LIST: self._single_node_count,
                POD_NOT_BATCHABLE: scored - self._batched_scored_count,
            }
        )

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Per plugin and extension point; every series exists from the start."""
        not_asked = dict(self._not_asked)
        for skipped, asked in self._filtering.items():
            self._subtract_rejected(not_asked, skipped, asked)
        listed = (
            (PRE_FILTER, self._pre_filters, self._filtering, "attempts"),
            (FILTER, self._filters, self._filtering, "nodes"),
            (PRE_SCORE, self._pre_scores, self._scoring, "attempts"),
            (SCORE, self._scores, self._scoring, "nodes"),
        )
        return {
            (name, point): sum(
                getattr(asked, what) for skipped, asked in tally.items() if name not in skipped
            )
            - not_asked.get((name, point), 0)
            for point, names, tally, what in listed
            for name in names
        }

    def _count_behind(self, rejecting: str) -> None:
        """A PreFilter plugin ended the attempt: those behind it were not asked."""
        if rejecting in self._pre_filters:
            for name in self._pre_filters[self._pre_filters.index(rejecting) + 1 :]:
                self._not_asked[name, PRE_FILTER] = self._not_asked.get((name, PRE_FILTER), 0) + 1

    def _subtract_rejected(
        self, not_asked: dict[tuple[str, str], int], skipped: frozenset[str], asked: "_Asked"
    ) -> None:
        """Behind a filter that rejects a node, no other filter is asked about it."""
        rejected = 0
        for filter_index, name in enumerate(self._filters):
            if name not in skipped:
                not_asked[name, FILTER] = not_asked.get((name, FILTER), 0) + rejected
            rejected += asked.rejected[filter_index]


class _Asked:
    """Attempts in which the same plugins were skipped, and the nodes evaluated in them.

    rejected   how many of these nodes each filter rejected, by its index
    """

    __slots__ = ("attempts", "nodes", "rejected")

    def __init__(self) -> None:
        self.attempts = 0
        self.nodes = 0
        self.rejected = Counter[int]()
