"""The nodes that almost fit: those on which the least is missing come first.

Every filter that rejects a node counts one; a shortage of resources counts by the share of the
request that is missing, so that a node that lacks a tenth of the memory is nearer than one with a
taint.
"""

from typing import Final

import numpy as np

from kubestow.arrays import FloatArray, IntpArray
from kubestow.explain.evidence.collected import facts_text
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Fact
from kubestow.explain.evidence.registry import facts_of
from kubestow.explain.explanation import NearMiss
from kubestow.explain.reason_codes import reason_code
from kubestow.explain.suggestions.stuck_pod import Blockers, PreparedPod
from kubestow.framework.diagnosis import decode_status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import TOO_MANY_PODS

NEAREST_MAX: Final = 5
_FIT: Final = NodeResourcesFit.name


def nearest_misses(context: EvidenceContext, attempt: PreparedPod) -> tuple[NearMiss, ...]:
    """The nearest nodes; none if PreFilter rejects the pod."""
    if attempt.pre_filter.status is not None:
        return ()
    blockers = Blockers(attempt)
    rows = np.flatnonzero(blockers.count > 0)
    if len(rows) == 0:
        return ()
    distance = _distances(attempt, blockers, rows)
    order = np.argsort(distance, kind="stable")[:NEAREST_MAX]
    return tuple(
        _near_miss(context, attempt, blockers, int(rows[place]), float(distance[place]))
        for place in order.tolist()
    )


def _near_miss(
    context: EvidenceContext, attempt: PreparedPod, blockers: Blockers, row: int, distance: float
) -> NearMiss:
    plugins: list[str] = []
    facts: list[Fact] = []
    for step in attempt.profile.filter_steps:
        code = blockers.code(step.name, row)
        if not code:
            continue
        plugins.append(step.name)
        status = decode_status(step.plugin, attempt.state, code)
        for reason in status.all_reasons:
            facts += facts_of(context, row, reason, reason_code(step.name, reason))
    return NearMiss(
        node=context.snapshot.names[row],
        distance=round(distance, 4),
        plugins=tuple(plugins),
        facts=tuple(facts),
        text=facts_text(facts) or f"rejected by {', '.join(plugins)}",
    )


def _distances(attempt: PreparedPod, blockers: Blockers, rows: IntpArray) -> FloatArray:
    """float64[k]: how much is in the way on each row."""
    distance = blockers.count[rows].astype(np.float64)
    plugin, codes = attempt.profile.plugins.get(_FIT), blockers.codes.get(_FIT)
    if codes is None or not isinstance(plugin, NodeResourcesFit):
        return distance
    nodes, found = nodes_of(attempt.snapshot, rows), codes[rows]
    distance -= found != 0
    distance += (found & TOO_MANY_PODS) != 0
    for demand in plugin.fit_request(attempt.state).demands:
        column, is_short = nodes.resource_column(demand.name), (found >> demand.bit & 1) != 0
        if column is None:
            distance += is_short
        else:
            free = nodes.allocatable(column) - nodes.requested(column)
            distance += is_short * (demand.amount - free) / demand.amount
    return distance
