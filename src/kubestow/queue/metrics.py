"""What the queue reports to the metrics (spec 02 §16).

The queue reports each change as it happens. The recorder aggregates and publishes them, and decides
which plugin calls are sampled, because that is random. With `NO_METRICS` no time is measured.
"""

from typing import Final, Protocol

# Values of the label `queue`.
ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
GATED: Final = "gated"

# Values of the label `event` that are no cluster events (spec 02 §6.1).
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
POD_POPPED: Final = "PodPopped"

# The value of the label `hint` for a hint function that failed.
HINT_ERROR: Final = "Error"


class QueueMetrics(Protocol):
    def pending_changed(self, queue: str, delta: int) -> None:
        """`pending_pods`: pods entered or left a container."""
        ...

    def incoming(self, queue: str, event: str, count: int = 1) -> None:
        """`queue_incoming_pods_total`: pods entered a container because of that event."""
        ...

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None:
        """`unschedulable_pods`: a plugin rejects one pod more or less."""
        ...

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None:
        """`inflight_events`: entries of the in-flight log were added or dropped.

        The recorder may collect deltas for a second; with `flush` it must publish all of them.
        """
        ...

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """`queueing_hint_execution_duration_seconds`"""
        ...

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None:
        """`framework_extension_point_duration_seconds` with `extension_point="PreEnqueue"`"""
        ...

    def samples_plugins(self) -> bool:
        """Called once per PreEnqueue pass: whether its plugin calls are timed (one in ten)."""
        ...

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None:
        """`plugin_execution_duration_seconds` with `extension_point="PreEnqueue"`"""
        ...

    def event_narrowed(self, plugin: str, *, to_all: bool) -> None:
        """`pre_queueing_hint_evaluations_total`: a plugin said which pods an event concerns."""
        ...


class NoMetrics:
    def pending_changed(self, queue: str, delta: int) -> None: ...

    def incoming(self, queue: str, event: str, count: int = 1) -> None: ...

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None: ...

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None: ...

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None: ...

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None: ...

    def samples_plugins(self) -> bool:
        return False

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None: ...

    def event_narrowed(self, plugin: str, *, to_all: bool) -> None: ...


NO_METRICS: Final = NoMetrics()
