"""What a running scheduler knows of a pod: its last attempt, and where in the queue it is now.

Collected on the scheduler's loop, which takes microseconds. Not here: its explanation, which is
made elsewhere (`running`).
"""

from typing import NamedTuple

from kubestow.api.pod import Pod
from kubestow.engine.scheduler import Scheduler
from kubestow.explain.history import AttemptHistory, KeptAttempt
from kubestow.framework.hints import HintMap, build_hint_map
from kubestow.queue import SchedulingQueue


class RunningPod(NamedTuple):
    """What a running scheduler knows of a pod.

    kept         its last attempt, if it was kept
    gate         the PreEnqueue plugin that holds it back, if one does
    place        where in the queue it is; empty if it does not wait
    next_try_ns  when it is tried again at the latest, if that is known
    priorities   of the victims, by key
    """

    pod: Pod
    kept: KeptAttempt | None
    gate: str
    place: str
    next_try_ns: int | None
    hint_map: HintMap
    priorities: dict[str, int]


def find_running(
    scheduler: Scheduler, history: AttemptHistory, namespace: str, name: str
) -> RunningPod | None:
    """Collect it, on the scheduler's loop; None if the pod is not known to this scheduler."""
    pod = scheduler.objects.pods.get(namespace, name)
    profile = None if pod is None else scheduler.profiles.get(pod.spec.scheduler_name)
    queue = scheduler.queue
    if pod is None or profile is None or not isinstance(queue, SchedulingQueue):
        return None
    queued_pod, place = queue.get_pod(name, namespace), queue.place_of(pod)
    kept = history.find(namespace, name)
    if kept is not None and kept.decision.pod.uid != pod.metadata.uid:
        kept = None  # of an earlier pod of this name
    hint_map = build_hint_map(
        profile.plugins.values(), has_extenders=scheduler.extenders is not None
    )
    return RunningPod(
        pod=pod,
        kept=kept,
        gate="" if queued_pod is None else queued_pod.gating_plugin,
        place="" if place is None else place.value,
        next_try_ns=queue.next_try_ns(pod),
        hint_map=hint_map,
        priorities=_priorities(scheduler, kept),
    )


def _priorities(scheduler: Scheduler, kept: KeptAttempt | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for victim in kept.decision.victims if kept is not None else ():
        namespace, _, name = victim.key.partition("/")
        known = scheduler.objects.pods.get(namespace, name)
        if known is not None:
            found[victim.key] = known.spec.priority or 0
    return found
