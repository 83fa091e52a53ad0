"""What holds a pod back before it is tried: gates, and groups that are not complete."""

from kubestow.api.group import group_key_of
from kubestow.api.pod import Pod
from kubestow.cache.groups import Groups
from kubestow.explain.evidence.facts import Fact, Gates, Group


def gate_facts(pod: Pod, groups: Groups | None) -> tuple[Fact, ...]:
    """The gates of the pod, else the state of its group."""
    if pod.spec.scheduling_gates:
        return (Gates(gates=tuple(gate.name for gate in pod.spec.scheduling_gates)),)
    return group_facts(pod, groups)


def group_facts(pod: Pod, groups: Groups | None) -> tuple[Fact, ...]:
    """How many members the pod's group has, and needs."""
    key = group_key_of(pod)
    if key is None or groups is None:
        return ()
    members, rules = groups.members(key), groups.rules(key)
    return (
        Group(
            group=f"{key.namespace}/{key.name}",
            members=len(members),
            placed=members.scheduled_count,
            min_count=None if rules is None else rules.min_count,
            exists=rules is not None,
        ),
    )
