"""Equal pods share work: verdicts and scores are kept per shape and brought up to date.

For plugins that look at one node at a time (`SharingPlugin`), what a node is worth to a pod
depends on the pod's shape and on that node alone. It is computed for all nodes when a shape comes
a second time, and then again only for the nodes that changed. Plugins that look across nodes are
asked in every cycle, on arrays they keep themselves.

    fixed    int64[3, row], depends on Node objects    first filter to reject, its code, weighted
    score local    int64[3, row], depends on pods as well    the same with filters and scores on
    pods added

The result equals that of asking every plugin, always: `tests/engine/test_shapes.py` and the
benchmark's check compare the two.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, Rows
from kubestow.cache.nodes import Nodes
from kubestow.cache.snapshot import Snapshot
from kubestow.cache.tracked import Depends, Tracked
from kubestow.engine.evaluation import Evaluation, PlainEvaluation
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED
from kubestow.framework.metrics import PRE_FILTER, PRE_SCORE
from kubestow.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    ConditionallySharing,
    PreFilterPlugin,
    PreScorePlugin,
    Restriction,
    RowFilter,
    RowScore,
    SharingPlugin,
)
from kubestow.framework.profile import FilterStep, Profile, ScoreStep
from kubestow.framework.runner import (
    FilterError,
    PluginScores,
    PreFilterOutcome,
    ScoreError,
    Scores,
    Verdicts,
    filter_of,
    label_of,
    normalize_of,
    score_of,
)
from kubestow.framework.status import Code, Status

# How many numbers all records together may hold: 3 arrays of 3 rows for every shape and node.
_NUMBERS_MAX: Final = 64_000_000
_SHAPES_MIN: Final = 4

# For so many pods the share of nodes that fit is taken to be the same.
_SHARE_KEPT_FOR: Final = 32

_FAILED_BY: Final = 0
_CODE: Final = 1
_SCORE: Final = 2

Token = tuple[Hashable | None, ...]


class Sharing:
    """Which plugins of a profile can share, worked out once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        names = dict.fromkeys(
            name
            for steps in (
                profile.pre_filter_steps,
                profile.pre_score_steps,
                [(step.name, step.plugin) for step in profile.filter_steps],
                [(step.name, step.plugin) for step in profile.score_steps],
            )
            for name, _ in steps
        )
        plugins = {name: profile.plugins[name] for name in names}
        self._never = frozenset(
            name for name, plugin in plugins.items() if not isinstance(plugin, SharingPlugin)
        )
        self._always = frozenset(names) - self._never
        # Most plugins share whatever the pod asks for; only the others are asked in every cycle.
        self._askers = [
            (name, plugin.share)
            for name, plugin in plugins.items()
            if isinstance(plugin, SharingPlugin) and isinstance(plugin, ConditionallySharing)
        ]

    def token(self, pod: PodInfo) -> Token:
        """What each plugin that has to be asked says to sharing, in a fixed order."""
        return tuple([share(pod) for _, share in self._askers])

    def shared_names(self, token: Token) -> frozenset[str]:
        """The plugins that share, given their answers."""
        refusing = (
            name for (name, _), answer in zip(self._askers, token, strict=True) if answer is None
        )
        return self._always.difference(refusing)


class ShapeRecords:
    """Everything that is kept, by profile and shape; the least recently used goes first."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sharings: dict[str, Sharing] = {}
        self._records: OrderedDict[tuple[str, int], ShapeRecord | None] = OrderedDict()

    def evaluation(self, profile: Profile, pod: PodInfo) -> Evaluation:
        """The cheapest way to evaluate this pod now."""
        record = self._record(profile, pod)
        if record is not None:
            try:
                return SharedEvaluation(record, pod)
            except (FilterError, ScoreError, AskEverybodyError):
                # It comes up again in the attempt itself, and is told there in the right words.
                pass
        return PlainEvaluation(profile, pod, self._snapshot)

    def _record(self, profile: Profile, pod: PodInfo) -> "ShapeRecord | None":
        sharing = self._sharings.get(profile.name)
        if sharing is None or sharing.profile is not profile:
            sharing = self._sharings[profile.name] = Sharing(profile)
        token = sharing.token(pod)
        key = (profile.name, pod.shape.id)
        record = self._records.get(key)
        if record is not None and record.is_valid(token):
            self._records.move_to_end(key)
            return record
        # Most shapes of an unequal workload are seen once; a record pays from the second time on.
        is_known = key in self._records
        record = build_record(sharing, token, pod, self._snapshot) if is_known else None
        self._keep(key, record)
        return record

    def _keep(self, key: tuple[str, int], record: "ShapeRecord | None") -> None:
        self._records[key] = record
        self._records.move_to_end(key)
        most = max(_NUMBERS_MAX // (9 * max(len(self._snapshot), 1)), _SHAPES_MIN)
        while len(self._records) > most:
            self._records.popitem(last=False)


class ShapeRecord:
    """What is known of how pods of one shape fare on every node."""

    def __init__(
        self,
        sharing: Sharing,
        token: Token,
        pod: PodInfo,
        snapshot: Snapshot,
        state: CycleState,
        restriction: tuple[str, Restriction] | None,
    ) -> None:
        profile = sharing.profile
        shared = sharing.shared_names(token)
        self.profile = profile
        self.snapshot = snapshot
        self.state = state
        self.restriction = restriction
        self._token = token
        self._uses = 0
        self._share = 1.0
        self._node_count = len(snapshot)
        self._pod = pod
        self.alone_pre_filter = [
            (name, plugin) for name, plugin in profile.pre_filter_steps if name not in shared
        ]
        self.alone_filter = [step for step in profile.filter_steps if step.name not in shared]
        self.alone_pre_score = [
            (name, plugin) for name, plugin in profile.pre_score_steps if name not in shared
        ]
        self.alone_score = [step for step in profile.score_steps if step.name not in shared]
        filters = [
            step
            for step in profile.filter_steps
            if step.name in shared and step.name not in state.skip_filter
        ]
        scores = [
            step
            for step in profile.score_steps
            if step.name in shared and step.name not in state.skip_score
        ]
        self._node_filters = _depending_on(Depends.NODE, filters)
        self._pod_filters = _depending_on(Depends.PODS, filters)
        plain_scores = [step for step in scores if step.normalizer is None]
        self._node_scores = _scoring_on(Depends.NODE, plain_scores)
        self._pod_scores = _scoring_on(Depends.PODS, plain_scores)
        # A score that is normalised over the feasible nodes is kept raw.
        self.normalized = [
            NormalizedScore(step, self._raw(step)) for step in scores if step.normalizer is not None
        ]
        self._row_filters = [
            (step, step.plugin) for step in self._pod_filters if isinstance(step.plugin, RowFilter)
        ]
        self._row_scores = [
            (step, step.plugin) for step in self._pod_scores if isinstance(step.plugin, RowScore)
        ]
        has_row_forms = len(self._row_filters) == len(self._pod_filters) and len(
            self._row_scores
        ) == len(self._pod_scores)
        self._fixed = Tracked[np.int64](snapshot.log, Depends.NODE, self._compute_fixed)
        self._local = Tracked[np.int64](
            snapshot.log,
            Depends.PODS,
            self._compute_local,
            self._compute_row if has_row_forms else None,
        )

    def is_valid(self, token: Token) -> bool:
        # The number of nodes is part of some scores.
        return token == self._token and len(self.snapshot) == self._node_count

    def local(self) -> IntArray:
        """int64[3, row], up to date."""
        return self._local.values()

    def passing_share(self) -> float:
        """Which share of the nodes these plugins let pass, as of not long ago."""
        if self._uses % _SHARE_KEPT_FOR == 0:
            passed = np.count_nonzero(self.local()[_FAILED_BY] == PASSED)
            self._share = passed / max(self._node_count, 1)
        self._uses += 1
        return self._share

    def _raw(self, step: ScoreStep) -> Tracked[np.int64]:
        depends = cast(SharingPlugin, step.plugin).score_depends  # only these are kept
        return Tracked[np.int64](
            self.snapshot.log, depends, lambda rows: self._score(step, self.snapshot.view(rows))
        )

    def _compute_fixed(self, rows: Rows) -> IntArray:
        nodes = self.snapshot.view(rows)
        result = np.zeros((3, len(nodes)), np.int64)
        result[_FAILED_BY] = PASSED
        self._add_filters(result, self._node_filters, nodes)
        self._add_scores(result, self._node_scores, nodes)
        return result

    def _compute_local(self, rows: Rows) -> IntArray:
        fixed = self._fixed.values()
        nodes = self.snapshot.view(rows)
        result = fixed[:, rows].copy()
        self._add_filters(result, self._pod_filters, nodes)
        self._add_scores(result, self._pod_scores, nodes)
        return result

    def _compute_row(self, row: int) -> tuple[int, int, int]:
        """One node changed, as after every pod that was placed: plain numbers are quickest."""
        failed_by, code, score = self._fixed.values()[:, row].tolist()
        info = self.snapshot.node_infos[row]
        for step, plugin in self._row_filters:
            if failed_by == PASSED or failed_by > step.filter_index:
                found = plugin.filter_row(self.state, info)
                if found:
                    failed_by, code = step.filter_index, found
        for step, plugin in self._row_scores:
            score += plugin.score_row(self.state, info) * step.weight
        return failed_by, code, score

    def _add_filters(self, result: IntArray, steps: Sequence[FilterStep], nodes: Nodes) -> None:
        for step in steps:
            codes = filter_of(step.plugin, step.name, self.state, self._pod, nodes)
            if codes is not None:
                override(result[_FAILED_BY], result[_CODE], codes, step.filter_index)

    def _add_scores(self, result: IntArray, steps: Sequence[ScoreStep], nodes: Nodes) -> None:
        for step in steps:
            result[_SCORE] += self._score(step, nodes) * step.weight

    def _score(self, step: ScoreStep, nodes: Nodes) -> IntArray:
        scores = score_of(step, self.state, self._pod, nodes)
        return scores if step.normalizer is not None else _checked(scores)


class NormalizedScore:
    """A raw score that is kept. Most are zero on all nodes, and then normalising gives a
    constant."""

    def __init__(self, step: ScoreStep, raw: Tracked[np.int64]) -> None:
        self.step = step
        self._raw = raw
        self._seen: IntArray | None = None
        self._mark = -1
        self._constant: int | None = None

    def raw(self) -> IntArray:
        return self._raw.values()

    def constant(self, state: CycleState, pod: PodInfo) -> int | None:
        """The weighted score of every node if all raw scores are zero, else None."""
        values, mark = self._raw.values(), self._raw.mark
        if mark != self._mark or values is not self._seen:
            self._seen, self._mark, self._constant = values, mark, None
            if not values.any():
                zero = normalize_of(self.step, state, pod, np.zeros(1, np.int64))
                self._constant = int(zero[0]) * self.step.weight
        return self._constant


class AskEverybodyError(Exception):
    """Something out of the ordinary came up, and how it is told depends on the order of all
    plugins: the attempt has to be made anew, asking every plugin."""


class SharedEvaluation:
    """Reads what is kept, and asks only the plugins that look across nodes."""

    def __init__(self, record: ShapeRecord, pod: PodInfo) -> None:
        self._record = record
        self._pod = pod
        self.state = record.state.shallow_copy()
        self._local = record.local()
        self._alone: list[FilterStep] = []

    @property
    def passing_share(self) -> float:
        return self._record.passing_share()

    def pre_filter(self) -> PreFilterOutcome:
        record, skipped = self._record, self.state.skip_filter
        for name, plugin in record.alone_pre_filter:
            answer = _pre_filter(plugin, self.state, self._pod, record.snapshot.view())
            if self.state.sampler is not None:
                self.state.sampler.plugin_ended(name, PRE_FILTER, label_of(answer))
            if answer is None:
                continue
            if not isinstance(answer, Status) or answer.code != Code.SKIP:
                raise AskEverybodyError
            skipped.add(name)
        self._alone = [step for step in record.alone_filter if step.name not in skipped]
        if record.restriction is None:
            return PreFilterOutcome(None, None, ())
        plugin_name, restriction = record.restriction
        return PreFilterOutcome(restriction.node_names, None, (plugin_name,))

    def verdicts(self, rows: Rows) -> Verdicts:
        failed_by, codes = self._local[_FAILED_BY, rows], self._local[_CODE, rows]
        if not self._alone:
            return Verdicts(failed_by, codes)
        failed_by, codes = failed_by.copy(), codes.copy()
        nodes = self._record.snapshot.view(rows)
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
        record = self._record
        nodes = record.snapshot.view(rows) if record.alone_score else None
        if nodes is not None:
            self._prepare_alone(nodes)
        if self.state.meter is not None:
            self.state.meter.point_ended(PRE_SCORE, Code.SUCCESS.label)
        total = self._local[_SCORE, rows].copy()
        try:
            for kept in record.normalized:
                total += self._normalized(kept, rows)
            if nodes is not None:
                self._add_alone(total, nodes)
        except ScoreError as error:
            raise AskEverybodyError from error
        return Scores(total, lambda: self._parts(rows))

    def _normalized(self, kept: "NormalizedScore", rows: Rows) -> IntArray | int:
        constant = kept.constant(self.state, self._pod)
        if constant is not None:
            return constant
        scores = normalize_of(kept.step, self.state, self._pod, kept.raw()[rows])
        return _checked(scores) * kept.step.weight

    def _prepare_alone(self, nodes: Nodes) -> None:
        for name, plugin in self._record.alone_pre_score:
            if not _prepare_score(name, plugin, self.state, self._pod, nodes):
                raise AskEverybodyError

    def _add_alone(self, total: IntArray, nodes: Nodes) -> None:
        state = self.state
        for step in self._record.alone_score:
            if step.name not in state.skip_score:
                raw = score_of(step, state, self._pod, nodes)
                total += _checked(normalize_of(step, state, self._pod, raw)) * step.weight

    def _parts(self, rows: Rows) -> tuple[PluginScores, ...]:
        """Every plugin's part, for whoever wants to know: worked out by asking them."""
        record = self._record
        plain = PlainEvaluation(record.profile, self._pod, record.snapshot)
        plain.pre_filter()
        return plain.scores(rows).by_plugin


def build_record(
    sharing: Sharing, token: Token, pod: PodInfo, snapshot: Snapshot
) -> ShapeRecord | None:
    """Let the plugins that share prepare for this shape; None if one of them rejects it
    outright."""
    shared = sharing.shared_names(token)
    profile, state = sharing.profile, CycleState()
    nodes = snapshot.view()
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
    if state.sampler is not None:
        state.sampler.plugin_ended(name, PRE_SCORE, label_of(status))
    if status is not None and status.code == Code.SKIP:
        state.skip_score.add(name)
        return True
    return status is None or status.is_success


def override(
    failed_by: IntArray,
    codes: IntArray,
    found: IntArray,
    index: int,
    positions: npt.NDArray[np.intp] | None = None,
) -> None:
    """Enter a filter's codes where it is the first to reject the node.

    With `positions` the codes are those of these nodes only.
    """
    rejected = np.flatnonzero(found)
    if len(rejected) == 0:
        return
    where = rejected if positions is None else positions[rejected]
    before = failed_by[where]
    is_first = (before == PASSED) | (before > index)
    failed_by[where[is_first]] = index
    codes[where[is_first]] = found[rejected[is_first]]


def _checked(scores: IntArray) -> IntArray:
    if len(scores) and (scores.min() < MIN_NODE_SCORE or scores.max() > MAX_NODE_SCORE):
        raise AskEverybodyError
    return scores


def _depending_on(depends: Depends, steps: Sequence[FilterStep]) -> list[FilterStep]:
    return [step for step in steps if getattr(step.plugin, "filter_depends", None) is depends]


def _scoring_on(depends: Depends, steps: Sequence[ScoreStep]) -> list[ScoreStep]:
    return [step for step in steps if getattr(step.plugin, "score_depends", None) is depends]
