"""Where a pod goes next: the decisions of the queue, without its containers (spec 02 §8).

    verdict of the hints      skip ──────────► unschedulable
                              after backoff ─► backoff while it lasts, else active
                              immediately ───► active

Everything here only decides; `queue` moves. Backoff and active still lie behind the gates.
"""

from collections.abc import Iterable
from enum import Enum

from kubestow.api.pod import Pod
from kubestow.framework.events import Hint
from kubestow.queue.hint_call import AskHint
from kubestow.queue.interest import Audience, Listeners
from kubestow.queue.queued_pod import QueuedPod


class Verdict(Enum):
    """What the hints together tell the queue."""

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
    """Where a rejected pod goes, if no gate is in the way."""
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
    """What one event means for one rejected pod."""
    if not rejector_mask:
        return Verdict.AFTER_BACKOFF
    if audience.is_wildcard:
        return _judge_wildcard(queued_pod, new)
    listeners = audience.listeners_of(queued_pod.scheduler_name, rejector_mask)
    if listeners is None:
        # The profile is not known, so nobody would ever wake the pod.
        return Verdict.AFTER_BACKOFF
    return _judge_hints(queued_pod, listeners, audience.label, old, new, ask)


def judge_missed(queued_pod: QueuedPod, verdicts: Iterable[Verdict]) -> Verdict:
    """The verdicts on what happened during an attempt, oldest first, as one (spec 02 §9.4).

    Stops asking as soon as no later verdict could change the answer: only a plugin the pod is
    pending on can still turn "after backoff" into "immediately".
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
    """A wildcard helps everybody, unless it names one pod (spec 02 §8 rule 2)."""
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
        # One Queue decides, and this one needs no look at the objects.
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
