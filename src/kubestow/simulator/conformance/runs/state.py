"""Where every pod is, in the form of the recording."""

from collections.abc import Iterable
from typing import Final

from kubestow.api.group import GroupKey
from kubestow.api.meta import JsonObject
from kubestow.clock import NANOSECONDS
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.profile import plugin_name
from kubestow.queue import QueuedPod
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue

_COUNTS: Final = ("all", "unscheduled", "assumed", "assigned")
_NAMES: Final = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "errorBackoff",
    Place.GATED: "gated",
    Place.UNSCHEDULABLE: "unschedulable",
}


def state_of(
    scheduler: Scheduler,
    names: dict[str, str],
    epoch_ns: int,
    named_groups: Iterable[GroupKey] = (),
) -> JsonObject:
    """The state of queue, cache and nominations; empty parts are left out.

    `names` are the keys of all pods by UID, `named_groups` the groups that pods name; times are
    seconds since `epoch_ns`.
    """
    queue = scheduler.queue
    assert isinstance(queue, SchedulingQueue)
    state: JsonObject = {"active": []}
    for place, queued_pod in queue.waiting():
        key = queued_pod.title
        if key != queued_pod.key:
            name = key.rpartition(" ")[2]
            members = [member.key for member in queued_pod.waiting_pods]
            state.setdefault("queuedGroups", {})[name] = members
        match place:
            case Place.ACTIVE:
                state["active"].append(key)
            case Place.BACKOFF | Place.ERROR_BACKOFF:
                expiry_ns = queued_pod.backoff_expiry_ns
                assert expiry_ns is not None, key
                state.setdefault(_NAMES[place], {})[key] = (expiry_ns - epoch_ns) / NANOSECONDS
            case Place.GATED:
                state.setdefault("gated", {})[key] = _gating_now(scheduler, queued_pod)
            case _:
                state.setdefault("unschedulable", {})[key] = sorted(queued_pod.rejectors)
    state["incomplete"] = sorted(member.key for member in queue.incomplete())
    state["pendingMembers"] = sorted(member.key for member in queue.pending())
    state["inFlight"] = sorted(names[uid] for uid in queue.uids_in_flight())
    state["waiting"] = sorted(waiting.pod.key for waiting in scheduler.waiting_pods)
    state["assumed"] = _assumed(scheduler)
    state["nominated"] = {
        node: sorted(pod.key for pod in queue.nominator.nominated_pods_for_node(node))
        for node in queue.nominator.nominated_nodes()
        if node
    }
    groups = scheduler.cache.groups
    if groups is not None:
        # A group without members is known if its object is part of the state.
        empty = (key for key in named_groups if groups.keeps_objects and groups.rules(key))
        state["groups"] = {str(key): dict.fromkeys(_COUNTS, 0) for key in empty} | {
            str(key): {
                "all": len(members),
                "unscheduled": len(members.unscheduled),
                "assumed": len(members.assumed),
                "assigned": len(members.assigned),
            }
            for key, members in groups.all_members().items()
        }
    return {key: value for key, value in state.items() if value}


def _gating_now(scheduler: Scheduler, queued_pod: QueuedPod) -> list[str]:
    """All plugins whose PreEnqueue rejects the pod, or a member of the group, now."""
    answers = {
        (plugin_name(plugin), plugin.pre_enqueue(each.pod))
        for each in queued_pod.waiting_pods
        for plugin in scheduler.profiles[each.scheduler_name].pre_enqueue
    }
    return sorted(
        {name for name, status in answers if status is not None and not status.is_success}
    )


def _assumed(scheduler: Scheduler) -> dict[str, str]:
    dump = scheduler.cache.dump()
    return {
        pod.key: name
        for name, info in dump.nodes.items()
        for pod in info.pods
        if pod.uid in dump.assumed_pods
    }
