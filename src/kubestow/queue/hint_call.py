"""Calling one hint function: its errors and its duration (spec 02 §8)."""

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
    """Calls hints; without a recorder nothing is timed."""
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
    """Log the exception being handled. Queue is safe: the pod gets at most one useless attempt."""
    _LOG.exception(
        "queueing hint of plugin %r failed for event %s and pod %r; queueing the pod",
        listener.plugin,
        label,
        object_ref(pod.metadata),
    )
    return Hint.QUEUE
