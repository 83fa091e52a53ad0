"""One attempt that reuses the answers kept for the pod's frame, and for its shape if there are."""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, Rows
from kubestow.engine.equivalence.asked import Skipped
from kubestow.engine.equivalence.extended_record import ExtendedRecord
from kubestow.engine.equivalence.frame_record import FrameRecord
from kubestow.engine.equivalence.passing_nodes import PassingBook, PassingNodes
from kubestow.engine.equivalence.preparation import ask_pre_score
from kubestow.engine.equivalence.record import Record
from kubestow.engine.equivalence.verdicts import (
    FallBackToPlain,
    checked,
    merged,
    override,
    verdicts_of,
)
from kubestow.engine.evaluation import PlainEvaluation
from kubestow.errors import BudgetSpentError, SetAsideError
from kubestow.framework.diagnosis import PASSED, Rejections, decode_status
from kubestow.framework.faults import pass_on_exit
from kubestow.framework.metrics import PRE_FILTER, PRE_SCORE
from kubestow.framework.plugin import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubestow.framework.profile import FilterStep
from kubestow.framework.reuse import NOTHING_KNOWN, RowAnswers, RowCodes, Rule
from kubestow.framework.runner import (
    FilterError,
    PluginScores,
    PreFilterOutcome,
    ScoreError,
    Scores,
    Verdicts,
    code_of_one,
    filter_of,
    final_scores_of,
    normalize_of,
    pre_filter_of,
    run_filters_on_one,
    score_of,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of


class Kept:
    """What is kept for a pod, and what is left to ask: the same for many pods in a row.

    skipped     the plugins that have nothing to say about the pod
    answering   a plugin that keeps what it answers on all rows, and the function that gives it
    """

    __slots__ = (
        "_answers",
        "_extended",
        "_extension",
        "answering",
        "frame",
        "passing",
        "record",
        "skipped",
        "steps",
    )

    def __init__(
        self,
        frame: FrameRecord,
        record: Record | None,
        skipped: Skipped,
        answered: str | None = None,
    ) -> None:
        """The record has the answers of the plugin `answered` as well."""
        self.frame = frame
        self.record = record
        self.skipped = skipped
        self.steps = frame.asked(skipped, None if record is None else record.skipped, answered)
        # Without a record, shapes differ in nothing that is kept.
        self.passing = frame.passing_book() if record is None else PassingBook()
        has_forms = record is not None and record.has_row_forms and answered is None
        self.answering = frame.plan.answering(skipped) if has_forms else None
        # What it answered on the last pod, a record with what it answers, and what is kept with it.
        self._answers: RowAnswers | None = None
        self._extension: ExtendedRecord | None = None
        self._extended: Kept | None = None

    def extended(self, pod: PodInfo) -> "Kept":
        """What is kept, with the answers of that plugin in the record. It is made where they are
        the same for the second pod in a row: then others will come."""
        assert self.answering is not None
        answers = self.answering[1](pod)
        extended, record = self._extended, self._extension
        if extended is None or record is None or record.is_spoilt:
            if answers is None or answers is not self._answers:
                self._answers = answers
                return self
            assert self.record is not None
            record = ExtendedRecord(self.frame, self.record, self.answering[0], answers)
            self._extension = record
            extended = self._extended = Kept(self.frame, record, self.skipped, record.name)
        elif record.answers is not answers:
            if answers is None:
                return self
            record.take(answers)
            extended.passing.forget()
        return extended


class ReusingEvaluation:
    def __init__(self, kept: Kept, pod: PodInfo) -> None:
        self._frame = frame = kept.frame
        self._record = record = kept.record
        self._steps = steps = kept.steps
        skipped = steps.skipped
        self._is_fresh = False
        self._pod = pod
        # With what the plugins of the frame and the record stored.
        stored = None if record is None else record.state
        self.state = frame.state.joined(stored, skipped.filter, skipped.score)
        # Among them those that the attempt's PreFilter will leave out.
        self._filters = steps.filter
        self._row_codes: Sequence[tuple[int, RowCodes]] = ()
        self._passing = kept.passing

    def passing_share(self) -> float:
        frame, record = self._fresh()
        rejected_count = frame.rejected_count + (0 if record is None else record.rejected_count)
        share = 1 - min(rejected_count / max(len(frame.failed_by), 1), 1.0)
        return min(share, frame.seen_share) if self._filters else share

    def note_search(self, found_count: int, evaluated_count: int) -> None:
        self._frame.seen_share = found_count / evaluated_count
        self._passing.searched(evaluated_count)

    def passes_everywhere(self) -> bool:
        if self._filters:
            return False
        frame, record = self._fresh()
        return not frame.rejected_count and (record is None or not record.rejected_count)

    def passes_on(self, row: int) -> bool:
        if self._filters or self._verdict_of(row) != (PASSED, 0):
            return False
        frame = self._frame
        return not frame.rejected_count or bool(frame.failed_by[row] == PASSED)

    def rejections(self) -> Rejections | None:
        frame, record = self._fresh()
        if record is None or record.rejected_count < len(record.failed_by) or frame.rejected_count:
            return None
        found = record.rejections()
        if found is not None and self._filters:
            # A filter that is asked counts where it comes before the one that rejects.
            first = self._filters[0].filter_index
            if any(first < filter_index for filter_index, _ in found.counts):
                return None
        return found

    def passing_nodes(self) -> PassingNodes | None:
        if not self._filters:
            frame, record = self._fresh()
            log = frame.snapshot.log
            changes = 0 if record is None else record.verdict_changes
            state = changes, log.node_end, log.epoch
            return self._passing.find((), frame.snapshot, self, state)
        asked: list[tuple[int, RowCodes]] = []
        try:
            for step in self._filters:
                codes = self._rule(step).row_codes()
                if codes is None:
                    return None
                asked.append((step.filter_index, codes))
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            pass_on_exit(error)
            raise FallBackToPlain from error
        self._row_codes = asked
        self._fresh()
        basis = tuple([(index, codes.basis) for index, codes in asked])
        return self._passing.find(basis, self._frame.snapshot, self)

    def first_failure(self, row: int) -> tuple[int, int]:
        """The index of the first filter to reject the node, or PASSED, and its code. Call
        `passing_nodes` first."""
        record, failed_by, code = self._record, PASSED, 0
        if record is not None and record.rejected_count:
            failed_by, code = record.failed_by.item(row), record.codes.item(row)
        failed_by, code = self._or_of_frame(row, failed_by, code)
        for index, codes in self._row_codes:
            if failed_by != PASSED and failed_by < index:
                break
            found = codes.code_of(row)
            if found:
                return index, found
        return failed_by, code

    def status_on(self, row: int) -> Status | None:
        verdict = self._verdict_of(row)
        if verdict is None:
            node = SimulatedNode(self._frame.snapshot, row)
            return run_filters_on_one(self._frame.profile, self.state, self._pod, node)
        return self._first_status(row, *verdict)

    def _verdict_of(self, row: int) -> tuple[int, int] | None:
        """The verdict that the record has for a node; None if it has none for a single one.

        What is kept for other nodes is not brought up to date: once a node fits again after an
        eviction, all of them would be scored.
        """
        try:
            self._frame.catch_up()
            return (PASSED, 0) if self._record is None else self._record.verdict_of(row)
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            self._give_up(error)

    def _first_status(self, row: int, failed_by: int, code: int) -> Status | None:
        """The status of the first filter to reject the node; `failed_by` is that of the record."""
        frame = self._frame
        failed_by, code = self._or_of_frame(row, failed_by, code)
        node = SimulatedNode(frame.snapshot, row) if self._filters else None
        for step in self._filters:
            if node is None or (failed_by != PASSED and failed_by < step.filter_index):
                break
            try:
                found = code_of_one(step, self.state, self._pod, node)
            except FilterError as error:
                return error.status
            if found:
                failed_by, code = step.filter_index, found
                break
        if failed_by == PASSED:
            return None
        return decode_status(frame.profile.filter[failed_by], self.state, code)

    def _or_of_frame(self, row: int, failed_by: int, code: int) -> tuple[int, int]:
        """The first of this verdict on the row and that of the frame."""
        frame = self._frame
        if frame.rejected_count:
            of_frame = frame.failed_by.item(row)
            if of_frame != PASSED and (failed_by == PASSED or of_frame < failed_by):
                return of_frame, frame.codes.item(row)
        return failed_by, code

    def depends_on_shape(self) -> bool:
        record = self._record
        # What a plugin answers on rows may be about more of the pod.
        return (
            record is not None
            and record.row_codes is None
            and not self._filters
            and not self._steps.pre_filter
        )

    def _fresh(self) -> tuple[FrameRecord, Record | None]:
        """What is kept, up to date. A pod that gets its nominated node does not need it."""
        if not self._is_fresh:
            try:
                self._frame.catch_up()
                if self._record is not None:
                    self._record.catch_up()
            except BaseException as error:  # A fault in one plugin must not stop the scheduler.
                self._give_up(error)
            self._is_fresh = True
        return self._frame, self._record

    def _give_up(self, error: BaseException) -> NoReturn:
        # Part of what is kept may be of before the change: it is made again for the next pod.
        self._frame.has_failed = True
        if self._record is not None:
            self._record.is_spoilt = True
        if isinstance(error, BudgetSpentError | SetAsideError):
            raise error  # Asking every plugin would only take longer.
        pass_on_exit(error)
        raise FallBackToPlain from error

    def pre_filter(self) -> PreFilterOutcome:
        if self._steps.pre_filter:
            self._ask_pre_filter()
        filters = self._filters
        if filters:
            try:
                self._filters = [step for step in filters if not self._rule(step).passes_all()]
            except BaseException as error:  # A fault in one plugin must not stop the scheduler.
                pass_on_exit(error)
                raise FallBackToPlain from error
        return self._frame.outcome

    def _ask_pre_filter(self) -> None:
        state, nodes = self.state, nodes_of(self._frame.snapshot)
        skipped: list[str] = []
        for name, plugin in self._steps.pre_filter:
            answer = pre_filter_of(name, plugin, state, self._pod, nodes)
            state.sampler.plugin_ended(name, PRE_FILTER, answer)
            if answer is None:
                continue
            if not isinstance(answer, Status) or answer.code != Code.SKIP:
                raise FallBackToPlain
            skipped.append(name)
        if skipped:
            state.skip_filter = state.skip_filter.union(skipped)
            self._filters = [step for step in self._filters if step.name not in skipped]

    def _rule(self, step: FilterStep) -> Rule:
        rule = step.rule
        return NOTHING_KNOWN if rule is None else rule(self.state, self._pod)

    def verdicts(self, rows: Rows) -> Verdicts:
        if not self._filters:
            return self._kept_verdicts(rows)
        frame, record = self._fresh()
        has_rejected = frame.rejected_count or (record is not None and record.rejected_count)
        verdicts = self._kept_verdicts(rows)
        nodes = nodes_of(frame.snapshot, rows)
        for step in self._filters:
            # Only where no earlier filter has rejected the node already.
            positions = None
            if step.per_node and has_rejected:
                failed_by = verdicts.failed_by
                positions = np.flatnonzero((failed_by == PASSED) | (failed_by > step.filter_index))
            asked = nodes if positions is None else nodes.subset(positions)
            try:
                found = filter_of(step.plugin, step.name, self.state, self._pod, asked)
            except FilterError as error:
                raise FallBackToPlain from error
            if found is None:
                continue
            if positions is None:
                more = verdicts_of(found, step.filter_index, verdicts.failed_by.dtype)
                verdicts = merged(verdicts, more) if has_rejected else more
            else:
                verdicts = Verdicts(verdicts.failed_by.copy(), verdicts.codes.astype(np.int64))
                override(*verdicts, found, step.filter_index, positions)
            has_rejected = True
        return verdicts

    def _kept_verdicts(self, rows: Rows) -> Verdicts:
        """The verdicts that are kept; of a slice, the kept arrays themselves where possible."""
        frame, record = self._fresh()
        if record is not None and record.rejected_count:
            of_record = _shown(record, rows)
            return merged(_shown(frame, rows), of_record) if frame.rejected_count else of_record
        return _shown(frame, rows)

    def scores(self, rows: Rows) -> Scores:
        frame, record = self._fresh()
        nodes = nodes_of(frame.snapshot, rows) if self._steps.score else None
        if nodes is not None:
            for name, plugin in self._steps.pre_score:
                if not ask_pre_score(name, plugin, self.state, self._pod, nodes):
                    raise FallBackToPlain
        self.state.meter.point_ended(PRE_SCORE)
        kept, constant = (frame if record is None else record).score[rows], frame.constant
        adds_frame = record is not None and frame.has_scores
        if nodes is None and not adds_frame and not frame.varying:
            # A copy: what is kept changes with the next pod.
            return Scores(kept.copy(), constant, self._parts, rows)
        total = kept.astype(np.int64)
        if adds_frame:
            total += frame.score[rows]
        try:
            for varying in frame.varying:
                scores = normalize_of(varying.step, self.state, self._pod, varying.raw(rows))
                total += checked(scores) * varying.step.weight
            if nodes is not None:
                constant += self._add_asked(total, nodes)
        except ScoreError as error:
            raise FallBackToPlain from error
        return Scores(total, constant, self._parts, rows)

    def _add_asked(self, total: IntArray, nodes: Nodes) -> int:
        """Returns what has to be added to the score of every node."""
        state, pod, count = self.state, self._pod, len(total)
        constant = 0
        for step in self._steps.score:
            if step.name in state.skip_score:
                continue
            if (final_scores := step.final_scores) is not None:
                scores = final_scores_of(step, final_scores, state, pod, nodes, count)
                if scores is None:
                    state.skip_score |= {step.name}
                    continue
                if isinstance(scores, int):
                    if not MIN_NODE_SCORE <= scores <= MAX_NODE_SCORE:
                        raise FallBackToPlain
                    constant += scores * step.weight
                    continue
            else:
                raw = score_of(step, state, pod, nodes)
                scores = normalize_of(step, state, pod, raw)
            checked(scores)
            total += scores if step.weight == 1 else scores * step.weight
        return constant

    def _parts(self, rows: Rows) -> tuple[PluginScores, ...]:
        """Every plugin's part, by asking all of them; none if one fails now."""
        frame = self._frame
        plain = PlainEvaluation(frame.profile, self._pod, frame.snapshot)
        plain.pre_filter()
        try:
            plain.verdicts(rows)  # Some scores read what Filter found.
            return plain.scores(rows).by_plugin
        except (FilterError, ScoreError):
            return ()


def _shown(kept: FrameRecord | Record, rows: Rows) -> Verdicts:
    """What is kept of these rows, read-only: it is the kept arrays themselves for a slice."""
    verdicts = Verdicts(kept.failed_by[rows], kept.codes[rows])
    for array in verdicts:
        array.flags.writeable = False
    return verdicts
