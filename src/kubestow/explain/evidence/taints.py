"""Which taint keeps the pod away (TaintToleration, NodeUnschedulable)."""

from collections.abc import Hashable

from kubestow.api.node import Node
from kubestow.api.taints import HARD_EFFECTS, UNSCHEDULABLE_TAINT
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import Taint


def untolerated_taints(view: NodeView, _: str) -> list[Taint]:
    """All taints that the pod does not tolerate; the filter stops at the first."""
    context = view.context
    return [
        Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in view.node.spec.taints
        if taint.effect in HARD_EFFECTS
        and not view.pod.tolerations.accepts(taint, comparison_operators=context.compares_taints)
    ]


def cordon(view: NodeView, _: str) -> list[Taint]:
    if not view.node.spec.unschedulable:
        return []
    taint = UNSCHEDULABLE_TAINT
    return [Taint(key=taint.key, value=taint.value, effect=taint.effect, is_cordon=True)]


def same_taints(_: EvidenceContext, node: Node) -> Hashable:
    """Nodes with equal values have equal taints."""
    return tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)


def same_cordon(_: EvidenceContext, node: Node) -> Hashable:
    return node.spec.unschedulable
