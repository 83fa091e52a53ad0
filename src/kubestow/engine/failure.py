"""What becomes of a pod whose attempt failed (spec 04 §14).

It goes back to the queue, its nomination is updated, and its condition and an event say why.
"""

from typing import Final, Protocol

import msgspec

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod, first_condition
from kubestow.engine.decision import FitError, Nomination
from kubestow.framework.handle import EventSink
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod, SchedulingQueue

POD_SCHEDULED: Final = "PodScheduled"
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"


class PodLister(Protocol):
    def get(self, namespace: str, name: str, /) -> Pod | None: ...


class StatusPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written to a pod's status; None leaves that part alone."""

    condition: Condition | None = None
    nominated_node_name: str | None = None


class StatusWriter(Protocol):
    """Sends a patch on its way without making the caller wait."""

    def write_status(self, pod: Pod, patch: StatusPatch) -> None: ...


class FailureHandler:
    def __init__(
        self,
        queue: SchedulingQueue,
        pods: PodLister,
        events: EventSink,
        writer: StatusWriter,
    ) -> None:
        self._queue = queue
        self._pods = pods
        self._events = events
        self._writer = writer

    def handle(self, queued_pod: QueuedPod, status: Status, nomination: Nomination | None) -> None:
        error = status.as_error()
        diagnosis = error.diagnosis if isinstance(error, FitError) else None
        if diagnosis is not None:
            queued_pod.reject(
                unschedulable=diagnosis.unschedulable_plugins, pending=diagnosis.pending_plugins
            )
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
        self._report(pod, status, nomination)

    def _requeue(self, queued_pod: QueuedPod) -> bool:
        """Back to the queue, if the pod still is what we tried; False ends the handling at once."""
        pod = queued_pod.pod
        known = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        if known is not None and known.metadata.uid != pod.metadata.uid:
            self._queue.done(queued_pod.uid)
            return False
        if known is None or known.spec.node_name:
            self._queue.done(queued_pod.uid)
            return True
        queued_pod.pod_info.update(known)
        self._queue.add_unschedulable_if_not_present(queued_pod, self._queue.scheduling_cycle)
        return True

    def _report(self, pod: Pod, status: Status, nomination: Nomination | None) -> None:
        message = status.message
        self._events.record(
            pod,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=message,
        )
        condition = Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=REASON_UNSCHEDULABLE if status.is_rejected else REASON_SCHEDULER_ERROR,
            message=message,
            observed_generation=pod.metadata.generation,
        )
        patch = StatusPatch(
            condition=condition if _is_news(pod, condition) else None,
            nominated_node_name=_changed_nomination(pod, nomination),
        )
        if patch.condition is not None or patch.nominated_node_name is not None:
            self._writer.write_status(pod, patch)


def _is_news(pod: Pod, condition: Condition) -> bool:
    """Whether the condition says anything the pod's does not (spec 04 §14 step 7)."""
    known = first_condition(pod.status.conditions, condition.type)
    return known is None or (known.status, known.reason, known.message) != (
        condition.status,
        condition.reason,
        condition.message,
    )


def _changed_nomination(pod: Pod, nomination: Nomination | None) -> str | None:
    if nomination is None or nomination.node_name == pod.status.nominated_node_name:
        return None
    return nomination.node_name
