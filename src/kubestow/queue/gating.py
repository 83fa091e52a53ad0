"""Which pods may enter the active queue: running the PreEnqueue plugins (spec 02 §5)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.framework.answers import status_answer
from kubestow.framework.events import ClusterEvent
from kubestow.framework.faults import fault_status
from kubestow.framework.status import SUCCESS, Code, Status
from kubestow.queue.metrics import NO_METRICS, QueueMetrics
from kubestow.queue.queued_pod import QueuedPod

_LOG: Final = logging.getLogger(__name__)
PRE_ENQUEUE: Final = "PreEnqueue"


PreEnqueueFunction = Callable[[Pod], Status | None]
# Per scheduler name the plugins' names and functions, in the order in which they are asked.
PreEnqueueChecks = Mapping[str, Sequence[tuple[str, PreEnqueueFunction]]]


class Gatekeeper:
    """Runs the checks of a pod's profile and writes to its record which plugin refused it."""

    def __init__(
        self,
        checks: PreEnqueueChecks,
        *,
        events_of: Callable[[str], tuple[ClusterEvent, ...]],
        clock: Clock,
        metrics: QueueMetrics,
    ) -> None:
        self._checks = checks
        self._events_of = events_of
        self._clock = clock
        self._metrics = metrics
        self._is_timed = metrics is not NO_METRICS

    def admit(self, queued_pod: QueuedPod) -> bool:
        """Whether every check passes; sets `is_gated` of the record to the opposite."""
        if not self._is_timed:
            return self._pass(queued_pod, is_sampled=False)
        start_s = self._clock.monotonic_s()
        is_admitted = self._pass(queued_pod, is_sampled=self._metrics.samples_plugins())
        duration_s = self._clock.monotonic_s() - start_s
        # Spec 02 §5: the label says Success even when a plugin refused.
        self._metrics.pre_enqueue_passed(queued_pod.scheduler_name, Code.SUCCESS.label, duration_s)
        return is_admitted

    def _pass(self, queued_pod: QueuedPod, *, is_sampled: bool) -> bool:
        checks = self._checks.get(queued_pod.scheduler_name, ())
        if queued_pod.gating_plugin:
            checks = _with_first(checks, queued_pod.gating_plugin)
        pod = queued_pod.pod
        for plugin, check in checks:
            status = self._timed(plugin, check, pod) if is_sampled else _run(plugin, check, pod)
            if status is not None and status.code is not Code.SUCCESS:
                self._refuse(queued_pod, plugin, status)
                return False
        queued_pod.gating_plugin = ""
        return True

    def _refuse(self, queued_pod: QueuedPod, plugin: str, status: Status) -> None:
        if status.code is Code.ERROR:
            _LOG.error(
                "PreEnqueue plugin %r failed for pod %r: %s",
                plugin,
                queued_pod.key,
                status.message,
            )
        if plugin not in queued_pod.rejectors:
            self._metrics.unschedulable_changed(plugin, queued_pod.scheduler_name, 1)
        queued_pod.unschedulable_plugins |= {plugin}
        queued_pod.gating_plugin = plugin
        queued_pod.gating_events = self._events_of(plugin)

    def _timed(self, plugin: str, check: PreEnqueueFunction, pod: Pod) -> Status | None:
        start_s = self._clock.monotonic_s()
        status = _run(plugin, check, pod)
        duration_s = self._clock.monotonic_s() - start_s
        self._metrics.pre_enqueue_executed(plugin, (status or SUCCESS).code.label, duration_s)
        return status


def _with_first(
    checks: Sequence[tuple[str, PreEnqueueFunction]], plugin: str
) -> Sequence[tuple[str, PreEnqueueFunction]]:
    """The checks with that plugin's first: while it refuses, no other is called."""
    # Sorting is stable, and False comes before True.
    return sorted(checks, key=lambda check: check[0] != plugin)


def _run(plugin: str, check: PreEnqueueFunction, pod: Pod) -> Status | None:
    try:
        status = check(pod)
        return status if status is None else status_answer(status, plugin, "pre_enqueue")
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        return fault_status(error, plugin, PRE_ENQUEUE).with_plugin(plugin)
