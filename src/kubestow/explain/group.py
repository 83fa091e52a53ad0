"""A member of a pod group, explained with its group: members are tried together."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubestow.api.group import GroupKey
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import GroupMembers
from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.engine.groups.collect import CollectedGroup, different_names_text
from kubestow.engine.groups.cycle import GroupEngine
from kubestow.engine.groups.outcome import GroupOutcome, MemberOutcome
from kubestow.engine.groups.submit import sent_back
from kubestow.errors import PluginError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation, GroupExplanation, GroupMember, Outcome
from kubestow.explain.together import in_queue_order
from kubestow.explain.waiting import may_try
from kubestow.framework.profile import Profile
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod

ExplainAttempt = Callable[[FrozenDecision], Explanation]


class GroupResult(NamedTuple):
    """What was found for the group of a pod, and for the pod itself.

    explanation      of the pod's own attempt; None if the group's attempt ended before it
    nominated_node   where it is nominated after the attempt; empty if nowhere
    """

    group: GroupExplanation
    member: GroupMember
    explanation: Explanation | None
    nominated_node: str


def explain_group(
    cluster: StillCluster,
    scheduler: GroupEngine,
    profile: Profile,
    key: GroupKey,
    pod: Pod,
    explain: ExplainAttempt | None = None,
) -> GroupResult:
    """Try the waiting members that no gate holds back, `pod` first among equals.

    `explain` is called with each attempt for the pod, while the snapshot has the members before it
    on their nodes.
    """
    groups = cluster.scheduler.cache.groups
    assert groups is not None
    members = groups.members(key)
    tried = _in_order(pod, [each for each in members.unscheduled_pods() if may_try(cluster, each)])
    # By identity: where several placements are tried, only one of the pod's decisions counts.
    explained: dict[int, Explanation] = {}

    def keep(decision: Decision, queued_pod: QueuedPod) -> None:
        if queued_pod.uid == pod.metadata.uid and explain is not None:
            explained[id(decision)] = explain(decision.freeze())

    queued_pods = [QueuedPod(PodInfo(each), timestamp_ns=0) for each in tried]
    groups.start_trying(key, [each.metadata.uid for each in tried])
    cluster.scheduler.decider.next_start_index = cluster.start_index
    cluster.forget_batches()
    cluster.listeners.append(keep)
    try:
        outcome = _outcome(scheduler, CollectedGroup(key, profile, queued_pods))
    finally:
        cluster.listeners.remove(keep)
        for each in tried:
            groups.stop_trying(each)
    shown = _shown(members, outcome, tried)
    rules = groups.rules(key)
    group = GroupExplanation(
        namespace=key.namespace,
        name=key.name,
        min_count=None if rules is None else rules.min_count,
        fitting=sum(bool(member.node) for member in shown.values()),
        message="" if outcome.status is None else outcome.status.message,
        members=tuple(shown.values()),
    )
    own = next((each for each in outcome.members if each.queued_pod.pod is pod), None)
    explanation = None if own is None else explained.get(id(own.decision))
    return GroupResult(group, shown[pod.metadata.name], explanation, _nominated(outcome, own))


def _nominated(outcome: GroupOutcome, own: MemberOutcome | None) -> str:
    back = None if own is None else sent_back(outcome, own)
    if back is None or back.nomination is None:
        return ""
    return back.nomination.node_name


def _in_order(pod: Pod, pods: list[Pod]) -> list[Pod]:
    first = [pod, *(each for each in pods if each.metadata.uid != pod.metadata.uid)]
    return in_queue_order(first)


def _outcome(scheduler: GroupEngine, collected: CollectedGroup) -> GroupOutcome:
    names = [queued_pod.scheduler_name for queued_pod in collected.queued_pods]
    other = next((name for name in names if name != names[0]), None)
    if other is not None:
        error = PluginError(different_names_text(other, names[0]))
        return GroupOutcome((), Status.from_error(error))
    return scheduler.decide(collected)


def _shown(
    members: GroupMembers, outcome: GroupOutcome, tried: list[Pod]
) -> Mapping[str, GroupMember]:
    """Members by name: those that are placed, those that were tried, those that a gate holds."""
    found = {
        pod.metadata.name: GroupMember(
            name=pod.metadata.name, outcome="Bound", node=pod.spec.node_name
        )
        for pod in members.scheduled_pods()
    }
    for member in outcome.members:
        name = member.queued_pod.pod.metadata.name
        found[name] = _member(name, outcome, member)
    untried = "" if outcome.status is None else outcome.status.message
    for pod in tried[len(outcome.members) :]:
        name = pod.metadata.name
        found[name] = GroupMember(name=name, outcome=_failed(outcome.status), message=untried)
    for pod in members.unscheduled_pods():
        name = pod.metadata.name
        found.setdefault(name, GroupMember(name=name, outcome="Gated"))
    return found


def _member(name: str, outcome: GroupOutcome, member: MemberOutcome) -> GroupMember:
    back = sent_back(outcome, member)
    if back is None:
        return GroupMember(name=name, outcome="Scheduled", node=member.node_name)
    # A member that fits has a node, though the group as a whole waits.
    return GroupMember(
        name=name,
        outcome=_failed(back.status),
        node=member.node_name if member.status is None else "",
        message=back.status.message,
    )


def _failed(status: Status | None) -> Outcome:
    return "Error" if status is not None and status.code == Code.ERROR else "Unschedulable"
