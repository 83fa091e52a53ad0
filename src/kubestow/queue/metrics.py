"""What the queue tells whoever counts (spec 02 §16).

The queue reports each change as it happens, in the words of the metric it belongs to; publishing,
aggregating and buffering are the recorder's business, and so is the sampling of plugin calls,
because it is random. `NO_METRICS` is for whoever does not count: the queue then also saves itself
the clock readings.
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
        """`pending_pods`: pods came into or left a container."""
        ...

    def incoming(self, queue: str, event: str) -> None:
        """`queue_incoming_pods_total`: one pod entered a container because of that event."""
        ...

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None:
        """`unschedulable_pods`: a plugin rejects one pod more or less."""
        ...

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None:
        """`inflight_events`: entries came into or left the in-flight log.

        The recorder may gather deltas for a second; with `flush` it must publish all it has.
        """
        ...

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """`queueing_hint_execution_duration_seconds`"""
        ...

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None:
        """`framework_extension_point_duration_seconds` with `extension_point="PreEnqueue"`"""
        ...

    def samples_plugins(self) -> bool:
        """Asked once per PreEnqueue pass: whether its plugin calls are to be timed (one in ten)."""
        ...

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None:
        """`plugin_execution_duration_seconds` with `extension_point="PreEnqueue"`"""
        ...


class NoMetrics:
    """Counts nothing."""

    def pending_changed(self, queue: str, delta: int) -> None: ...

    def incoming(self, queue: str, event: str) -> None: ...

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None: ...

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None: ...

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None: ...

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None: ...

    def samples_plugins(self) -> bool:
        return False

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None: ...


NO_METRICS: Final = NoMetrics()
