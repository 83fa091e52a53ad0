"""One attempt that reuses the record of the pod's shape."""

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, Rows
from kubestow.engine.equivalence.preparation import ask_pre_score
from kubestow.engine.equivalence.record import (
    FallBackToPlain,
    NormalizedScore,
    Record,
    checked,
    override,
)
from kubestow.engine.evaluation import PlainEvaluation
from kubestow.errors import BudgetSpentError, SetAsideError
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.faults import pass_on_exit
from kubestow.framework.metrics import PRE_FILTER, PRE_SCORE
from kubestow.framework.profile import FilterStep
from kubestow.framework.runner import (
    UNRESTRICTED,
    FilterError,
    PluginScores,
    PreFilterOutcome,
    ScoreError,
    Scores,
    Verdicts,
    filter_of,
    normalize_of,
    pre_filter_of,
    score_of,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of


class ReusingEvaluation:
    def __init__(self, record: Record, pod: PodInfo) -> None:
        self._record = record
        self._is_fresh = False
        self._pod = pod
        self.state = record.state.shallow_copy()
        self._asked: list[FilterStep] = []

    def passing_share(self) -> float:
        record = self._fresh_record()
        return 1 - record.rejected_count / max(len(record.failed_by), 1)

    def passes_everywhere(self) -> bool:
        return not self._asked and not self._fresh_record().rejected_count

    def _fresh_record(self) -> Record:
        """The record, up to date. A pod that gets its nominated node does not need it."""
        if not self._is_fresh:
            try:
                self._record.catch_up()
            except (BudgetSpentError, SetAsideError):
                self._record.has_failed = True  # As below, but asking again would take longer.
                raise
            except BaseException as error:  # A fault in one plugin must not stop the scheduler.
                pass_on_exit(error)
                # Part of the record may be of before the change: it is made again for the next pod.
                self._record.has_failed = True
                raise FallBackToPlain from error
            self._is_fresh = True
        return self._record

    def pre_filter(self) -> PreFilterOutcome:
        record, skipped = self._record, self.state.skip_filter
        for name, plugin in record.asked_pre_filter:
            nodes = nodes_of(record.snapshot)
            answer = pre_filter_of(name, plugin, self.state, self._pod, nodes)
            self.state.sampler.plugin_ended(name, PRE_FILTER, answer)
            if answer is None:
                continue
            if not isinstance(answer, Status) or answer.code != Code.SKIP:
                raise FallBackToPlain
            skipped.add(name)
        self._asked = [step for step in record.asked_filter if step.name not in skipped]
        if record.restriction is None:
            return UNRESTRICTED
        plugin_name, restriction = record.restriction
        return PreFilterOutcome(restriction.node_names, None, (plugin_name,))

    def verdicts(self, rows: Rows) -> Verdicts:
        record = self._fresh_record()
        failed_by, codes = record.failed_by[rows], record.codes[rows]
        if not self._asked:
            return Verdicts(failed_by, codes)
        failed_by, codes = failed_by.copy(), codes.copy()
        nodes = nodes_of(self._record.snapshot, rows)
        for step in self._asked:
            # Only where no earlier filter has rejected the node already.
            positions = None
            if step.reuse.per_node:
                positions = np.flatnonzero((failed_by == PASSED) | (failed_by > step.filter_index))
            asked = nodes if positions is None else nodes.subset(positions)
            try:
                found = filter_of(step.plugin, step.name, self.state, self._pod, asked)
            except FilterError as error:
                raise FallBackToPlain from error
            if found is not None:
                override(failed_by, codes, found, step.filter_index, positions)
        return Verdicts(failed_by, codes)

    def scores(self, rows: Rows) -> Scores:
        record = self._fresh_record()
        nodes = nodes_of(record.snapshot, rows) if record.asked_score else None
        if nodes is not None:
            self._prepare_asked(nodes)
        self.state.meter.point_ended(PRE_SCORE)
        total = record.score[rows]
        if isinstance(rows, slice):
            total = total.copy()  # The record changes with the next pod.
        try:
            for kept in record.varying:
                total += self._normalized(kept, rows)
            if nodes is not None:
                self._add_asked(total, nodes)
        except ScoreError as error:
            raise FallBackToPlain from error
        return Scores(total, lambda: self._parts(rows))

    def _normalized(self, kept: NormalizedScore, rows: Rows) -> IntArray:
        scores = normalize_of(kept.step, self.state, self._pod, kept.raw()[rows])
        return checked(scores) * kept.step.weight

    def _prepare_asked(self, nodes: Nodes) -> None:
        for name, plugin in self._record.asked_pre_score:
            if not ask_pre_score(name, plugin, self.state, self._pod, nodes):
                raise FallBackToPlain

    def _add_asked(self, total: IntArray, nodes: Nodes) -> None:
        state = self.state
        for step in self._record.asked_score:
            if step.name not in state.skip_score:
                raw = score_of(step, state, self._pod, nodes)
                total += checked(normalize_of(step, state, self._pod, raw)) * step.weight

    def _parts(self, rows: Rows) -> tuple[PluginScores, ...]:
        """Every plugin's part, by asking all of them; none if one fails now."""
        record = self._record
        plain = PlainEvaluation(record.profile, self._pod, record.snapshot)
        plain.pre_filter()
        try:
            plain.verdicts(rows)  # Some scores read what Filter found.
            return plain.scores(rows).by_plugin
        except (FilterError, ScoreError):
            return ()
