"""Times the plugin calls of an attempt: reports slow ones, ends an attempt that takes too long.

Beyond upstream. There a slow plugin delays the pods behind it in the same way, but each of them is
compiled code that was reviewed with the scheduler; here a profile may load any Python class.

The time is read after each plugin call, and after each node in plugins that are called node by node
(`framework.node_plugin`); waiting for extenders is left out, since they have time limits of their
own. A single call that never returns cannot be ended from here: the service's
watchdog reports it.

A plugin whose work is kept from attempt to attempt lets it be interrupted (`may_interrupt`): the
attempt is then set aside after a short time, other pods are served, and it is made again.

Work that is not kept, because it depends on all pods of the cluster, would begin from scratch. It
says where it can rest (`pause`): the attempt is then made again in turns with the event loop, which
goes on at every rest; other pods wait for its end.

Members of a group are tried one after the other, and what they are given is undone if not all fit:
such an attempt is always made in turns with the loop, and rests between its members, too (`rest`).

One timer serves all attempts of a scheduler, since there is one at a time. An attempt that has
begun to change something (evictions, Reserve, Permit) is not interrupted any more.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, NoReturn, Protocol

from kubestow.api.pod_info import PodInfo
from kubestow.errors import BudgetSpentError, SetAsideError
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
# An attempt that takes longer is set aside where a plugin allows it.
SLICE_S: Final = 0.1
# Work that is kept goes on for this time in each part.
WORK_S_MIN: Final = 0.02
# Where an attempt may be ended: nothing has been changed yet.
_PURE_POINTS: Final = frozenset((PRE_FILTER, FILTER, PRE_SCORE, SCORE, NORMALIZE))


class Turns(Protocol):
    """The turns of cycles and the event loop (`engine.waiting_cycle`)."""

    @property
    def is_here(self) -> bool:
        """Whether the caller is a cycle that has turns with the loop."""
        ...

    def give_way(self) -> None:
        """Let the loop go on for a while."""
        ...


class AttemptTimer:
    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        budget_s: float,
        count_slow: Callable[[str, str], None],
        slice_s: float = SLICE_S,
        turns: Turns | None = None,
    ) -> None:
        """`budget_s` 0 is none. `count_slow` is called with plugin and extension point. Without
        `turns` work that is not kept does not rest."""
        self._now_s = now_s
        self._slice_s = slice_s
        self.turns = turns
        self._rest_s = 0.0  # when the attempt has to rest
        self._work_s: float | None = None  # until when work that is kept goes on in any case
        self._earlier_s = 0.0  # taken by earlier parts of the same attempt
        self.may_wait = True  # whether the attempt may be set aside
        self._budget_s = budget_s
        self._count_slow = count_slow
        self._pod: PodInfo | None = None
        self._started_s = self._last_s = 0.0
        self._deadline_s = float("inf")
        self._slowest = ("", "", 0.0)  # plugin, extension point, seconds

    def start_group(self) -> None:
        """Attempts for the members of a group follow: they rest as one."""
        self._rest_s = self._now_s() + self._slice_s

    def start(
        self,
        pod: PodInfo,
        earlier_s: float = 0.0,
        *,
        may_be_set_aside: bool = True,
        is_member: bool = False,
    ) -> None:
        """An attempt begins; one that was set aside has taken some time before."""
        self._pod = pod
        self.may_wait = may_be_set_aside
        self._earlier_s = earlier_s
        self._started_s = self._last_s = self._now_s()
        if not is_member:
            self._rest_s = self._started_s + self._slice_s
        self._work_s = None
        if self._budget_s:
            self._deadline_s = self._started_s + self._budget_s - earlier_s
        self._slowest = ("", "", 0.0)

    def resume(self) -> None:
        """Leave out the time since the last call: it was spent outside of plugins."""
        self._leave_out(self._last_s)

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
        """Raises BudgetSpentError in the middle of a call, if the attempt has taken too long."""
        now_s = self._now_s()
        if now_s > self._deadline_s:
            self._note_slow(plugin, point, now_s - self._last_s)
            self._last_s = now_s
            raise BudgetSpentError(self._text(now_s))

    def may_interrupt(self) -> None:
        """Called between pieces of work that are kept. Raises SetAsideError, BudgetSpentError."""
        if not self.may_wait:
            self.pause()
            return
        now_s = self._now_s()
        if now_s > self._deadline_s:
            raise BudgetSpentError(self._text(now_s))
        if self._work_s is None:
            # Each part has to do some of the work, also if all before it takes long every time.
            self._work_s = now_s + WORK_S_MIN
        elif now_s > self._rest_s and now_s >= self._work_s:
            raise SetAsideError(self._taken_s(now_s))

    def pause(self) -> None:
        """Called between pieces of work that are not kept. Raises as `may_interrupt` does."""
        now_s = self._now_s()
        if now_s > self._deadline_s:
            raise BudgetSpentError(self._text(now_s))
        turns = self.turns
        if now_s <= self._rest_s or turns is None:
            return
        if turns.is_here:
            self._give_way(turns, now_s)
        elif self.may_wait:
            raise SetAsideError(self._taken_s(now_s), in_turns=True)

    def rest(self) -> None:
        """Called between the members of a group. Lets the loop go on if they have taken long."""
        turns = self.turns
        if turns is not None and turns.is_here:
            now_s = self._now_s()
            if now_s > self._rest_s:
                self._give_way(turns, now_s)

    def _give_way(self, turns: Turns, now_s: float) -> None:
        turns.give_way()
        self._leave_out(now_s)
        self._rest_s = self._last_s + self._slice_s

    def wait_for(self, awaited: "Future[Any]") -> NoReturn:
        """Set the attempt aside until the work has ended."""
        now_s = self._now_s()
        if now_s > self._deadline_s:
            raise BudgetSpentError(self._text(now_s))
        raise SetAsideError(self._taken_s(now_s), awaited)

    def _taken_s(self, now_s: float) -> float:
        return self._earlier_s + now_s - self._started_s

    def _leave_out(self, since_s: float) -> None:
        """The time since then is not the attempt's."""
        now_s = self._now_s()
        left_out_s = now_s - since_s
        self._started_s += left_out_s
        self._deadline_s += left_out_s
        self._rest_s += left_out_s
        self._last_s = now_s

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
            f"the attempt took {self._taken_s(now_s):.1f}s, its budget is {self._budget_s:g}s "
            f"(--attempt-budget){slowest if plugin else ''}"
        )


class NoTimer:
    """Times nothing."""

    def resume(self) -> None: ...

    def check(self, plugin: str, point: str) -> None: ...

    @property
    def may_wait(self) -> bool:
        """Whether an attempt may be set aside until some work has ended."""
        return False

    def may_interrupt(self) -> None: ...

    def pause(self) -> None: ...

    def wait_for(self, awaited: "Future[Any]") -> NoReturn:
        raise AssertionError("this attempt cannot wait")


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
