"""Adds evidence to an explanation, from the snapshot on which the attempt was made."""

import msgspec

from kubestow.explain.evidence.collected import reason_evidence
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Fact
from kubestow.explain.evidence.registry import facts_of
from kubestow.explain.evidence.scores import score_parts
from kubestow.explain.evidence.spelling import find_mistakes
from kubestow.explain.explanation import (
    Explanation,
    NodeExplanation,
    NodeFilterAnswer,
    ReasonGroup,
)


def with_evidence(context: EvidenceContext, explanation: Explanation) -> Explanation:
    """The explanation with what is behind each reason, and for a pod that waits with mistakes."""
    reasons = tuple(_with_evidence(context, group) for group in explanation.reasons)
    mistakes = find_mistakes(context) if explanation.outcome == "Unschedulable" else ()
    return msgspec.structs.replace(explanation, reasons=reasons, mistakes=mistakes)


def with_node_evidence(
    context: EvidenceContext, explanation: Explanation, name: str
) -> Explanation:
    """The explanation with the facts of one node: those of every filter, and of its scores."""
    row = context.snapshot.row_of(name)
    if row is None:
        return explanation

    def filled(node: NodeExplanation) -> NodeExplanation:
        if node.name != name:
            return node
        filters = node.filters
        if isinstance(filters, tuple):
            filters = tuple(_answer(context, row, each) for each in filters)
        parts = {plugin: score_parts(context, row, plugin) for plugin in node.scores}
        return msgspec.structs.replace(node, filters=filters, score_parts=parts)

    return msgspec.structs.replace(explanation, nodes=tuple(map(filled, explanation.nodes)))


def _with_evidence(context: EvidenceContext, group: ReasonGroup) -> ReasonGroup:
    found = reason_evidence(context, group.nodes, group.reason, group.reason_code)
    return group if found is None else msgspec.structs.replace(group, evidence=found)


def _answer(context: EvidenceContext, row: int, answer: NodeFilterAnswer) -> NodeFilterAnswer:
    facts: list[Fact] = []
    for reason, code in zip(answer.reasons, answer.reason_codes, strict=True):
        facts += facts_of(context, row, reason, code)
    return msgspec.structs.replace(answer, facts=tuple(facts)) if facts else answer
