"""What the engine reports to the metrics (spec 04 §2.9, 03 §11.8, 09 §8.1).

With `NO_SCHEDULER_METRICS` nothing is timed.
"""

from typing import Final, Protocol

from kubestow.engine.decision import Decision
from kubestow.framework.events import ClusterEvent
from kubestow.framework.metrics import NO_METER, CycleMeter, NoPluginMetrics, PluginMetrics
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod

# Values of the label `result` of an attempt.
SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"

# Values of the label `result` of hints, for an attempt that looked for one (spec 04 §15).
NO_HINT: Final = "no_hint"
HINT_USED: Final = "hint_used"
HINT_NOT_USED: Final = "hint_not_used"
# Values of the label `reason`: why a pod leaves nothing to those after it.
EMPTY_LIST: Final = "empty_list"
POD_NOT_BATCHABLE: Final = "pod_not_batchable"


class SchedulerMetrics(PluginMetrics, Protocol):
    """The recorder of one scheduler. It must be fast: it is called many times per pod."""

    def start_attempt(self, profile_name: str, *, keeps_timings: bool) -> CycleMeter: ...

    def decided(self, decision: Decision) -> None:
        """The scheduling algorithm has ended; the decision has how often which plugin was asked."""
        ...

    def pod_bound(self, queued_pod: QueuedPod) -> None: ...

    def now_s(self) -> float:
        """The time on the recorder's own clock."""
        ...

    def start_group_point(self, profile_name: str) -> "GroupMeter":
        """Placements of a group are about to be generated or scored."""
        ...

    def group_decided(self, started_s: float) -> None:
        """The members of a group were tried; the cycle began at `started_s`."""
        ...

    def group_ended(self, result: str, profile_name: str, started_s: float) -> None:
        """The members of a group were placed or sent back."""
        ...

    def placements_generated(self, profile_name: str, count: int) -> None:
        """The placements of a group are known; since v1.37."""
        ...

    def placement_evaluated(
        self, profile_name: str, started_s: float, *, is_feasible: bool
    ) -> None:
        """The members of a group were tried on one of them; since v1.37."""
        ...

    def event_handled(self, event: ClusterEvent, started_s: float) -> None:
        """Cache and queue are up to date with an event that came at `started_s`."""
        ...


class GroupMeter(Protocol):
    """Measures one run of the plugins for placements."""

    def plugin_ended(self, plugin: str, point: str, answer: object) -> None: ...

    def generated(self, status: Status | None) -> None: ...

    def scored(self, status: Status | None) -> None: ...


class NoGroupMeter:
    def plugin_ended(self, plugin: str, point: str, answer: object) -> None: ...

    def generated(self, status: Status | None) -> None: ...

    def scored(self, status: Status | None) -> None: ...


class NoSchedulerMetrics(NoPluginMetrics):
    def start_attempt(self, profile_name: str, *, keeps_timings: bool) -> CycleMeter:
        return NO_METER

    def decided(self, decision: Decision) -> None: ...

    def pod_bound(self, queued_pod: QueuedPod) -> None: ...

    def now_s(self) -> float:
        return 0.0

    def start_group_point(self, profile_name: str) -> GroupMeter:
        return NO_GROUP_METER

    def group_decided(self, started_s: float) -> None: ...

    def group_ended(self, result: str, profile_name: str, started_s: float) -> None: ...

    def placements_generated(self, profile_name: str, count: int) -> None: ...

    def placement_evaluated(
        self, profile_name: str, started_s: float, *, is_feasible: bool
    ) -> None: ...

    def event_handled(self, event: ClusterEvent, started_s: float) -> None: ...


NO_GROUP_METER: Final = NoGroupMeter()
NO_SCHEDULER_METRICS: Final = NoSchedulerMetrics()
