"""Whether a plugin's filter and score answer as the framework relies on it.

The answers must be of the declared types and in range, and about each node by itself: the same if
the plugin is asked about one node, about all in another order, or again.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import decode_status
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
)
from kubestow.framework.runner import (
    FilterError,
    ScoreError,
    filter_of,
    normalize_of,
    pre_filter_of,
    pre_score_of,
    score_of,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.testing.plugin_check.loading import Side

TYPES: Final = "types and ranges of answers"
ONE: Final = "one node at a time"
ORDER: Final = "nodes in another order"
AGAIN: Final = "the same question again"
FORMS: Final = "filter_node and score_node against filter and score"
ANSWER_CHECKS: Final = (TYPES, ONE, ORDER, AGAIN, FORMS)


class AnswerFault(NamedTuple):
    """Where and how an answer is wrong."""

    check: str
    text: str


class PodAnswers(NamedTuple):
    """What a plugin answers for one pod about some nodes; None where it leaves the pod out.

    verdicts   per node the status, None where it passes
    raw        per node the score before `normalize`, None where it does not pass
    scores     the same after it
    """

    verdicts: list[Status | None] | None
    raw: list[int | None] | None
    scores: list[int | None] | None


def answer_faults(side: Side, pod: PodInfo, rng: np.random.Generator) -> Iterator[AnswerFault]:
    """What is wrong with the answers about one pod; at most one fault per check."""
    everything = nodes_of(side.snapshot)
    asked = Asked(side, pod)
    try:
        whole = asked.answers(everything)
    except PluginError as error:
        yield AnswerFault(TYPES, str(error))
        return
    order = rng.permutation(len(everything))
    for check, view, places in (
        (AGAIN, everything, np.arange(len(everything))),
        (ORDER, nodes_of(side.snapshot, order), order),
    ):
        yield from _compared(check, whole, lambda view=view: asked.answers(view), places, view)
    for row in range(len(everything)):
        view = nodes_of(side.snapshot, np.array([row]))
        found = [*_compared(ONE, whole, lambda view=view: asked.alone(view), np.array([row]), view)]
        if found:
            yield from found
            break
    yield from _form_faults(asked, everything)


def _compared(
    check: str,
    whole: PodAnswers,
    ask: Callable[[], PodAnswers],
    places: npt.NDArray[np.intp],
    view: Nodes,
) -> Iterator[AnswerFault]:
    """Compare with the entries of the whole at these places."""
    try:
        part = ask()
    except PluginError as error:
        yield AnswerFault(check, str(error))
        return
    for what, all_values, values in zip(PodAnswers._fields, whole, part, strict=True):
        if check == ONE and what == "scores":
            continue  # Scores of other nodes are part of normalising.
        wanted: list[Any] | None = None
        if all_values is not None:
            wanted = [all_values[place] for place in places.tolist()]
        if values != wanted:
            yield AnswerFault(check, f"{what} differ: {_difference(wanted, values, view)}")
            return


def _difference(first: list[Any] | None, second: list[Any] | None, view: Nodes) -> str:
    if first is None or second is None:
        return "the plugin left the pod out in one of two calls"
    pairs = zip(first, second, view.names, strict=True)
    before, after, name = next(pair for pair in pairs if pair[0] != pair[1])
    return f"{before} or {after} for node {name}"


class Asked:
    """Calls the plugin about one pod, as an attempt does. Faults are raised as PluginError."""

    def __init__(self, side: Side, pod: PodInfo) -> None:
        self.plugin: Any = side.plugin
        self.pod = pod
        self._all = nodes_of(side.snapshot)
        self._name = side.plugin.name
        profile = side.profile
        self._filter = next((one for one in profile.filter_steps if one.name == self._name), None)
        self._score = next((one for one in profile.score_steps if one.name == self._name), None)

    def answers(self, nodes: Nodes) -> PodAnswers:
        """The answers of an attempt with these nodes."""
        verdicts = self.verdicts(nodes)
        passing = _passing(verdicts, nodes)
        raw, scores = self.scores(nodes.subset(passing))
        return PodAnswers(
            verdicts, _spread(raw, passing, len(nodes)), _spread(scores, passing, len(nodes))
        )

    def alone(self, nodes: Nodes) -> PodAnswers:
        """The answers about a part of the nodes, prepared with all."""
        verdicts = self.verdicts(nodes)
        passing = _passing(verdicts, nodes)
        state = self._prepared_scores(self.feasible(self._all))
        raw = None if state is None else self._raw(state, nodes.subset(passing)).tolist()
        return PodAnswers(verdicts, _spread(raw, passing, len(nodes)), None)

    def feasible(self, nodes: Nodes) -> Nodes:
        """The nodes that the plugin does not reject: only these are scored."""
        return nodes.subset(_passing(self.verdicts(nodes), nodes))

    def verdicts(self, nodes: Nodes) -> list[Status | None] | None:
        if self._filter is None:
            return None
        state = CycleState()
        if isinstance(self.plugin, PreFilterPlugin):
            answer = pre_filter_of(self._name, self.plugin, state, self.pod, self._all)
            _raise_error(answer)
            if isinstance(answer, Status) and not answer.is_success:
                return None
        return self.filtered(state, nodes)

    def filtered(self, state: CycleState, nodes: Nodes) -> list[Status | None]:
        """The verdicts with a state that PreFilter has prepared."""
        assert self._filter is not None
        try:
            codes = filter_of(self._filter.plugin, self._name, state, self.pod, nodes)
        except FilterError as error:
            raise PluginError(error.status.message) from error
        listed: list[int] = [0] * len(nodes) if codes is None else codes.tolist()
        return [self._decoded(state, code) for code in listed]

    def scores(self, nodes: Nodes) -> tuple[list[int] | None, list[int] | None]:
        """The scores of feasible nodes, before normalising and after it."""
        state = self._prepared_scores(nodes)
        if state is None:
            return None, None
        raw = self._raw(state, nodes)
        return raw.tolist(), self._normalized(state, raw).tolist()

    def _decoded(self, state: CycleState, code: int) -> Status | None:
        if not code:
            return None
        assert isinstance(self.plugin, FilterPlugin)
        status = decode_status(self.plugin, state, code)
        _raise_error(status)
        return status

    def _prepared_scores(self, nodes: Nodes) -> CycleState | None:
        """The state after PreScore; None if the plugin does not score this pod."""
        if self._score is None or len(nodes) == 0:
            return None
        state = CycleState()
        if isinstance(self.plugin, PreScorePlugin):
            status = pre_score_of(self._name, self.plugin, state, self.pod, nodes)
            _raise_error(status)
            if status is not None and status.code is Code.SKIP:
                return None
        return state

    def _raw(self, state: CycleState, nodes: Nodes) -> npt.NDArray[np.int64]:
        assert self._score is not None
        try:
            return score_of(self._score, state, self.pod, nodes)
        except ScoreError as error:
            raise PluginError(error.status.message) from error

    def _normalized(self, state: CycleState, raw: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        assert self._score is not None
        try:
            scores = normalize_of(self._score, state, self.pod, raw.copy())
        except ScoreError as error:
            raise PluginError(error.status.message) from error
        if scores.min() < MIN_NODE_SCORE or scores.max() > MAX_NODE_SCORE:
            raise PluginError(
                f"scores from {scores.min()} to {scores.max()}, "
                f"expected {MIN_NODE_SCORE} to {MAX_NODE_SCORE}"
            )
        return scores


def has_two_forms(plugin: object) -> bool:
    """Whether the plugin answers for one node, and has another method for all of them."""
    of_filter = isinstance(plugin, NodeFilter) and type(plugin).filter is not NodeFilter.filter
    return of_filter or (
        isinstance(plugin, NodeScore) and type(plugin).score is not NodeScore.score
    )


def _form_faults(asked: Asked, nodes: Nodes) -> Iterator[AnswerFault]:
    plugin, state = asked.plugin, CycleState()
    if not has_two_forms(plugin):
        return
    if isinstance(plugin, NodeFilter):
        codes: list[int] = NodeFilter.filter(plugin, state, asked.pod, nodes).tolist()
        single = [NodeFilter.filter_status(plugin, state, code) if code else None for code in codes]
        # The form for one node does not set the plugin's name.
        whole = asked.verdicts(nodes) or []
        found = [None if one is None else one.with_plugin("") for one in whole]
        if found != single:
            yield AnswerFault(FORMS, f"verdicts differ: {_difference(single, found, nodes)}")
    if isinstance(plugin, NodeScore):
        nodes = asked.feasible(nodes)
        scores: list[int] = NodeScore.score(plugin, state, asked.pod, nodes).tolist()
        raw, _ = asked.scores(nodes)
        if raw != scores:
            yield AnswerFault(FORMS, f"scores differ: {_difference(scores, raw, nodes)}")


def _passing(verdicts: list[Status | None] | None, nodes: Nodes) -> npt.NDArray[np.intp]:
    """The positions of the nodes that pass; all if the plugin does not filter them."""
    if verdicts is None:
        return np.arange(len(nodes))
    return np.array([i for i, status in enumerate(verdicts) if status is None], np.intp)


def _spread(
    values: list[int] | None, positions: npt.NDArray[np.intp], count: int
) -> list[int | None] | None:
    """The values at their positions among all nodes."""
    if values is None:
        return None
    spread: list[int | None] = [None] * count
    for position, value in zip(positions.tolist(), values, strict=True):
        spread[position] = value
    return spread


def _raise_error(answer: object) -> None:
    if isinstance(answer, Status) and answer.code is Code.ERROR:
        raise PluginError(answer.message)
