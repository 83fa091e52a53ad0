"""What differs between two decisions on one pod: whose verdicts, scores, victims or texts."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from kubestow.engine.frozen_decision import FrozenDecision, FrozenScores, FrozenStatus, NodeNames

_UNFIT: Final = frozenset(("Unschedulable", "UnschedulableAndUnresolvable"))


class AspectKind(StrEnum):
    FILTER = "filter"
    SCORE = "score"
    VICTIMS = "victims"
    TEXT = "text"
    WAKING = "waking"
    DEVICES = "devices"


class Aspect(NamedTuple):
    """One difference: of a plugin, on these nodes."""

    kind: AspectKind
    plugin: str
    nodes: tuple[str, ...] = ()

    def is_like(self, other: "Aspect") -> bool:
        return (self.kind, self.plugin) == (other.kind, other.plugin)


def aspects_of(older: FrozenDecision, newer: FrozenDecision) -> list[Aspect]:
    """All that differs. Other victims follow from other verdicts, if there are any."""
    found = [*_filter_aspects(older, newer), *_score_aspects(older, newer)]
    if older.node or newer.node:
        return found
    if not found and _victims(older) != _victims(newer):
        found.append(Aspect(AspectKind.VICTIMS, "DefaultPreemption"))
    if _post_filter_text(older) != _post_filter_text(newer):
        found.append(Aspect(AspectKind.TEXT, "PostFilter"))
    return found


def message_of(decision: FrozenDecision) -> str:
    return "" if decision.status is None else decision.status.message


def _victims(decision: FrozenDecision) -> tuple[str, tuple[str, ...]]:
    return decision.nominated_node or "", tuple(each.key for each in decision.victims)


def _post_filter_text(decision: FrozenDecision) -> str:
    return "" if decision.post_filter is None else decision.post_filter.message


# --- Verdicts -----------------------------------------------------------------------------------


def _filter_aspects(older: FrozenDecision, newer: FrozenDecision) -> Iterator[Aspect]:
    if _has_same_verdicts(older, newer):
        return
    before, after = _verdicts(older), _verdicts(newer)
    nodes: dict[str, list[str]] = {}
    for name, verdict in before.items():
        other = after.get(name)
        # A node that one search did not reach differs because of others.
        if other is not None and other != verdict:
            for plugin in sorted({verdict[0], other[0]} - {""}):
                nodes.setdefault(plugin, []).append(name)
    for plugin in _failed_plugins(older, newer):
        nodes.setdefault(plugin, [])
    for plugin, names in nodes.items():
        yield Aspect(AspectKind.FILTER, plugin, tuple(names))


def _failed_plugins(older: FrozenDecision, newer: FrozenDecision) -> Iterator[str]:
    """Plugins whose error ended one of the attempts."""
    if older.status == newer.status:
        return
    for status in (older.status, newer.status):
        if status is not None and status.code not in _UNFIT and status.plugin:
            yield status.plugin


def _has_same_verdicts(older: FrozenDecision, newer: FrozenDecision) -> bool:
    return (
        older.pre_filter == newer.pre_filter
        and older.restricted_to == newer.restricted_to
        and older.failed_node == newer.failed_node
        and _has_same_rows(older.feasible, newer.feasible)
        and len(older.rejected) == len(newer.rejected)
        and all(
            mine.status == other.status and _has_same_rows(mine.nodes, other.nodes)
            for mine, other in zip(older.rejected, newer.rejected, strict=True)
        )
    )


def _has_same_rows(mine: NodeNames, other: NodeNames) -> bool:
    return np.array_equal(mine.rows, other.rows)


def _verdicts(decision: FrozenDecision) -> dict[str, tuple[str, str]]:
    """Node → the plugin that rejects it and its reason, both empty if it fits."""
    found: dict[str, tuple[str, str]] = dict.fromkeys(decision.feasible, ("", ""))
    for group in decision.rejected:
        found |= dict.fromkeys(group.nodes, (group.status.plugin, group.status.message))
    ended_by = _ended_by(decision)
    if ended_by is not None:
        found |= dict.fromkeys(decision.absent.nodes, (ended_by.plugin, ended_by.message))
    elif decision.restricted_by:
        verdict = (decision.restricted_by[0], decision.absent.status.message)
        found |= dict.fromkeys(decision.absent.nodes, verdict)
    return found


def _ended_by(decision: FrozenDecision) -> FrozenStatus | None:
    status = decision.pre_filter
    return None if status is None or status.code == "Success" else status


# --- Scores -------------------------------------------------------------------------------------


def _score_aspects(older: FrozenDecision, newer: FrozenDecision) -> Iterator[Aspect]:
    """Raw scores of nodes that fit in both: normalised ones also depend on the other nodes."""
    mine, others = _by_plugin(older), _by_plugin(newer)
    if not mine or not others:
        return
    _, here, there = np.intersect1d(
        older.feasible.rows, newer.feasible.rows, assume_unique=True, return_indices=True
    )
    for plugin in {**mine, **others}:
        part, other = mine.get(plugin), others.get(plugin)
        if part is not None and other is not None:
            is_other = not np.array_equal(part.raw[here], other.raw[there])
        else:
            alone = part or other
            # Equal points for all nodes change nothing.
            is_other = alone is not None and bool(np.ptp(alone.weighted))
        if is_other:
            yield Aspect(AspectKind.SCORE, plugin, tuple(older.feasible))


def _by_plugin(decision: FrozenDecision) -> Mapping[str, FrozenScores]:
    return {part.plugin: part for part in decision.scores}
