"""What the framework and the plugins report to the metrics (spec 04 §2.9, 09 §8.1).

Each measured attempt has a `CycleMeter` in its `CycleState`, a stopwatch for the scheduling cycle
and for the binding cycle, which is a task of its own.

    state.meter      measures the extension points of every attempt
    state.sampler    single plugin calls: the same meter, in one attempt of ten, and in scheduling
                     cycles the timer that limits the attempt (`attempt_timer`)

Both are `NO_METER` where nothing is measured. A meter takes statuses and derives their labels, so
that an attempt without measurement costs one empty call per measurement.

Not here: names of metrics, buckets, how they are published (`service.metrics`); what the engine
reports of attempts and events (`engine.metrics`).
"""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from kubestow.framework.status import Code, Status

# Values of the label `extension_point`.
PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
NORMALIZE: Final = "ScoreExtensionNormalize"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
PRE_BIND_PRE_FLIGHT: Final = "PreBindPreFlight"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"


class Timing(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How long an extension point took, or with `plugin` one call of a plugin there."""

    point: str
    duration_s: float
    plugin: str = ""


class PluginMeter(Protocol):
    """Measures single plugin calls."""

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        """One plugin was called; `label_of(answer)` is its label."""
        ...


class CycleMeter(PluginMeter, Protocol):
    """The stopwatch of one attempt. Each `…_ended` measures from the previous one."""

    @property
    def is_sampled(self) -> bool:
        """Whether single plugin calls are to be measured as well."""
        ...

    @property
    def timings(self) -> Sequence[Timing]:
        """The measurements so far, in the order in which they ended; empty if they are not kept."""
        ...

    def resume(self) -> None:
        """Leave out the time since the last stop: waiting, or work on other pods."""
        ...

    def skip_pause(self) -> None:
        """Leave out the time since the last stop, also of the whole attempt: other members of the
        pod's group were tried."""
        ...

    def point_ended(self, point: str, status: Status | None = None) -> None:
        """All plugins of an extension point were run; None is a success."""
        ...

    def wait_ended(self, status: Status) -> None:
        """The wait of a pod at Permit has ended."""
        ...

    def algorithm_ended(self) -> None:
        """A node was chosen or none was found, PostFilter included."""
        ...

    def attempt_ended(self, result: str) -> None:
        """The attempt is over: the pod is bound, or handed to the failure handler."""
        ...


class NoMeter:
    """Measures nothing."""

    is_sampled = False
    timings = ()

    def resume(self) -> None: ...

    def skip_pause(self) -> None: ...

    def point_ended(self, point: str, status: Status | None = None) -> None: ...

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None: ...

    def wait_ended(self, status: Status) -> None: ...

    def algorithm_ended(self) -> None: ...

    def attempt_ended(self, result: str) -> None: ...


NO_METER: Final = NoMeter()


def label_of(answer: object) -> str:
    """The metric label of an answer: the code of a status; anything else is a success."""
    return answer.code.label if isinstance(answer, Status) else _SUCCESS


_SUCCESS: Final = Code.SUCCESS.label


class PluginMetrics(Protocol):
    """What plugins report themselves."""

    def preemption_attempted(self) -> None: ...

    def preemption_actuated(self, preemptor: str, victim_count: int) -> None:
        """Victims were chosen and are being evicted; `preemptor` is `pod` or a kind of group."""
        ...

    def preemption_task_ended(self, preemptor: str, duration_s: float, *, is_success: bool) -> None:
        """Evictions that ran beside the scheduling loop are done."""
        ...

    def preemption_evaluated(self, preemptor: str, status: Status, duration_s: float) -> None:
        """Victims were looked for; since v1.37, where there are groups."""
        ...

    def preemption_disrupts(self, preemptor: str, units: int, violations: int) -> None:
        """Victims were chosen: as many groups or pods of groups, and pods against their budget."""
        ...

    def volume_stage_failed(self, operation: str) -> None:
        """Volumes could not be handled in stage `predicate`, `assume` or `bind`."""
        ...

    def claim_created(self, *, is_success: bool) -> None:
        """A resource claim for extended resources was created, or could not be."""
        ...

    def device_wait_ended(
        self, profile_name: str, driver: str, status: str, duration_s: float
    ) -> None:
        """A pod waited for binding conditions: for each of its devices, how long and with which
        result: `success`, `failure`, `timeout` or `error`."""
        ...

    def device_conditions_ended(self, profile_name: str, driver: str, status: str) -> None:
        """A wait has ended: once for each device that has binding conditions."""
        ...


class NoPluginMetrics:
    """Counts nothing."""

    def preemption_attempted(self) -> None: ...

    def preemption_actuated(self, preemptor: str, victim_count: int) -> None: ...

    def preemption_task_ended(
        self, preemptor: str, duration_s: float, *, is_success: bool
    ) -> None: ...

    def preemption_evaluated(self, preemptor: str, status: Status, duration_s: float) -> None: ...

    def preemption_disrupts(self, preemptor: str, units: int, violations: int) -> None: ...

    def volume_stage_failed(self, operation: str) -> None: ...

    def claim_created(self, *, is_success: bool) -> None: ...

    def device_wait_ended(
        self, profile_name: str, driver: str, status: str, duration_s: float
    ) -> None: ...

    def device_conditions_ended(self, profile_name: str, driver: str, status: str) -> None: ...


NO_PLUGIN_METRICS: Final = NoPluginMetrics()
