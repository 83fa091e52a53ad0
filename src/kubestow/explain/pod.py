"""Explains one pod of a cluster: an attempt is made for it, unless it would not be tried."""

from typing import Final

import msgspec
from msgspec import UNSET

from kubestow.api.device import ResourceClaim, ResourceClaimStatus
from kubestow.api.group import group_key_of
from kubestow.api.meta import ApiObject
from kubestow.api.pod import (
    Pod,
    PodStatus,
    assign,
    first_condition,
    is_assigned,
    is_terminal,
    is_terminating,
)
from kubestow.api.pod_info import PodInfo
from kubestow.engine.frozen_decision import FrozenDecision, PodRef
from kubestow.explain.attempt import explain_attempt
from kubestow.explain.cluster import StillCluster
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Fact
from kubestow.explain.evidence.gates import gate_facts
from kubestow.explain.evidence.registry import facts_of
from kubestow.explain.explanation import (
    AsOfNow,
    Explanation,
    NodeExplanation,
    Outcome,
    PodReference,
)
from kubestow.explain.group import GroupResult, explain_group
from kubestow.explain.nearest import nearest_misses
from kubestow.explain.one_node import filter_answers
from kubestow.explain.reason_codes import reason_code
from kubestow.explain.suggestions.stuck_pod import prepared
from kubestow.explain.waiting import awaited_events, gate_of
from kubestow.explain.with_evidence import with_evidence, with_node_evidence
from kubestow.framework.hints import HintMap, build_hint_map
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status

_GATES: Final = "SchedulingGates"
_GROUP_FAILED: Final = "its group failed before it was tried"
# What the API server writes into the condition of a pod with gates.
_GATED_TEXT: Final = "Scheduling is blocked due to non-empty scheduling gates"


def explain_pod(
    cluster: StillCluster, pod: Pod, *, node: str = "", is_as_of_now: bool = True
) -> Explanation:
    """Why the pod is where it is, or waits.

    A placed pod is taken off its node for the attempt, if `is_as_of_now`; else it is only said
    where it is. With `node`, every filter is asked about that node, which exists.
    """
    reason = _why_not_tried(cluster, pod)
    if reason:
        return _not_tried(pod, "Excluded", reason)
    if is_assigned(pod) and not is_as_of_now:
        return _not_tried(pod, "Bound", _where(cluster, pod))
    if is_assigned(pod):
        return _explain_placed(cluster, pod, node)
    return _explain_waiting(cluster, pod, node)


def _why_not_tried(cluster: StillCluster, pod: Pod) -> str:
    """Why no profile would place the pod; empty if one would."""
    if is_terminal(pod):
        return f"the pod has ended ({pod.status.phase}); it needs no node"
    if is_terminating(pod):
        return "the pod is being deleted; it is not scheduled any more"
    name = pod.spec.scheduler_name
    if cluster.profile_of(pod) is None:
        known = ", ".join(f'"{each}"' for each in cluster.scheduler.profiles)
        return f'no profile has the pod\'s schedulerName "{name}"; there is {known}'
    return ""


def _explain_placed(cluster: StillCluster, pod: Pod, node: str) -> Explanation:
    waiting, *others = unplaced(cluster, pod)
    assert isinstance(waiting, Pod)
    with cluster.changed(waiting, *others):
        now = _explain_waiting(cluster, waiting, node)
    where = pod.spec.node_name
    same = f'now it would be placed on "{now.node}"' if now.node else "now it would not fit"
    if now.node == where:
        same = "it would be placed there again"
    return msgspec.structs.replace(
        now,
        outcome="Bound",
        node=where,
        summary=f"{_where(cluster, pod)}; {same}",
        waiting_for=(),
        as_of_now=AsOfNow(outcome=now.outcome, node=now.node),
    )


def _where(cluster: StillCluster, pod: Pod) -> str:
    name = pod.spec.node_name
    if cluster.objects.nodes.get(name) is None:
        return f'names the node "{name}", which does not exist, so it does not run'
    return f'runs on "{name}"'


def _explain_waiting(cluster: StillCluster, pod: Pod, node: str) -> Explanation:
    profile = cluster.profile_of(pod)
    assert profile is not None
    hint_map = hint_map_of(cluster, profile)
    gate = gate_of(profile, pod)
    if gate is not None:
        facts = gate_facts(pod, cluster.scheduler.cache.groups)
        if not facts and len(cluster.refresh()):
            # What the pod lacks is the same for all nodes.
            code = reason_code(gate.plugin, gate.message)
            facts = facts_of(evidence_context(cluster, pod), 0, gate.message, code)
        return _explain_gated(pod, gate, hint_map, facts)
    key, groups = group_key_of(pod), cluster.scheduler.groups
    if key is not None and groups is not None:

        def explain(attempt: FrozenDecision) -> Explanation:
            # While the members before it are on their nodes.
            own = _explained(cluster, pod, attempt, hint_map)
            return with_evidence(evidence_context(cluster, pod), own)

        result = explain_group(cluster, groups, profile, key, pod, explain)
        own = result.explanation or _not_tried(pod, "Unschedulable", _GROUP_FAILED)
        explanation = _with_group(own, result)
    else:
        attempt = cluster.decide(pod).freeze()
        explanation = _with_evidence(cluster, pod, _explained(cluster, pod, attempt, hint_map))
    return _with_filters(cluster, profile, pod, explanation, node) if node else explanation


def _with_evidence(cluster: StillCluster, pod: Pod, explanation: Explanation) -> Explanation:
    """What is behind each reason; for a pod that fits nowhere also the nearest nodes."""
    context = evidence_context(cluster, pod)
    explanation = with_evidence(context, explanation)
    if explanation.outcome != "Unschedulable" or not explanation.reasons:
        return explanation
    nearest = nearest_misses(context, prepared(cluster, pod))
    return msgspec.structs.replace(explanation, nearest=nearest)


def evidence_context(cluster: StillCluster, pod: Pod) -> EvidenceContext:
    """What evidence for a pod is read from, as of the last decision."""
    profile = cluster.profile_of(pod)
    assert profile is not None, pod.spec.scheduler_name
    return EvidenceContext(
        PodInfo(pod),
        profile,
        cluster.snapshot,
        cluster.objects,
        gates=cluster.gates,
        nominated=cluster.scheduler.queue.nominator.nominated_pods_for_node,
    )


def _with_group(explanation: Explanation, result: GroupResult) -> Explanation:
    """What the pod's own attempt found, and what became of it because of the others."""
    group, member = result.group, result.member
    is_placed = member.outcome == "Scheduled"
    summary = explanation.summary
    if member.node and not is_placed:
        summary = f'fits "{member.node}", but its group waits: {group.fitting} of its members fit'
        if group.min_count is not None:
            summary += f", {group.min_count} are needed"
    return msgspec.structs.replace(
        explanation,
        outcome=member.outcome,
        node=explanation.node if is_placed else "",
        message=member.message,
        nominated_node=result.nominated_node,
        summary=summary,
        choice=explanation.choice if is_placed else UNSET,
        group=group,
    )


def hint_map_of(cluster: StillCluster, profile: Profile) -> HintMap:
    """Which plugins of a profile wait for which events."""
    return build_hint_map(
        profile.plugins.values(),
        has_extenders=cluster.scheduler.extenders is not None,
        adds_taint_events=cluster.adds_taint_events,
    )


def _explained(
    cluster: StillCluster, pod: Pod, attempt: FrozenDecision, hint_map: HintMap
) -> Explanation:
    def priority_of(ref: PodRef) -> int:
        namespace, _, name = ref.key.partition("/")
        known = cluster.objects.pods.get(namespace, name)
        return (known.spec.priority or 0) if known is not None else 0

    return explain_attempt(attempt, hint_map=hint_map, priority_of=priority_of)


def _explain_gated(
    pod: Pod, gate: Status, hint_map: HintMap, facts: tuple[Fact, ...]
) -> Explanation:
    condition = first_condition(pod.status.conditions, "PodScheduled")
    message = condition.message if condition is not None else ""
    if gate.plugin == _GATES and not message:
        message = _GATED_TEXT
    explanation = _not_tried(pod, "Gated", f"{gate.plugin} holds it back: {gate.message}")
    return msgspec.structs.replace(
        explanation,
        message=message,
        waiting_for=awaited_events(hint_map, {gate.plugin}),
        facts=facts,
    )


def _not_tried(pod: Pod, outcome: Outcome, summary: str) -> Explanation:
    condition = first_condition(pod.status.conditions, "PodScheduled")
    metadata = pod.metadata
    return Explanation(
        pod=PodReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        outcome=outcome,
        node=pod.spec.node_name,
        message=condition.message if condition is not None else "",
        nominated_node=pod.status.nominated_node_name,
        summary=summary,
        scheduler_name=pod.spec.scheduler_name,
    )


def _with_filters(
    cluster: StillCluster, profile: Profile, pod: Pod, explanation: Explanation, name: str
) -> Explanation:
    """The explanation with every filter's answer about one node."""
    nominated = cluster.scheduler.queue.nominator.nominated_pods_for_node(name)
    answers = filter_answers(profile, cluster.snapshot, PodInfo(pod), name, nominated)

    def filled(node: NodeExplanation) -> NodeExplanation:
        return msgspec.structs.replace(node, filters=answers) if node.name == name else node

    explanation = msgspec.structs.replace(explanation, nodes=tuple(map(filled, explanation.nodes)))
    return with_node_evidence(evidence_context(cluster, pod), explanation, name)


def unplaced(cluster: StillCluster, pod: Pod) -> list[ApiObject]:
    """A placed pod as it would be if it still waited, without a node, first; and the claims whose
    devices only it uses, without them.

    Volumes stay bound, as they would.
    """
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    waiting = msgspec.structs.replace(assign(pod, ""), status=status)
    claims = [
        msgspec.structs.replace(claim, status=ResourceClaimStatus())
        for claim in cluster.objects.resource_claims.list_namespace(pod.metadata.namespace)
        if _is_only_for(claim, pod)
    ]
    return [waiting, *claims]


def _is_only_for(claim: ResourceClaim, pod: Pod) -> bool:
    consumers = claim.status.reserved_for
    return bool(consumers) and all(each.uid == pod.metadata.uid for each in consumers)
