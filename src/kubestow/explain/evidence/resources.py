"""How much of which resource is missing (NodeResourcesFit), or too much in use (LoadAware)."""

from collections.abc import Sequence

import numpy as np

from kubestow.api.resources import PODS, amount_of
from kubestow.arrays import IntArray, IntpArray
from kubestow.config.load_aware_args import RESOURCES
from kubestow.explain.evidence.amounts import amount_text
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import Load, Shortage
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.load_aware import LoadAware
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import Demand

_REASON = "Insufficient "


def demands_of(context: EvidenceContext) -> Sequence[Demand]:
    """What the pod asks for, as its profile counts it."""

    def read() -> Sequence[Demand]:
        plugin = context.plugin(NodeResourcesFit)
        if plugin is None:
            return ()
        state = CycleState()
        plugin.pre_filter(state, context.pod, nodes_of(context.snapshot))
        return plugin.fit_request(state).demands

    return context.once("demands", read)


def too_many_pods(view: NodeView, _: str) -> list[Shortage]:
    allowed, count = view.info.allocatable.allowed_pods, len(view.info.pods)
    if count < allowed:
        return []
    return [
        Shortage(
            resource=PODS,
            wanted="1",
            free=str(allowed - count),
            allocatable=str(allowed),
            missing=str(count + 1 - allowed),
            held=str(len(view.ahead)),
        )
    ]


def insufficient(view: NodeView, reason: str) -> list[Shortage]:
    """The shortage of the resource that the reason names."""
    name = reason.removeprefix(_REASON)
    return [shortage(view, each) for each in demands_of(view.context) if each.name == name]


def shortage(view: NodeView, demand: Demand) -> Shortage:
    name, info = demand.name, view.info
    offered, used = amount_of(name, info.allocatable), amount_of(name, info.requested)
    held = sum(amount_of(name, pod.accounted.requested) for pod in view.ahead)
    return Shortage(
        resource=name,
        wanted=amount_text(name, demand.amount),
        free=amount_text(name, offered - used),
        allocatable=amount_text(name, offered),
        missing=amount_text(name, demand.amount - (offered - used)),
        held=amount_text(name, held),
    )


def closest_rows(context: EvidenceContext, rows: IntpArray, reason: str) -> IntpArray:
    """The rows in the order of how little is missing, by what their pods have."""
    missing = _missing(context, rows, reason)
    return rows[np.argsort(missing, kind="stable")]


def _missing(context: EvidenceContext, rows: IntpArray, reason: str) -> IntArray:
    nodes = nodes_of(context.snapshot, rows)
    if not reason.startswith(_REASON):
        return nodes.pod_count + 1 - nodes.allowed_pods
    name = reason.removeprefix(_REASON)
    column = nodes.resource_column(name)
    if column is None:
        return np.zeros(len(rows), np.int64)
    # The pod needs the same everywhere.
    return nodes.requested(column) - nodes.allocatable(column)


def too_much_in_use(view: NodeView, _: str) -> list[Load]:
    plugin = view.context.plugin(LoadAware)
    if plugin is None:
        return []
    plugin.load.refresh(view.context.snapshot)
    found = plugin.load.excess(view.row)
    if found is None:
        return []
    name, used = RESOURCES[found.threshold.place], found.used + found.pending
    limit = found.allowed * found.allocatable // 100
    return [
        Load(
            resource=name,
            statistic=found.threshold.statistic,
            used=amount_text(name, found.used),
            pending=amount_text(name, found.pending),
            allocatable=amount_text(name, found.allocatable),
            missing=amount_text(name, used - limit),
            percent=round(used * 100 / found.allocatable, 1),
            allowed=found.allowed,
            threshold=found.threshold.percent,
        )
    ]
