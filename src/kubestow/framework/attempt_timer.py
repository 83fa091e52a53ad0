"""Times the plugin calls of an attempt: reports slow ones, ends an attempt that takes too long.

Beyond upstream. There a slow plugin delays the pods behind it in the same way, but each of them is
compiled code that was reviewed with the scheduler; here a profile may load any Python class.

The time is read after each plugin call, and after each node in plugins that are called node by node
(`framework.node_plugin`); waiting for extenders is left out, since they have time limits of their
own. A single call that never returns cannot be ended from here: the service's
watchdog reports it.

One timer serves all attempts of a scheduler, since there is one at a time. Evictions (PostFilter),
Reserve and Permit are never interrupted: they have begun to change something.
"""

import logging
from collections.abc import Callable
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.errors import BudgetSpentError
from kubestow.framework.metrics import (
    FILTER,
    NORMALIZE,
    PRE_FILTER,
    PRE_SCORE,
    SCORE,
    PluginMeter,
)
from kubestow.logs import warn

log = logging.getLogger(__name__)

# A plugin call that takes longer is logged and counted.
SLOW_CALL_S: Final = 0.1
# Where an attempt may be ended: nothing has been changed yet.
_PURE_POINTS: Final = frozenset((PRE_FILTER, FILTER, PRE_SCORE, SCORE, NORMALIZE))


class AttemptTimer:
    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        budget_s: float,
        count_slow: Callable[[str, str], None],
    ) -> None:
        """`budget_s` 0 is none. `count_slow` is called with plugin and extension point."""
        self._now_s = now_s
        self._budget_s = budget_s
        self._count_slow = count_slow
        self._pod: PodInfo | None = None
        self._started_s = self._last_s = 0.0
        self._deadline_s = float("inf")
        self._slowest = ("", "", 0.0)  # plugin, extension point, seconds

    def start(self, pod: PodInfo) -> None:
        """An attempt begins."""
        self._pod = pod
        self._started_s = self._last_s = self._now_s()
        if self._budget_s:
            self._deadline_s = self._started_s + self._budget_s
        self._slowest = ("", "", 0.0)

    def resume(self) -> None:
        """Leave out the time since the last call: it was spent outside of plugins."""
        now_s = self._now_s()
        left_out_s = now_s - self._last_s
        self._started_s += left_out_s
        self._deadline_s += left_out_s
        self._last_s = now_s

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        """Raises BudgetSpentError if the attempt has taken too long."""
        now_s = self._now_s()
        taken_s = now_s - self._last_s
        self._last_s = now_s
        if taken_s > SLOW_CALL_S:
            self._note_slow(plugin, point, taken_s)
        if now_s > self._deadline_s and point in _PURE_POINTS:
            raise BudgetSpentError(self._text(now_s))

    def check(self, plugin: str, point: str) -> None:
        """The same in the middle of a call."""
        now_s = self._now_s()
        if now_s > self._deadline_s:
            self._note_slow(plugin, point, now_s - self._last_s)
            self._last_s = now_s
            raise BudgetSpentError(self._text(now_s))

    def _note_slow(self, plugin: str, point: str, taken_s: float) -> None:
        if taken_s > self._slowest[2]:
            self._slowest = (plugin, point, taken_s)
        self._count_slow(plugin, point)
        pod = "" if self._pod is None else self._pod.key
        warn(
            log,
            "A plugin call was slow",
            plugin=plugin,
            point=point,
            pod=pod,
            seconds=round(taken_s, 3),
        )

    def _text(self, now_s: float) -> str:
        plugin, point, taken_s = self._slowest
        slowest = f'; the slowest call was {point} of plugin "{plugin}", {taken_s:.1f}s'
        return (
            f"the attempt took {now_s - self._started_s:.1f}s, its budget is {self._budget_s:g}s "
            f"(--attempt-budget){slowest if plugin else ''}"
        )


class NoTimer:
    """Times nothing."""

    def resume(self) -> None: ...

    def check(self, plugin: str, point: str) -> None: ...


NO_TIMER: Final = NoTimer()


class SampledTimer:
    """Passes each call to the timer and to the meter of the attempt."""

    __slots__ = ("_meter", "_timer")

    def __init__(self, meter: PluginMeter, timer: AttemptTimer) -> None:
        self._meter = meter
        self._timer = timer

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        self._meter.plugin_ended(plugin, point, answer)
        self._timer.plugin_ended(plugin, point, answer)
