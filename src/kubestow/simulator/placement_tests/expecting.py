"""Reads expectations: fields to the functions that judge them, and to words."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from kubestow.simulator.placement_tests import judge
from kubestow.simulator.placement_tests.cases import Expectation, Judge
from kubestow.simulator.placement_tests.document import (
    ApartEntry,
    BudgetEntry,
    EvictedEntry,
    ExpectEntry,
    GangsEntry,
    GangState,
    HeadroomEntry,
    MessageEntry,
    OnNodesEntry,
    PendingEntry,
    PlacedEntry,
    SpreadEntry,
    TogetherEntry,
)
from kubestow.simulator.scenario.action_reading import ActionReader
from kubestow.simulator.scenario.actions import NodeTarget, PodTarget
from kubestow.simulator.scenario.document import Nodes, Pods
from kubestow.simulator.scenario.source import FieldPath

_ALL: Final = "all"


class _Read(NamedTuple):
    """An expectation in words, and what judges it."""

    kind: str
    text: str
    judge: Judge


class ExpectationReader:
    """Reads the expectations of one text."""

    def __init__(self, reader: ActionReader) -> None:
        self._reader = reader
        self._source = reader.source

    def expectations(
        self, path: FieldPath, given: ExpectEntry | Sequence[ExpectEntry]
    ) -> list[Expectation]:
        """One or several; InputError with the place of what is wrong."""
        if isinstance(given, ExpectEntry):
            return [self._expectation(path, given)]
        return [self._expectation((*path, index), each) for index, each in enumerate(given)]

    def _expectation(self, path: FieldPath, entry: ExpectEntry) -> Expectation:
        found = list(self._kinds(path, entry))
        if len(found) != 1:
            names = " and ".join(each.kind for each in found) or "none of them"
            kinds = (field.encode_name for field in msgspec.structs.fields(ExpectEntry))
            expected = ", ".join(kinds)
            raise self._source.error(path, f"found {names}, expected one of {expected}")
        (read,) = found
        place = (*path, read.kind)
        field, line = self._source.field(place), self._source.line(place)
        return Expectation(read.kind, field, line, read.text, read.judge)

    def _kinds(self, path: FieldPath, entry: ExpectEntry) -> Iterator[_Read]:
        """The expectations of an entry, in the order of the fields."""
        if entry.placed is not None:
            yield self._placed((*path, "placed"), entry.placed)
        if entry.pending is not None:
            yield self._pending((*path, "pending"), entry.pending)
        if entry.on is not None:
            yield self._on((*path, "on"), entry.on)
        if entry.never_on is not None:
            yield self._never_on((*path, "neverOn"), entry.never_on)
        if entry.spread is not None:
            yield self._spread((*path, "spread"), entry.spread)
        if entry.together is not None:
            yield self._together((*path, "together"), entry.together)
        if entry.apart is not None:
            yield self._apart((*path, "apart"), entry.apart)
        if entry.evicted is not None:
            yield self._evicted((*path, "evicted"), entry.evicted)
        if entry.preempted is not None:
            yield self._preempted((*path, "preempted"), entry.preempted)
        if entry.headroom is not None:
            yield self._headroom((*path, "headroom"), entry.headroom)
        if entry.gangs is not None:
            yield self._gangs(entry.gangs)
        if entry.budget is not None:
            yield self._budget(entry.budget)
        if entry.message is not None:
            yield self._message((*path, "message"), entry.message)

    # --- With a node, and without -------------------------------------------------------------

    def _placed(self, path: FieldPath, given: str | PlacedEntry) -> _Read:
        entry = PlacedEntry(pods=given) if isinstance(given, str) else given
        pods = self._pods(path, given, entry.pods)
        within_s = None
        text = f"{_words(pods)} placed"
        if entry.at_least is not None:
            text = f"at least {entry.at_least} of {_words(pods)} placed"
            if entry.within is not None:
                raise self._source.error((*path, "within"), "found with atLeast; give one of them")
        if entry.within is not None:
            within_s = self._source.seconds((*path, "within"), entry.within)
            text += f" within {entry.within}"
        judged = partial(
            judge.judge_placed, target=pods, within_s=within_s, at_least=entry.at_least
        )
        return _Read("placed", text, judged)

    def _pending(self, path: FieldPath, given: str | PendingEntry) -> _Read:
        entry = PendingEntry(pods=given) if isinstance(given, str) else given
        pods = self._pods(path, given, entry.pods)
        count = "" if entry.count is None else f"{entry.count} of "
        reason = "" if entry.reason is None else f': "{entry.reason}"'
        judged = partial(judge.judge_pending, target=pods, reason=entry.reason, count=entry.count)
        return _Read("pending", f"{count}{_words(pods)} waiting{reason}", judged)

    def _message(self, path: FieldPath, entry: MessageEntry) -> _Read:
        pods = self._pods(path, entry, entry.pods)
        judged = partial(judge.judge_message, target=pods, text=entry.contains)
        return _Read("message", f'{_words(pods)} waiting with "{entry.contains}"', judged)

    # --- Where --------------------------------------------------------------------------------

    def _on(self, path: FieldPath, entry: OnNodesEntry) -> _Read:
        pods, nodes = self._pods_and_nodes(path, entry)
        text = f"{_words(pods)} on {_node_words(entry.nodes)}"
        return _Read("on", text, partial(judge.judge_on, target=pods, nodes=nodes))

    def _never_on(self, path: FieldPath, entry: OnNodesEntry) -> _Read:
        pods, nodes = self._pods_and_nodes(path, entry)
        text = f"{_words(pods)} never on {_node_words(entry.nodes)}"
        return _Read("neverOn", text, partial(judge.judge_never_on, target=pods, nodes=nodes))

    def _pods_and_nodes(self, path: FieldPath, entry: OnNodesEntry) -> tuple[PodTarget, NodeTarget]:
        pods = self._pods(path, entry, entry.pods)
        return pods, self._nodes((*path, "nodes"), entry.nodes)

    def _spread(self, path: FieldPath, entry: SpreadEntry) -> _Read:
        pods = self._pods(path, entry, entry.pods)
        nodes = None if entry.nodes is None else self._nodes((*path, "nodes"), entry.nodes)
        text = f"{_words(pods)} spread over {entry.over} with a skew of at most {entry.max_skew}"
        judged = partial(
            judge.judge_spread,
            target=pods,
            over=entry.over,
            max_skew=entry.max_skew,
            nodes=nodes,
        )
        return _Read("spread", text, judged)

    def _together(self, path: FieldPath, given: str | TogetherEntry) -> _Read:
        entry = TogetherEntry(pods=given) if isinstance(given, str) else given
        pods = self._pods(path, given, entry.pods)
        text = f"{_words(pods)} in one {entry.over}"
        return _Read("together", text, partial(judge.judge_together, target=pods, over=entry.over))

    def _apart(self, path: FieldPath, given: str | ApartEntry) -> _Read:
        entry = ApartEntry(pods=given) if isinstance(given, str) else given
        pods = self._pods(path, given, entry.pods)
        others = None
        text = f"no two of {_words(pods)} in one {entry.over}"
        if entry.others is not None:
            others = self._reader.pods((*path, "from"), entry.others)
            text = f"{_words(pods)} in no {entry.over} of {_words(others)}"
        judged = partial(judge.judge_apart, target=pods, over=entry.over, others=others)
        return _Read("apart", text, judged)

    # --- What happened ------------------------------------------------------------------------

    def _evicted(self, path: FieldPath, given: str | EvictedEntry) -> _Read:
        pods, at_most, words = self._lost(path, given)
        judged = partial(judge.judge_evicted, target=pods, at_most=at_most)
        return _Read("evicted", f"{words} evicted", judged)

    def _preempted(self, path: FieldPath, given: str | EvictedEntry) -> _Read:
        pods, at_most, words = self._lost(path, given)
        judged = partial(judge.judge_preempted, target=pods, at_most=at_most)
        return _Read("preempted", f"{words} preempted", judged)

    def _lost(self, path: FieldPath, given: str | EvictedEntry) -> tuple[PodTarget, int, str]:
        entry = EvictedEntry() if isinstance(given, str) else given
        pods = self._pods(path, entry, entry.pods)
        number = f"at most {entry.at_most}" if entry.at_most else "none"
        return pods, entry.at_most, f"{number} of {_words(pods)}"

    def _budget(self, given: str | BudgetEntry) -> _Read:
        entry = given
        if isinstance(entry, str):
            entry = BudgetEntry() if entry == _ALL else BudgetEntry(name=entry)
        text = f"{entry.name or 'all disruption budgets'} never violated"
        judged = partial(judge.judge_budget, name=entry.name, namespace=entry.namespace)
        return _Read("budget", text, judged)

    # --- How much -----------------------------------------------------------------------------

    def _headroom(self, path: FieldPath, entry: HeadroomEntry) -> _Read:
        if isinstance(entry.of, str):
            copies = self._reader.load((*path, "of"), entry.of)
            what = entry.of
        else:
            copies = [
                self._reader.manifest((*path, "of", index), raw)
                for index, raw in enumerate(entry.of)
            ]
            what = "these manifests"
        if not any(document.raw.get("kind") != "PriorityClass" for document in copies):
            raise self._source.error((*path, "of"), "has no objects to copy")
        judged = partial(judge.judge_headroom, copies=copies, at_least=entry.at_least)
        return _Read("headroom", f"{entry.at_least} more copies of {what} fit", judged)

    def _gangs(self, given: GangState | GangsEntry) -> _Read:
        entry = given if isinstance(given, GangsEntry) else GangsEntry(are=given)
        judged = partial(
            judge.judge_gangs, name=entry.name, namespace=entry.namespace, are=entry.are
        )
        return _Read("gangs", f"{entry.name or 'all gangs'} {entry.are}", judged)

    # --- Targets ------------------------------------------------------------------------------

    def _pods(self, path: FieldPath, given: object, pods: Pods | None) -> PodTarget:
        """The pods of an expectation; `given` is the text that is short for them, or a struct."""
        if pods is None or pods == _ALL:
            return judge.ALL_PODS
        return self._reader.pods(path if isinstance(given, str) else (*path, "pods"), pods)

    def _nodes(self, path: FieldPath, nodes: Nodes) -> NodeTarget:
        target = self._reader.nodes(path, nodes)
        if target.random is not None:
            raise self._source.error((*path, "random"), "an expectation has no random nodes")
        return target


def _words(pods: PodTarget) -> str:
    if pods == judge.ALL_PODS:
        return "all pods"
    parts = ["pods"] if pods.owner is None else [pods.owner]
    if pods.text:
        parts.append(f"with {pods.text}")
    if pods.namespace is not None:
        parts.append(f"in {pods.namespace}")
    return " ".join(parts)


def _node_words(nodes: Nodes) -> str:
    if isinstance(nodes, str):
        return nodes
    if nodes.name is not None:
        return nodes.name
    return f"nodes with {nodes.selector}" if nodes.selector is not None else "any node"
