"""Handles a failed attempt (spec 04 §14).

The pod goes back to the queue, its nomination is updated, and a condition and an event say why.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod, first_condition
from kubestow.clock import Clock
from kubestow.cluster.documents import whole_seconds_at
from kubestow.cluster.pod_status import changed_condition
from kubestow.cluster.status_writer import StatusPatch, StatusWriter
from kubestow.engine.decide import NO_NODES_TEXT
from kubestow.engine.decision import FitError, GroupMisfitError, Nomination
from kubestow.engine.metrics import ERROR, UNSCHEDULABLE
from kubestow.engine.observer import Observer, callers
from kubestow.errors import QueueError
from kubestow.framework.handle import EventSink
from kubestow.framework.metrics import NO_METER, CycleMeter
from kubestow.framework.status import Status
from kubestow.logs import ObjectName, fail, inform, is_printed
from kubestow.queue import Queue, QueuedPod

log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"


class PodLister(Protocol):
    def get(self, namespace: str, name: str, /) -> Pod | None: ...


class FailureHandler:
    def __init__(
        self,
        queue: Queue,
        pods: PodLister,
        events: Mapping[str, EventSink],
        writer: StatusWriter,
        clock: Clock,
        observers: Sequence[Observer] = (),
    ) -> None:
        """`events` are by scheduler name."""
        self._queue = queue
        self._pods = pods
        self._events = events
        self._writer = writer
        self._clock = clock
        self._on_failed = callers(observers, Observer.failed)

    def handle(
        self,
        queued_pod: QueuedPod,
        status: Status,
        nomination: Nomination | None,
        meter: CycleMeter = NO_METER,
    ) -> None:
        for call in self._on_failed:
            call(queued_pod, status, nomination)
        is_rejected = status.is_rejected
        meter.attempt_ended(UNSCHEDULABLE if is_rejected else ERROR)
        events = self._events[queued_pod.scheduler_name]
        error = status.as_error()
        _log_failure(queued_pod.pod, error, is_rejected=is_rejected)
        if isinstance(error, FitError):
            diagnosis = error.diagnosis
            queued_pod.reject(
                unschedulable=diagnosis.unschedulable_plugins, pending=diagnosis.pending_plugins
            )
        elif isinstance(error, GroupMisfitError):
            queued_pod.reject(unschedulable=(error.rejector,))
        else:
            queued_pod.reject()
        if not self._requeue(queued_pod):
            return
        pod = queued_pod.pod
        self._queue.nominator.add(
            pod, override=nomination.node_name if nomination is not None else None
        )
        if error is None:
            return
        self._report(pod, status, nomination, events)

    def _requeue(self, queued_pod: QueuedPod) -> bool:
        """Back to the queue, unless the pod is gone or bound; False if another has its name."""
        pod = queued_pod.pod
        known = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        if known is None or known.spec.node_name:
            if known is None:
                inform(log, "Pod doesn't exist in informer cache", pod=_name(pod))
            else:
                text = "Pod has been assigned to node. Abort adding it back to queue."
                inform(log, text, pod=_name(pod), node=known.spec.node_name)
            self._queue.done(queued_pod.uid)
            return True
        if known.metadata.uid != pod.metadata.uid:
            self._queue.done(queued_pod.uid)
            return False
        self._put_back(queued_pod, known)
        return True

    def _put_back(self, queued_pod: QueuedPod, known: Pod) -> None:
        """Queue the pod again, in its newest version."""
        # Spec 02 §14: not `update`: what was derived from an older version (a request that was
        # resized since, affinity terms) must not survive the attempt.
        queued_pod.pod_info = queued_pod.pod_info.renewed(known)
        try:
            self._queue.add_unschedulable_if_not_present(queued_pod)
        except QueueError as error:
            # It was added again meanwhile; the failure is still reported.
            log.error("cannot requeue pod %s: %s", _name(known), error)

    def _report(
        self, pod: Pod, status: Status, nomination: Nomination | None, events: EventSink
    ) -> None:
        message = self._message(status)
        events.record(
            pod,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=message,
        )
        patch = StatusPatch(
            condition=self._changed_condition(pod, status, message),
            nominated_node_name=_changed_nomination(pod, nomination),
        )
        if patch.condition is not None or patch.nominated_node_name is not None:
            inform(log, "Updating pod condition and nominated node name", v=3, pod=_name(pod))
            self._writer.start_write(pod, patch)

    def _changed_condition(self, pod: Pod, status: Status, message: str) -> Condition | None:
        reason = self._reason(status)
        known = first_condition(pod.status.conditions, POD_SCHEDULED)
        # Most retries fail as before, and members of groups are retried all the time.
        if (
            known is not None
            and known.status == "False"
            and known.reason == reason
            and known.message == message
            and known.last_probe_time is None
        ):
            return None
        condition = Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=reason,
            message=message,
            observed_generation=pod.metadata.generation,
        )
        return changed_condition(pod, condition, now=whole_seconds_at(self._clock.now_ns()))

    # Older versions had other texts.

    def _message(self, status: Status) -> str:
        return status.message

    def _reason(self, status: Status) -> str:
        return REASON_UNSCHEDULABLE if status.is_rejected else REASON_SCHEDULER_ERROR


def _changed_nomination(pod: Pod, nomination: Nomination | None) -> str | None:
    if nomination is None or nomination.node_name == pod.status.nominated_node_name:
        return None
    return nomination.node_name


def _log_failure(pod: Pod, error: Exception | None, *, is_rejected: bool) -> None:
    """Spec 09 §10: a pod that fits nowhere is normal, everything else an error."""
    if isinstance(error, FitError):
        if is_printed(log, 2):  # The text is expensive in a large cluster.
            inform(log, "Unable to schedule pod; no fit; waiting", v=2, pod=_name(pod), err=error)
    elif error is not None and str(error) == NO_NODES_TEXT:
        text = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
        inform(log, text, v=2, pod=_name(pod))
    elif error is not None and is_rejected:
        text = "Unable to schedule pod; its group does not fit; waiting"
        inform(log, text, v=2, pod=_name(pod), err=error)
    elif error is not None:
        fail(log, "Error scheduling pod; retrying", error, pod=_name(pod))


def _name(pod: Pod) -> ObjectName:
    return ObjectName(pod.metadata.namespace, pod.metadata.name)
