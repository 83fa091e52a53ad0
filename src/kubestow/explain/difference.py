"""Why two attempts for the same pod on the same cluster come to different results.

Only what the two differ in is said: the filter that rejects a node in one of them, the plugins
whose scores made another node the best. Each attempt is read when it is made, for the nodes that
matter; so nothing large is kept until the other one is known.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.explanation import NodeExplanation
from kubestow.explain.verdicts import node_explanations, reason_groups
from kubestow.plural import counted

# Plugins named in a summary; all are in the data.
_PLUGINS_NAMED: Final = 4


class AttemptView(msgspec.Struct, frozen=True):
    """What one attempt found.

    node        the node, or "" for none
    nodes       the verdicts on the nodes that were asked about
    rejected    how many nodes each plugin rejected for each reason
    evaluated   how many nodes were filtered; `feasible` how many of them fit
    """

    node: str
    nodes: Mapping[str, NodeExplanation]
    rejected: Mapping[tuple[str, str], int]
    evaluated: int
    feasible: int


def view_of(attempt: FrozenDecision, names: Iterable[str]) -> AttemptView:
    """What an attempt says of these nodes."""
    wanted = {name for name in (*names, attempt.node) if name}
    return AttemptView(
        attempt.node,
        {each.name: each for each in node_explanations(attempt) if each.name in wanted},
        {(group.plugin, group.reason): group.count for group in reason_groups(attempt)},
        attempt.evaluated_count,
        len(attempt.feasible),
    )


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class RejectedNode(_Part, frozen=True, kw_only=True):
    """The recorded or the replayed node, rejected by the other attempt, or not looked at."""

    node: str
    is_recorded: bool  # by the recorded attempt; else by the replayed one
    plugin: str
    reasons: tuple[str, ...]


class ScoreShift(_Part, frozen=True, kw_only=True):
    """How many points more a plugin gives the replayed node than the recorded one.

    None: the plugin does not score in that attempt, or the attempt is not known. If both attempts
    have the same node, these are its own points.
    """

    plugin: str
    recorded: int | None
    replayed: int | None


class ReasonShift(_Part, frozen=True, kw_only=True):
    """How many nodes a plugin rejects for a reason."""

    plugin: str
    reason: str
    recorded: int
    replayed: int


class DecisionDifference(_Part, frozen=True, kw_only=True):
    """Why a replayed attempt differs from the recorded one.

    summary   one sentence
    rejected  a node that one attempt chose and the other rejected
    scores    plugins whose points differ, the largest change first
    reasons   reasons whose number of nodes differs
    """

    summary: str
    rejected: tuple[RejectedNode, ...] = ()
    scores: tuple[ScoreShift, ...] = ()
    reasons: tuple[ReasonShift, ...] = ()


def explain_difference(
    recorded_node: str, recorded: AttemptView | None, replayed: AttemptView
) -> DecisionDifference:
    """`recorded` is None if the recorded attempt cannot be made again."""
    pair = _Pair(recorded_node, recorded, replayed)
    return DecisionDifference(
        summary="; ".join(pair.texts()),
        rejected=tuple(pair.rejected()),
        scores=pair.score_shifts(),
        reasons=pair.reason_shifts(),
    )


class _Pair:
    def __init__(
        self, recorded_node: str, recorded: AttemptView | None, replayed: AttemptView
    ) -> None:
        self._old_node, self._new_node = recorded_node, replayed.node
        self._old, self._new = recorded, replayed

    # --- data ---

    def rejected(self) -> Iterable[RejectedNode]:
        for view, name in ((self._new, self._old_node), (self._old, self._new_node)):
            found = view.nodes.get(name) if view is not None else None
            if found is not None and found.verdict != "Feasible":
                yield RejectedNode(
                    node=name,
                    is_recorded=view is self._old,
                    plugin=found.plugin,
                    reasons=found.reasons or found.reason_codes,
                )

    def score_shifts(self) -> tuple[ScoreShift, ...]:
        old, new = self._points(self._old), self._points(self._new)
        shifts = [
            ScoreShift(plugin=plugin, recorded=old.get(plugin), replayed=new.get(plugin))
            for plugin in (old | new)
            if old.get(plugin) != new.get(plugin)
        ]
        return tuple(sorted(shifts, key=lambda each: (-_size(each), each.plugin)))

    def _points(self, view: AttemptView | None) -> dict[str, int]:
        """How many points more each plugin gives the replayed node than the recorded one.

        If both are one node, its points.
        """
        if view is None:
            return {}
        new = _scores(view, self._new_node)
        if self._old_node == self._new_node:
            return new
        old = _scores(view, self._old_node)
        return {plugin: new[plugin] - old[plugin] for plugin in new if plugin in old}

    def reason_shifts(self) -> tuple[ReasonShift, ...]:
        if self._old is None:
            return ()
        old, new = self._old.rejected, self._new.rejected
        return tuple(
            ReasonShift(
                plugin=key[0],
                reason=key[1],
                recorded=old.get(key, 0),
                replayed=new.get(key, 0),
            )
            for key in sorted(old.keys() | new.keys())
            if old.get(key, 0) != new.get(key, 0)
        )

    # --- text ---

    def texts(self) -> Iterable[str]:
        if self._old_node == self._new_node:
            yield from self._texts_of_one_node()
            return
        rejected = {each.is_recorded: each for each in self.rejected()}
        if self._old_node:
            now = rejected.get(False)
            yield _rejection(now) if now else self._lead(self._new, is_recorded=False)
        elif self._old is None:
            yield f'"{self._new_node}" fits'
        if self._new_node and self._old is not None:
            then = rejected.get(True)
            lead = self._lead(self._old, is_recorded=True)
            yield f"recorded: {_rejection(then) if then else lead}"

    def _lead(self, view: AttemptView, *, is_recorded: bool) -> str:
        """By how much the node of this attempt was ahead of the other."""
        winner, other, sign, verb = self._new_node, self._old_node, 1, "has"
        if is_recorded:
            winner, other, sign, verb = other, winner, -1, "had"
        points = self._points(view)
        if not winner:
            return f'"{other}" passed all filters, and the pod was not placed'
        if not other or not points:
            return f'"{winner}" fits'
        margin = sign * sum(points.values())
        parts = _named({plugin: sign * value for plugin, value in points.items()})
        if margin == 0:
            return f'"{winner}" {verb} the same total as "{other}"{parts}'
        return f'"{winner}" {verb} {margin} points more than "{other}"{parts}'

    def _texts_of_one_node(self) -> Iterable[str]:
        shifts, reasons = self.score_shifts(), self.reason_shifts()
        if shifts and self._old is not None:
            changes = (
                f"{each.plugin} {_or_none(each.recorded)} → {_or_none(each.replayed)}"
                for each in shifts[:_PLUGINS_NAMED]
            )
            yield f"the same node with other scores: {', '.join(changes)}"
        for each in reasons[:_PLUGINS_NAMED]:
            yield (
                f"{each.plugin} rejects {counted(each.replayed, 'node')}, "
                f"recorded {each.recorded}: {each.reason}"
            )
        old, new = self._old, self._new
        if old is not None and old.evaluated != new.evaluated:
            were = "was" if new.evaluated == 1 else "were"
            yield f"{counted(new.evaluated, 'node')} {were} looked at, recorded {old.evaluated}"
        elif not reasons and not (shifts and old is not None):
            if self._new_node:
                yield f'"{self._new_node}" is chosen in both; the nodes looked at or totals differ'
            else:
                yield "no node fits; the nodes looked at, the message or the pods to evict differ"


def _scores(view: AttemptView, name: str) -> dict[str, int]:
    node = view.nodes.get(name)
    if node is None or node.total is None:
        return {}
    return {plugin: score.weighted for plugin, score in node.scores.items()}


def _size(shift: ScoreShift) -> int:
    return abs((shift.replayed or 0) - (shift.recorded or 0))


def _or_none(points: int | None) -> str:
    return "none" if points is None else str(points)


def _named(points: Mapping[str, int]) -> str:
    """The plugins that gave different points, the largest difference first."""
    differing = sorted(
        ((plugin, value) for plugin, value in points.items() if value),
        key=lambda entry: (-abs(entry[1]), entry[0]),
    )
    if not differing:
        return ""
    shown = ", ".join(f"{plugin} {value:+}" for plugin, value in differing[:_PLUGINS_NAMED])
    more = len(differing) - _PLUGINS_NAMED
    return f" ({shown}{f' and {more} more' if more > 0 else ''})"


def _rejection(node: RejectedNode) -> str:
    reasons = ", ".join(node.reasons)
    if node.plugin:
        verb = "rejected" if node.is_recorded else "rejects"
        return f'{node.plugin} {verb} "{node.node}": {reasons}'
    verb = "was" if node.is_recorded else "is"
    return f'"{node.node}" {verb} not looked at{f": {reasons}" if reasons else ""}'
