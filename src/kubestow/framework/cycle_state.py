"""What the plugins of one profile store during one scheduling attempt (spec 04 §2.3)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubestow.api.pod import Pod
from kubestow.errors import PluginError
from kubestow.framework.attempt_timer import NO_TIMER, AttemptTimer, NoTimer, SampledTimer
from kubestow.framework.metrics import NO_METER, CycleMeter, PluginMeter

if TYPE_CHECKING:
    from kubestow.framework.group_cycle import GroupCycle


class CycleState:
    """Storage of one attempt, used in the pod's binding cycle as well.

    A plugin keeps its data under its own key. A stored value that changes in simulations (nominated
    pods, preemption dry runs) must have a `clone()` method; others are shared between copies.
    `group_cycle` is set while the pod is tried with its group, and not when it is really placed.
    """

    __slots__ = (
        "_data",
        "group_cycle",
        "meter",
        "parallel_pre_bind",
        "pods_to_activate",
        "sampler",
        "skip_filter",
        "skip_post_filter",
        "skip_pre_bind",
        "skip_score",
        "timer",
    )

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self.group_cycle: GroupCycle | None = None
        self.skip_filter: frozenset[str] = frozenset()
        self.skip_score: frozenset[str] = frozenset()
        self.skip_pre_bind: frozenset[str] = frozenset()
        self.parallel_pre_bind: frozenset[str] = frozenset()
        self.skip_post_filter = False
        self.pods_to_activate: dict[str, Pod] = {}
        self.meter: CycleMeter = NO_METER
        self.sampler: PluginMeter = NO_METER
        self.timer: AttemptTimer | NoTimer = NO_TIMER

    def measure(self, meter: CycleMeter, timer: AttemptTimer | None = None) -> None:
        """Measure from here on: all of the attempt, and with the timer its plugin calls."""
        self.meter = meter
        self.timer = NO_TIMER if timer is None else timer
        if timer is None:
            self.sampler = meter if meter.is_sampled else NO_METER
        else:
            self.sampler = SampledTimer(meter, timer) if meter.is_sampled else timer

    def write(self, key: str, value: Any) -> None:
        self._data[key] = value

    def read(self, key: str) -> Any:
        """The value under the key; a missing one is an error with the text `not found`."""
        try:
            return self._data[key]
        except KeyError:
            raise PluginError("not found") from None

    def get(self, key: str) -> Any | None:
        return self._data.get(key)

    def values(self) -> Iterable[Any]:
        return self._data.values()

    def delete(self, key: str) -> None:
        self._data.pop(key, None)

    def shallow_copy(self) -> "CycleState":
        """A state of its own for a pod of the same shape: equal values, shared until replaced."""
        return self.joined(None, self.skip_filter, self.skip_score)

    def joined(
        self, other: "CycleState | None", skip_filter: frozenset[str], skip_score: frozenset[str]
    ) -> "CycleState":
        """A copy that also has what another state has stored, which wins where both have a value,
        and in which other plugins are skipped."""
        copy = CycleState.__new__(CycleState)
        copy._data = self._data.copy() if other is None else self._data | other._data
        copy.group_cycle = None
        copy.skip_filter = skip_filter
        copy.skip_score = skip_score
        copy.skip_pre_bind = copy.parallel_pre_bind = frozenset()
        copy.skip_post_filter = self.skip_post_filter
        copy.pods_to_activate = {}
        copy.meter = copy.sampler = NO_METER
        copy.timer = NO_TIMER
        return copy

    def clone(self) -> "CycleState":
        """A copy whose stored values may change freely.

        Simulations are not measured: the copy has `NO_METER`.
        """
        copy = CycleState()
        copy._data = {
            key: value.clone() if hasattr(value, "clone") else value
            for key, value in self._data.items()
        }
        copy.group_cycle = self.group_cycle
        copy.skip_filter = self.skip_filter
        copy.skip_score = self.skip_score
        copy.skip_pre_bind = self.skip_pre_bind
        copy.parallel_pre_bind = self.parallel_pre_bind
        copy.skip_post_filter = self.skip_post_filter
        copy.pods_to_activate = self.pods_to_activate
        return copy
