"""The facts of all nodes that have one reason: those alike once, the nearest first."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from kubestow.explain.evidence.amounts import amount_words
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Fact, NodeFacts, ReasonEvidence, Shortage
from kubestow.explain.evidence.registry import FAMILIES, facts_of
from kubestow.explain.evidence.resources import closest_rows
from kubestow.plural import counted

# Different sets of facts that are looked for, that are shown, and nodes that are named for each.
EXAMINED_MAX: Final = 64
SHOWN_MAX: Final = 8
NODES_MAX: Final = 8
# Sets of facts, facts of one set, and nodes of one set, in a text.
_IN_TEXT: Final = 2
_FACTS_IN_TEXT: Final = 3
_NODES_IN_TEXT: Final = 3


def reason_evidence(
    context: EvidenceContext, nodes: Sequence[str], reason: str, reason_code: str
) -> ReasonEvidence | None:
    """The facts behind a reason of these nodes; None if there are none for its code."""
    family = FAMILIES.get(reason_code)
    found = [context.snapshot.row_of(name) for name in nodes]
    rows = [row for row in found if row is not None]
    if family is None or not rows:
        return None
    is_amount = family.alike is None and reason_code.startswith(("Insufficient", "TooManyPods"))
    if is_amount:
        rows = closest_rows(context, np.array(rows, np.intp), reason).tolist()
    groups = _groups(context, rows, reason, reason_code)
    if not groups:
        return None
    if not is_amount:
        groups.sort(key=lambda each: -each.count)
    return ReasonEvidence(
        text=_text(groups, len(rows)),
        groups=tuple(groups[:SHOWN_MAX]),
        examined=sum(each.count for each in groups),
    )


def _groups(
    context: EvidenceContext, rows: Sequence[int], reason: str, reason_code: str
) -> list[NodeFacts]:
    """Nodes by their facts, in the order of the rows."""
    by_facts: dict[tuple[Fact, ...], list[str]] = {}
    for alike in _alike(context, rows, reason_code)[:EXAMINED_MAX]:
        facts = facts_of(context, alike[0], reason, reason_code)
        if facts:
            names = [context.snapshot.names[row] for row in alike]
            by_facts.setdefault(facts, []).extend(names)
    return [
        NodeFacts(
            nodes=tuple(names[:NODES_MAX]),
            count=len(names),
            facts=facts,
            text=facts_text(facts),
        )
        for facts, names in by_facts.items()
    ]


def _alike(context: EvidenceContext, rows: Sequence[int], reason_code: str) -> list[list[int]]:
    """The rows, those with equal facts together."""
    alike = FAMILIES[reason_code].alike
    if alike is None:
        return [[row] for row in rows[:EXAMINED_MAX]]
    found: dict[Hashable, list[int]] = {}
    nodes, names = context.snapshot.nodes, context.snapshot.names
    for row in rows:
        # Pods that are nominated to a node may change what its filters found.
        key = (row,) if context.ahead_on(names[row]) else (None, alike(context, nodes[row]))
        found.setdefault(key, []).append(row)
    return list(found.values())


# --- texts ---


def _text(groups: Sequence[NodeFacts], count: int) -> str:
    first = groups[0].facts[0]
    if isinstance(first, Shortage) and len(groups[0].facts) == 1:
        return _amount_text(first, groups[0].nodes[0], count)
    parts = [f"{_facts_text(each.facts)} ({_nodes_text(each)})" for each in groups[:_IN_TEXT]]
    if len(groups) == 1 and groups[0].count == count:
        parts = [_facts_text(groups[0].facts)]
    more = len(groups) - _IN_TEXT
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _amount_text(best: Shortage, node: str, count: int) -> str:
    if count == 1:
        return best.text
    wanted = amount_words(best.resource, best.wanted, up=True)
    free = amount_words(best.resource, best.free)
    return f"needs {wanted} {best.resource}, the most free is {free} ({node})"


def facts_text(facts: Iterable[Fact]) -> str:
    return "; ".join(fact.text for fact in facts)


def _facts_text(facts: Sequence[Fact]) -> str:
    shown = facts_text(facts[:_FACTS_IN_TEXT])
    more = len(facts) - _FACTS_IN_TEXT
    return f"{shown}; and {more} more" if more > 0 else shown


def _nodes_text(group: NodeFacts) -> str:
    if group.count <= _NODES_IN_TEXT:
        return ", ".join(group.nodes)
    return f"{group.nodes[0]} and {counted(group.count - 1, 'other node')}"
