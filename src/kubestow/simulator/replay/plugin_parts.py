"""Which plugins are against a node that another scheduler chose, and by how many points."""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from kubestow.api.quantity import wrap_int64
from kubestow.engine.decision import Decision
from kubestow.explain.verdicts import node_explanations


class PluginPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one plugin has to do with a number of decisions.

    decisions    how many they are
    rejected     in how many of them its filter rejects the node that was chosen
    points       how many more it gives to the node that is chosen here, in sum; `points_max` at
                 most
    without_it   in how many of them the node would be the best without its points
    """

    plugin: str
    decisions: int = 1
    rejected: int = 0
    points: int = 0
    points_max: int = 0
    without_it: int = 0


def parts_against(decision: Decision, node: str) -> Iterator[PluginPart]:
    """The plugins that are against this node in a decision for another one, or for none."""
    names = decision.node_names
    rows: list[int] = decision.feasible.tolist()
    position = {names[row]: position for position, row in enumerate(rows)}
    if node not in position:
        yield from _rejecting(decision, node)
    elif decision.scores is not None:
        mine, best = position[node], position[decision.node_name]
        total = decision.scores.total
        for part in decision.scores.by_plugin:
            weighted = part.normalized.astype(np.int64) * np.int64(wrap_int64(part.weight))
            points = int(weighted[best] - weighted[mine])
            if points > 0:
                rest = total - weighted
                yield PluginPart(
                    plugin=part.plugin,
                    points=points,
                    points_max=points,
                    without_it=int(rest[mine] >= rest.max()),
                )


def _rejecting(decision: Decision, node: str) -> Iterator[PluginPart]:
    for each in node_explanations(decision.freeze()):
        if each.name == node and each.plugin:
            yield PluginPart(plugin=each.plugin, rejected=1)


def summed(parts: Iterable[PluginPart]) -> list[PluginPart]:
    """One for each plugin, the one that explains most first."""
    found: dict[str, PluginPart] = {}
    for each in parts:
        before = found.get(each.plugin)
        found[each.plugin] = each if before is None else _sum(before, each)
    return sorted(
        found.values(),
        key=lambda each: (-each.without_it - each.rejected, -each.points, each.plugin),
    )


def _sum(one: PluginPart, other: PluginPart) -> PluginPart:
    return PluginPart(
        plugin=one.plugin,
        decisions=one.decisions + other.decisions,
        rejected=one.rejected + other.rejected,
        points=one.points + other.points,
        points_max=max(one.points_max, other.points_max),
        without_it=one.without_it + other.without_it,
    )
