"""Calling one hint function: its errors and its duration (spec 02 §8)."""

import logging
from collections.abc import Callable
from typing import Final, cast

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.framework.answers import wrong_answer
from kubestow.framework.events import Hint
from kubestow.framework.faults import fault_error
from kubestow.queue.interest import Listener
from kubestow.queue.metrics import HINT_ERROR, NO_METRICS, QueueMetrics

_LOG: Final = logging.getLogger(__name__)
QUEUEING_HINT: Final = "QueueingHint"

# Asks a listener about a waiting pod: (listener, event label, pod, old object, new object).
AskHint = Callable[[Listener, str, Pod, object, object], Hint]


def hint_caller(metrics: QueueMetrics, clock: Clock) -> AskHint:
    """Calls hints; without a recorder nothing is timed."""
    if metrics is NO_METRICS:
        return ask_hint

    def ask_and_record(listener: Listener, label: str, pod: Pod, old: object, new: object) -> Hint:
        start_s = clock.monotonic_s()
        try:
            hint = _answer_of(listener, pod, old, new)
            result = hint.value
        except BaseException as error:  # A fault in one plugin must not stop the queue.
            hint, result = _failed(error, listener, label, pod), HINT_ERROR
        metrics.hint_executed(listener.plugin, label, result, clock.monotonic_s() - start_s)
        return hint

    return ask_and_record


def ask_hint(listener: Listener, label: str, pod: Pod, old: object, new: object) -> Hint:
    """The plugin's answer; a failed call and a wrong answer count as Queue."""
    try:
        return _answer_of(listener, pod, old, new)
    except BaseException as error:  # A fault in one plugin must not stop the queue.
        return _failed(error, listener, label, pod)


def _answer_of(listener: Listener, pod: Pod, old: object, new: object) -> Hint:
    if listener.hint is None:
        return Hint.QUEUE
    # The declared type is not trusted: a plugin of a user may not have been type-checked.
    answer = cast(object, listener.hint(pod, old, new))
    if isinstance(answer, Hint):
        return answer
    raise wrong_answer(listener.plugin, "a hint", answer, "Hint.QUEUE or Hint.SKIP")


def _failed(error: BaseException, listener: Listener, label: str, pod: Pod) -> Hint:
    """Log the fault. Queue is safe: the pod gets at most one useless attempt."""
    _LOG.error(
        "queueing hint of plugin %r failed for event %s and pod %r; queueing the pod: %s",
        listener.plugin,
        label,
        object_ref(pod.metadata),
        fault_error(error, listener.plugin, QUEUEING_HINT),
    )
    return Hint.QUEUE
