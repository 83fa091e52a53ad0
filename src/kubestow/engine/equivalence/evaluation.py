"""Equal pods share work: what was found out for one pod of a shape is reused for the next.

Plugins that look at one node at a time have their verdicts and scores kept (`shape_record`);
plugins that look across nodes are asked in every cycle, on arrays they keep themselves.

The result equals that of asking every plugin, always: `tests/engine/test_shapes.py` and the
benchmark's check compare the two.
"""

import logging
from collections import OrderedDict
from typing import Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.pod_shape import PodShape
from kubestow.arrays import IntArray, Rows
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.record import (
    AskEverybodyError,
    NormalizedScore,
    ShapeRecord,
    checked,
    override,
)
from kubestow.engine.equivalence.sharing import Sharing
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.metrics import PRE_FILTER, PRE_SCORE
from kubestow.framework.plugin import PreFilterPlugin, PreScorePlugin, Restriction
from kubestow.framework.profile import FilterStep, Profile
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
    score_of,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of

log = logging.getLogger(__name__)

# How many numbers all records together may hold: two arrays of 3 numbers for every shape and node.
_NUMBERS_MAX: Final = 16_000_000
_NUMBERS_PER_NODE: Final = 6
_SHAPES_MIN: Final = 4

# Up to so many nodes, making a record costs little more than asking every plugin once.
_NODES_FEW: Final = 8192
# How many records may be made in advance, for shapes that never came again.
_CREDIT_MAX: Final = 128
# What a shape that comes again is worth in such records.
_CREDIT_FOR_RETURN: Final = 2


class ShapeRecords:
    """Everything that is kept, by profile and shape; the least recently used goes first.

    A record pays from the second pod of a shape on. Where shapes do come again it is made for the
    first pod already; where every pod has a shape of its own, that is soon given up.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sharings: dict[str, Sharing] = {}
        self._records: OrderedDict[tuple[str, PodShape], ShapeRecord | None] = OrderedDict()
        self._credit = _CREDIT_MAX

    def evaluation(self, profile: Profile, pod: PodInfo) -> Evaluation:
        """The cheapest way to evaluate this pod now."""
        try:
            record = self._record(profile, pod)
            if record is not None:
                return SharedEvaluation(record, pod)
        except Exception:  # A fault in one plugin must not stop the scheduler.
            # It comes up again in the attempt itself, and is told there in the right words.
            log.debug("Asking every plugin about pod %s", pod.key, exc_info=True)
        return PlainEvaluation(profile, pod, self._snapshot)

    def _record(self, profile: Profile, pod: PodInfo) -> ShapeRecord | None:
        key = (profile.name, pod.shape)
        record = self._records.get(key)
        if record is not None and record.profile is profile and record.is_valid(pod):
            self._records.move_to_end(key)
            if not record.is_used:
                record.is_used = True
                self._earn_credit()
            return record
        is_known = key in self._records
        self._keep(key, None)  # Stays if the record cannot be made.
        if is_known:
            self._earn_credit()
        elif not self._spend_credit():
            return None
        record = build_record(self._sharing(profile), pod, self._snapshot)
        self._keep(key, record)
        return record

    def _earn_credit(self) -> None:
        self._credit = min(self._credit + _CREDIT_FOR_RETURN, _CREDIT_MAX)

    def _spend_credit(self) -> bool:
        if len(self._snapshot) > _NODES_FEW or not self._credit:
            return False
        self._credit -= 1
        return True

    def _sharing(self, profile: Profile) -> Sharing:
        sharing = self._sharings.get(profile.name)
        if sharing is None or sharing.profile is not profile:
            sharing = self._sharings[profile.name] = Sharing(profile)
        return sharing

    def _keep(self, key: tuple[str, PodShape], record: ShapeRecord | None) -> None:
        self._records[key] = record
        self._records.move_to_end(key)
        numbers = _NUMBERS_PER_NODE * max(len(self._snapshot), 1)
        while len(self._records) > max(_NUMBERS_MAX // numbers, _SHAPES_MIN):
            self._records.popitem(last=False)


class SharedEvaluation:
    """Reads what is kept, and asks only the plugins that look across nodes."""

    def __init__(self, record: ShapeRecord, pod: PodInfo) -> None:
        self._record = record
        self._is_fresh = False
        self._pod = pod
        self.state = record.state.shallow_copy()
        self._alone: list[FilterStep] = []

    @property
    def passing_share(self) -> float:
        record = self._fresh_record()
        return 1 - record.rejected_count / max(len(record.failed_by), 1)

    @property
    def passes_everywhere(self) -> bool:
        return not self._alone and not self._fresh_record().rejected_count

    def _fresh_record(self) -> ShapeRecord:
        """The record, up to date. A pod that gets the node it was promised never asks."""
        if not self._is_fresh:
            try:
                self._record.catch_up()
            except Exception as error:  # A fault in one plugin must not stop the scheduler.
                raise AskEverybodyError from error
            self._is_fresh = True
        return self._record

    def pre_filter(self) -> PreFilterOutcome:
        record, skipped = self._record, self.state.skip_filter
        for name, plugin in record.alone_pre_filter:
            answer = _pre_filter(plugin, self.state, self._pod, nodes_of(record.snapshot))
            self.state.sampler.plugin_ended(name, PRE_FILTER, answer)
            if answer is None:
                continue
            if not isinstance(answer, Status) or answer.code != Code.SKIP:
                raise AskEverybodyError
            skipped.add(name)
        self._alone = [step for step in record.alone_filter if step.name not in skipped]
        if record.restriction is None:
            return UNRESTRICTED
        plugin_name, restriction = record.restriction
        return PreFilterOutcome(restriction.node_names, None, (plugin_name,))

    def verdicts(self, rows: Rows) -> Verdicts:
        record = self._fresh_record()
        failed_by, codes = record.failed_by[rows], record.codes[rows]
        if not self._alone:
            return Verdicts(failed_by, codes)
        failed_by, codes = failed_by.copy(), codes.copy()
        nodes = nodes_of(self._record.snapshot, rows)
        for step in self._alone:
            # Only where no earlier filter has rejected the node already.
            positions = None
            if step.evaluates_each_node:
                positions = np.flatnonzero((failed_by == PASSED) | (failed_by > step.filter_index))
            asked = nodes if positions is None else nodes.subset(positions)
            try:
                found = filter_of(step.plugin, step.name, self.state, self._pod, asked)
            except FilterError as error:
                raise AskEverybodyError from error
            if found is not None:
                override(failed_by, codes, found, step.filter_index, positions)
        return Verdicts(failed_by, codes)

    def scores(self, rows: Rows) -> Scores:
        record = self._fresh_record()
        nodes = nodes_of(record.snapshot, rows) if record.alone_score else None
        if nodes is not None:
            self._prepare_alone(nodes)
        self.state.meter.point_ended(PRE_SCORE)
        total = record.score[rows]
        if isinstance(rows, slice):
            total = total.copy()  # The record changes with the next pod.
        try:
            for kept in record.varying:
                total += self._normalized(kept, rows)
            if nodes is not None:
                self._add_alone(total, nodes)
        except ScoreError as error:
            raise AskEverybodyError from error
        return Scores(total, lambda: self._parts(rows))

    def _normalized(self, kept: NormalizedScore, rows: Rows) -> IntArray:
        scores = normalize_of(kept.step, self.state, self._pod, kept.raw()[rows])
        return checked(scores) * kept.step.weight

    def _prepare_alone(self, nodes: Nodes) -> None:
        for name, plugin in self._record.alone_pre_score:
            if not _prepare_score(name, plugin, self.state, self._pod, nodes):
                raise AskEverybodyError

    def _add_alone(self, total: IntArray, nodes: Nodes) -> None:
        state = self.state
        for step in self._record.alone_score:
            if step.name not in state.skip_score:
                raw = score_of(step, state, self._pod, nodes)
                total += checked(normalize_of(step, state, self._pod, raw)) * step.weight

    def _parts(self, rows: Rows) -> tuple[PluginScores, ...]:
        """Every plugin's part, for whoever wants to know: worked out by asking them."""
        record = self._record
        plain = PlainEvaluation(record.profile, self._pod, record.snapshot)
        plain.pre_filter()
        return plain.scores(rows).by_plugin


def build_record(sharing: Sharing, pod: PodInfo, snapshot: Snapshot) -> ShapeRecord | None:
    """Let the plugins that share prepare for this shape; None if one of them rejects it
    outright."""
    token = sharing.token(pod)
    shared = sharing.shared_names(token)
    profile, state = sharing.profile, CycleState()
    nodes = nodes_of(snapshot)
    restriction: tuple[str, Restriction] | None = None
    for name, plugin in profile.pre_filter_steps:
        if name not in shared:
            continue
        answer = _pre_filter(plugin, state, pod, nodes)
        if isinstance(answer, Restriction) and restriction is None:
            restriction = (name, answer)
        elif isinstance(answer, Status) and answer.code == Code.SKIP:
            state.skip_filter.add(name)
        elif answer is not None:
            return None
    for name, plugin in profile.pre_score_steps:
        if name in shared and not _prepare_score(name, plugin, state, pod, nodes):
            return None
    return ShapeRecord(sharing, token, pod, snapshot, state, restriction)


def _pre_filter(
    plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> Restriction | Status | None:
    try:
        return plugin.pre_filter(state, pod, nodes)
    except Exception as error:  # It fails again in the attempt itself, with the right words.
        return Status.from_error(error)


def _prepare_score(
    name: str, plugin: PreScorePlugin, state: CycleState, pod: PodInfo, nodes: Nodes
) -> bool:
    try:
        status = plugin.pre_score(state, pod, nodes)
    except Exception:  # As above.
        return False
    state.sampler.plugin_ended(name, PRE_SCORE, status)
    if status is not None and status.code == Code.SKIP:
        state.skip_score.add(name)
        return True
    return status is None or status.is_success
