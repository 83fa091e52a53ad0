"""What happens to every node, or to every domain of nodes, in turn.

The failures are those of the cluster as it is after `given`. Sets of one are tried first, then
pairs: the smallest set that breaks an expectation is the first of its size.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from kubestow.errors import InputError
from kubestow.plural import counted, plural
from kubestow.simulator.placement_tests.cases import (
    FAILURES_PER_TEST,
    CaseStep,
    ForEach,
    PlacementCase,
)
from kubestow.simulator.placement_tests.judged import JudgedCluster
from kubestow.simulator.placement_tests.results import (
    BROKEN_KEPT,
    BreakingFailure,
    ExpectationVerdict,
    ForEachResult,
)
from kubestow.simulator.scenario import actions
from kubestow.simulator.scenario.action_reading import ReadStep
from kubestow.simulator.scenario.actions import NODE_ACTIONS, UPGRADE_S
from kubestow.simulator.scenario.source import near
from kubestow.simulator.scenario.world import ScenarioWorld

_NODE: Final = "node"
_ZONE: Final = "zone"
# What happens to one, and to several.
_VERBS: Final = {
    "fail": ("fails", "fail"),
    "drain": ("is drained", "are drained"),
    "upgrade": ("is upgraded", "are upgraded"),
    "leave": ("leaves", "leave"),
    "cordon": ("is cordoned", "are cordoned"),
}


class TriedFailure(NamedTuple):
    """A set of nodes or domains; `size` is how many, `entry` which forEach of the case it is of."""

    name: str
    nodes: tuple[str, ...]
    size: int
    entry: int = 0


def failures_of(cluster: JudgedCluster) -> list[TriedFailure]:
    """All failures of the cluster's case; InputError if an entry has none or too many."""
    return [
        failure._replace(entry=entry)
        for entry, for_each in enumerate(cluster.case.for_each)
        for failure in _failures_of_entry(cluster, for_each)
    ]


def _failures_of_entry(cluster: JudgedCluster, for_each: ForEach) -> list[TriedFailure]:
    """The failures of one forEach, single ones first."""
    single = list(_single(cluster, for_each))
    if not single:
        raise InputError(f"{for_each.place}: {_nothing(cluster, for_each)}")
    sizes = range(1, for_each.at_once + 1)
    count = sum(_combination_count(len(single), size) for size in sizes)
    if count > FAILURES_PER_TEST:
        raise InputError(
            f"{for_each.place}: makes {count:,} failures, expected at most {FAILURES_PER_TEST:,}; "
            "choose some with nodes"
        )
    return [
        _joined(parts, for_each.noun)
        for size in sizes
        for parts in itertools.combinations(single, size)
    ]


def _single(cluster: JudgedCluster, for_each: ForEach) -> Iterator[TriedFailure]:
    nodes = cluster.nodes(for_each.nodes)
    if for_each.over == _NODE:
        for node in nodes:
            yield TriedFailure(node.metadata.name, (node.metadata.name,), 1)
        return
    domains: dict[str, list[str]] = {}
    for node in nodes:
        if (domain := node.metadata.labels.get(for_each.over)) is not None:
            domains.setdefault(domain, []).append(node.metadata.name)
    for domain, names in sorted(domains.items()):
        yield TriedFailure(domain, tuple(names), 1)


def _nothing(cluster: JudgedCluster, for_each: ForEach) -> str:
    """Why there is nothing that could fail, and what may be meant."""
    if for_each.over == _NODE:
        return "there are no such nodes"
    text = f'no node has the label "{for_each.over}"'
    if for_each.over.startswith("pair"):
        return f"{text}; every pair of nodes is {{{for_each.kind}: node, atOnce: 2}}"
    labels = {label for node in cluster.nodes() for label in node.metadata.labels}
    return text + near(for_each.over, [_NODE, _ZONE, *sorted(labels)])


def _joined(parts: Sequence[TriedFailure], noun: str) -> TriedFailure:
    names = " and ".join(part.name for part in parts)
    nodes = tuple(name for part in parts for name in part.nodes)
    return TriedFailure(f"{plural(noun, len(parts))} {names}", nodes, len(parts))


def _combination_count(total: int, size: int) -> int:
    count = 1
    for number in range(size):
        count = count * (total - number) // (number + 1)
    return count


def verdicts_after(cluster: JudgedCluster, failure: TriedFailure) -> list[ExpectationVerdict]:
    """Let the failure happen, and judge what is expected then; raises as `act` does."""
    case = cluster.case
    for_each = case.for_each[failure.entry]
    act = partial(_happen, for_each.kind, failure.nodes)
    place = f"{for_each.place}: {failure.name}"
    cluster.act(CaseStep(place, action=ReadStep(for_each.kind, act, place)))
    return [cluster.judge(each) for each in case.expectations]


def _happen(
    kind: str, names: Sequence[str], world: ScenarioWorld, rng: np.random.Generator
) -> None:
    if kind == "upgrade":
        actions.upgrade(world, [(name, UPGRADE_S) for name in names])
        return
    for name in names:
        NODE_ACTIONS[kind].do(world, name)


def smallest_of(broken: Sequence[BreakingFailure]) -> BreakingFailure | None:
    """One with the fewest parts, and of these with the fewest nodes; the first of equal ones."""
    return min(broken, key=lambda each: (each.size, len(each.nodes)), default=None)


def result_of(
    case: PlacementCase, tried: Sequence[TriedFailure], broken: Sequence[BreakingFailure]
) -> ForEachResult:
    """What came of the failures; `broken` are in the order in which they were tried."""
    return ForEachResult(
        what=", ".join(f"{each.kind}: {each.noun}" for each in case.for_each),
        count=len(tried),
        broken_count=len(broken),
        broken=tuple(broken[:BROKEN_KEPT]),
        smallest=smallest_of(broken),
        summary="; ".join(_summaries(case, tried, broken)),
    )


def _summaries(
    case: PlacementCase, tried: Sequence[TriedFailure], broken: Sequence[BreakingFailure]
) -> Iterator[str]:
    """A text for each forEach, those that hold first."""
    texts: list[str] = []
    for entry, for_each in enumerate(case.for_each):
        of_entry = [each for each in broken if each.entry == entry]
        if of_entry:
            count = sum(each.entry == entry for each in tried)
            texts.append(_what_breaks(for_each, count, of_entry))
        else:
            yield _what_holds(for_each)
    yield from texts


def _what_holds(for_each: ForEach) -> str:
    """For example "holds when any one zone fails"."""
    one, several = _VERBS[for_each.kind]
    if for_each.at_once == 1:
        return f"holds when any one {for_each.noun} {one}"
    count = for_each.at_once
    return f"holds when any {count} {plural(for_each.noun, count)} {several} at once"


def _what_breaks(for_each: ForEach, count: int, broken: Sequence[BreakingFailure]) -> str:
    """For example "does not hold when node gpu-3 fails: 1 of 4 pods waits for nvidia.com/gpu"."""
    smallest = smallest_of(broken)
    assert smallest is not None, for_each
    one, several = _VERBS[for_each.kind]
    verb = one if smallest.size == 1 else several
    text = f"does not hold when {smallest.name} {verb}: {smallest.verdicts[0].short}"
    if smallest.size > 1:
        text = f"holds when any one {for_each.noun} {one}; {text}"
    others = len(broken) - 1
    return text + (f"; nor in {counted(others, 'other case')} of {count:,}" if others else "")
