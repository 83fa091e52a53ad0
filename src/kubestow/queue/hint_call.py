"""Calling one hint function: what it may do wrong, and how long it took (spec 02 §8)."""

import logging
from collections.abc import Callable
from typing import Final

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.framework.events import Hint
from kubestow.queue.interest import Listener
from kubestow.queue.metrics import HINT_ERROR, NO_METRICS, QueueMetrics

_LOG: Final = logging.getLogger(__name__)

# Asks a listener about a waiting pod: (listener, event label, pod, old object, new object).
AskHint = Callable[[Listener, str, Pod, object, object], Hint]


def hint_caller(metrics: QueueMetrics, clock: Clock) -> AskHint:
    """The way to call hints that suits the recorder; without one, nothing is timed."""
    if metrics is NO_METRICS:
        return ask_hint

    def ask_and_record(listener: Listener, label: str, pod: Pod, old: object, new: object) -> Hint:
        start_s = clock.monotonic_s()
        try:
            hint = Hint.QUEUE if listener.hint is None else listener.hint(pod, old, new)
            result = hint.value
        except Exception:
            hint, result = _failed(listener, label, pod), HINT_ERROR
        metrics.hint_executed(listener.plugin, label, result, clock.monotonic_s() - start_s)
        return hint

    return ask_and_record


def ask_hint(listener: Listener, label: str, pod: Pod, old: object, new: object) -> Hint:
    """The plugin's answer; a failed call counts as Queue."""
    try:
        return Hint.QUEUE if listener.hint is None else listener.hint(pod, old, new)
    except Exception:
        return _failed(listener, label, pod)


def _failed(listener: Listener, label: str, pod: Pod) -> Hint:
    """Report the exception being handled.

    Whatever the fault is, going on is safe: the pod gets one attempt too many instead of waiting
    for an event that may never come.
    """
    _LOG.exception(
        "queueing hint of plugin %r failed for event %s and pod %r; queueing the pod",
        listener.plugin,
        label,
        object_ref(pod.metadata),
    )
    return Hint.QUEUE
