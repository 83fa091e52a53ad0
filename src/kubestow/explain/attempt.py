"""An attempt to place a pod as an explanation.

It reads a frozen decision and nothing else, so that it is the same for an attempt made now, one of
a running scheduler, and one that was recorded.
"""

from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from kubestow.engine.frozen_decision import FrozenDecision, PodRef
from kubestow.explain.explanation import (
    Explanation,
    NodeChoice,
    NodeSearch,
    Outcome,
    PodReference,
    Preemption,
    PreemptionResult,
    ScoreDifference,
    Victim,
)
from kubestow.explain.verdicts import (
    absent_status,
    node_explanations,
    ranking,
    reason_groups,
    search_end,
)
from kubestow.explain.waiting import awaited_events
from kubestow.framework.hints import EXTENDER, HintMap
from kubestow.framework.status import Code
from kubestow.plural import counted

# The priority of a pod; 0 if it is not known.
PriorityOf = Callable[[PodRef], int]

_NOT_ELIGIBLE: Final = "preemption: not eligible"


def explain_attempt(
    attempt: FrozenDecision, *, hint_map: HintMap = (), priority_of: PriorityOf = lambda _: 0
) -> Explanation:
    """What an attempt found. `hint_map` is that of the pod's profile."""
    outcome = outcome_of(attempt)
    is_placed, is_misfit = outcome == "Scheduled", outcome == "Unschedulable"
    rejectors = {*attempt.unschedulable_plugins, *attempt.pending_plugins}
    search = search_of(attempt)
    has_extenders = any(registration.plugin == EXTENDER for registration in hint_map)
    return Explanation(
        pod=pod_reference(attempt.pod),
        outcome=outcome,
        node=attempt.node,
        message=attempt.status.message if attempt.status is not None else "",
        nominated_node=attempt.nominated_node or "",
        victims=tuple(_victim(each, priority_of(each)) for each in attempt.victims),
        nodes=tuple(node_explanations(attempt)),
        reasons=reason_groups(attempt),
        waiting_for=awaited_events(hint_map, rejectors) if is_misfit else (),
        summary=_summary(attempt, outcome),
        scheduler_name=attempt.profile,
        search=search,
        choice=choice_of(attempt, has_extenders=has_extenders) if is_placed else UNSET,
        preemption=_preemption(attempt) if is_misfit and search.nodes else UNSET,
    )


def outcome_of(attempt: FrozenDecision) -> Outcome:
    if attempt.node:
        return "Scheduled"
    status = attempt.status
    return "Error" if status is not None and status.code == Code.ERROR.label else "Unschedulable"


def pod_reference(pod: PodRef) -> PodReference:
    namespace, _, name = pod.key.partition("/")
    return PodReference(namespace=namespace, name=name, uid=pod.uid)


def _victim(pod: PodRef, priority: int) -> Victim:
    namespace, _, name = pod.key.partition("/")
    return Victim(namespace=namespace, name=name, uid=pod.uid, priority=priority)


# --- preemption ---


def _preemption(attempt: FrozenDecision) -> Preemption:
    hopeless = possible = 0
    groups = [(group.status, len(group.nodes)) for group in attempt.rejected]
    absent = absent_status(attempt)
    if absent is not None:
        groups.append((absent, len(attempt.absent.nodes)))
    for status, count in groups:
        if status.code == Code.UNSCHEDULABLE.label:
            possible += count
        else:
            hopeless += count
    return Preemption(
        result=_preemption_result(attempt),
        message=attempt.post_filter.message if attempt.post_filter is not None else "",
        hopeless_nodes=hopeless,
        possible_nodes=possible,
    )


def _preemption_result(attempt: FrozenDecision) -> PreemptionResult:
    status = attempt.post_filter
    if status is None:
        return "Disabled"
    if attempt.nominated_node:
        return "Nominated"
    if status.code == Code.ERROR.label:
        return "Error"
    return "NotEligible" if _NOT_ELIGIBLE in status.message else "NoCandidates"


# --- one sentence ---


def _summary(attempt: FrozenDecision, outcome: Outcome) -> str:
    search = search_of(attempt)
    match outcome:
        case "Scheduled":
            return _placed_text(attempt, search.feasible)
        case "Error":
            return "the attempt failed with an error; the pod is tried again after a pause"
        case _:
            pass
    text = f"fits none of {counted(search.nodes, 'node')}"
    if search.nodes == 0:
        text = "there are no nodes"
    if attempt.nominated_node and attempt.victims:
        victims = counted(len(attempt.victims), "pod")
        return f'{text}; evicting {victims} from "{attempt.nominated_node}" makes it fit'
    return text


def _placed_text(attempt: FrozenDecision, feasible_count: int) -> str:
    if attempt.via_nominated_node:
        return f'fits "{attempt.node}", which it is nominated to; no other node was looked at'
    if attempt.via_hint:
        return (
            f'fits "{attempt.node}", the best that an equal pod just before left over; '
            "no other node was looked at"
        )
    if feasible_count == 1:
        return f'"{attempt.node}" is the only node found that fits'
    choice = choice_of(attempt)
    if choice.margin == 0:
        others = counted(choice.tied_count - 1, "other node")
        have = "has" if choice.tied_count == 2 else "have"
        return f'"{attempt.node}" has the best total, as {others} {have}'
    return f'"{attempt.node}" has the best total, {choice.margin} more than "{choice.next_node}"'


def choice_of(attempt: FrozenDecision, *, has_extenders: bool = False) -> NodeChoice:
    """What made the difference to the next node; for a pod that was placed.

    Extenders break ties at random, plugins by the order of the search.
    """
    names = list(attempt.feasible)
    if attempt.total is None or len(names) < 2:
        return NodeChoice()
    first, second, *_ = ranking(attempt)
    differences = [
        ScoreDifference(
            plugin=part.plugin, difference=int(part.weighted[first]) - int(part.weighted[second])
        )
        for part in attempt.scores
    ]
    tied_count = int((attempt.total == attempt.total[first]).sum())
    tie_break = "Random" if has_extenders else "SearchOrder"
    return NodeChoice(
        next_node=names[second],
        margin=int(attempt.total[first]) - int(attempt.total[second]),
        differences=tuple(
            sorted(
                (each for each in differences if each.difference),
                key=lambda each: (-abs(each.difference), each.plugin),
            )
        ),
        tied_count=tied_count,
        tie_break=tie_break if tied_count > 1 else "None",
    )


def search_of(attempt: FrozenDecision) -> NodeSearch:
    node_count = len(attempt.feasible) + len(attempt.absent.nodes)
    node_count += sum(len(group.nodes) for group in attempt.rejected)
    return NodeSearch(
        nodes=node_count,
        evaluated=attempt.evaluated_count,
        feasible=len(attempt.feasible),
        wanted=attempt.nodes_to_find,
        end=search_end(attempt),
    )
