"""Where a pod goes next: the decisions of the queue, without its containers (spec 02 §8).

    verdict of the hints      skip ──────────► unschedulable
                              after backoff ─► backoff while it lasts, else active
                              immediately ───► active

Everything here only decides; `queue` moves, and asks the gates before backoff and active.
"""

from collections.abc import Callable, Iterable
from enum import Enum

from kubestow.api.pod import Pod
from kubestow.framework.events import Hint
from kubestow.queue.hint_call import AskHint
from kubestow.queue.interest import Audience, Listeners
from kubestow.queue.queued_pod import QueuedPod


class Verdict(Enum):
    """The combined answer of the hints."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


class Place(Enum):
    """Where a pod can be. A decision names only ACTIVE, BACKOFF (either kind) and UNSCHEDULABLE."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


def place_after(verdict: Verdict, *, is_backing_off: bool) -> Place:
    """Where a rejected pod goes if its gates admit it."""
    match verdict:
        case Verdict.SKIP:
            return Place.UNSCHEDULABLE
        case Verdict.AFTER_BACKOFF:
            return Place.BACKOFF if is_backing_off else Place.ACTIVE
        case Verdict.IMMEDIATELY:
            return Place.ACTIVE


def judge(
    queued_pod: QueuedPod,
    rejector_mask: int,
    audience: Audience,
    old: object,
    new: object,
    ask: AskHint,
) -> Verdict:
    """The verdict of one event on one rejected pod."""
    if not rejector_mask:
        return Verdict.AFTER_BACKOFF
    if audience.is_wildcard:
        return _judge_wildcard(queued_pod, new)
    listeners = audience.listeners_of(queued_pod.scheduler_name, rejector_mask)
    if listeners is None:
        # The profile is not known, so no event would ever move the pod.
        return Verdict.AFTER_BACKOFF
    return _judge_hints(queued_pod, listeners, audience.label, old, new, ask)


# `judge`, or what takes its place: (record, its rejectors, listeners, old, new, hint caller).
Judge = Callable[[QueuedPod, int, Audience, object, object, AskHint], Verdict]


def judge_missed(queued_pod: QueuedPod, verdicts: Iterable[Verdict]) -> Verdict:
    """Combine the verdicts of the events during an attempt, oldest first (spec 02 §9.4).

    Stops when no later verdict can change the result: only a plugin the pod is pending on can
    still turn "after backoff" into "immediately".
    """
    found = Verdict.SKIP
    for verdict in verdicts:
        if verdict is Verdict.IMMEDIATELY:
            return verdict
        if verdict is Verdict.AFTER_BACKOFF:
            found = verdict
            if not queued_pod.pending_plugins:
                break
    return found


def _judge_wildcard(queued_pod: QueuedPod, new: object) -> Verdict:
    """A wildcard applies to every pod, unless it names one (spec 02 §8 rule 2)."""
    if new is None or (isinstance(new, Pod) and new.metadata.uid == queued_pod.uid):
        return Verdict.AFTER_BACKOFF
    return Verdict.SKIP


def _judge_hints(
    queued_pod: QueuedPod,
    listeners: Listeners,
    label: str,
    old: object,
    new: object,
    ask: AskHint,
) -> Verdict:
    pod, pending = queued_pod.pod, queued_pod.pending_plugins
    if not pending and listeners.always is not None:
        # One Queue is enough, and this listener gives it without reading the objects.
        ask(listeners.always, label, pod, old, new)
        return Verdict.AFTER_BACKOFF
    found = Verdict.SKIP
    for listener in listeners.all:
        if ask(listener, label, pod, old, new) is Hint.SKIP:
            continue
        if listener.plugin in pending:
            return Verdict.IMMEDIATELY
        found = Verdict.AFTER_BACKOFF
        if not pending:
            break
    return found
