"""Where every pod is, in the form of the recording."""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.clock import NANOSECONDS
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.profile import plugin_name
from kubestow.queue import QueuedPod
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue

_NAMES: Final = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "errorBackoff",
    Place.GATED: "gated",
    Place.UNSCHEDULABLE: "unschedulable",
}


def state_of(scheduler: Scheduler, names: dict[str, str], epoch_ns: int) -> JsonObject:
    """The state of queue, cache and nominations; empty parts are left out.

    `names` are the keys of all pods by UID; times are seconds since `epoch_ns`.
    """
    queue = scheduler.queue
    assert isinstance(queue, SchedulingQueue)
    state: JsonObject = {"active": []}
    for place, queued_pod in queue.waiting():
        key = queued_pod.key
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
    state["inFlight"] = sorted(names[uid] for uid in queue.uids_in_flight())
    state["waiting"] = sorted(waiting.pod.key for waiting in scheduler.waiting_pods)
    state["assumed"] = _assumed(scheduler)
    state["nominated"] = {
        node: sorted(pod.key for pod in queue.nominator.nominated_pods_for_node(node))
        for node in queue.nominator.nominated_nodes()
        if node
    }
    if scheduler.cache.groups is not None:
        state["groups"] = {
            str(key): {
                "all": len(members),
                "unscheduled": len(members.unscheduled),
                "assumed": len(members.assumed),
                "assigned": len(members.assigned),
            }
            for key, members in scheduler.cache.groups.all_members().items()
        }
    return {key: value for key, value in state.items() if value}


def _gating_now(scheduler: Scheduler, queued_pod: QueuedPod) -> list[str]:
    """All plugins whose PreEnqueue rejects the pod now."""
    profile = scheduler.profiles[queued_pod.scheduler_name]
    answers = [
        (plugin_name(plugin), plugin.pre_enqueue(queued_pod.pod)) for plugin in profile.pre_enqueue
    ]
    return sorted(name for name, status in answers if status is not None and not status.is_success)


def _assumed(scheduler: Scheduler) -> dict[str, str]:
    dump = scheduler.cache.dump()
    return {
        pod.key: name
        for name, info in dump.nodes.items()
        for pod in info.pods
        if pod.uid in dump.assumed_pods
    }
