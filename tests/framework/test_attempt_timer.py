"""Slow plugin calls are reported, and an attempt that takes too long ends between two of them."""

import logging
from typing import Any

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.errors import BudgetSpentError, SetAsideError
from kubestow.framework.attempt_timer import (
    NO_TIMER,
    SLICE_S,
    SLOW_CALL_S,
    WORK_S_MIN,
    AttemptTimer,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import (
    FILTER,
    NO_METER,
    PERMIT,
    POST_FILTER,
    PRE_FILTER,
    RESERVE,
    SCORE,
)
from kubestow.logs import FIELDS
from kubestow.testing import ManualClock, make_pod


class Rig:
    def __init__(self, budget_s: float = 10, slice_s: float = SLICE_S) -> None:
        self.clock = ManualClock(100)
        self.slow: list[tuple[str, str]] = []
        self.timer = AttemptTimer(
            self.clock.monotonic_s,
            budget_s=budget_s,
            count_slow=lambda plugin, point: self.slow.append((plugin, point)),
            slice_s=slice_s,
        )
        self.timer.start(PodInfo(make_pod("web")))

    def call(self, plugin: str, point: str, seconds: float) -> None:
        self.clock.advance_s(seconds)
        self.timer.plugin_ended(plugin, point)


def test_slow_calls_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    rig = Rig()
    rig.call("Quick", PRE_FILTER, SLOW_CALL_S)
    rig.call("Slow", FILTER, 0.25)
    rig.call("Quick", FILTER, 0.01)
    assert rig.slow == [("Slow", FILTER)]
    (record,) = caplog.records
    fields: dict[str, Any] = getattr(record, FIELDS)
    assert record.message == "A plugin call was slow"
    assert fields == {"plugin": "Slow", "point": FILTER, "pod": "default/web", "seconds": 0.25}


def test_time_between_two_stretches_of_calls_can_be_left_out() -> None:
    rig = Rig()
    rig.clock.advance_s(5)
    rig.timer.resume()
    rig.call("Quick", RESERVE, 0.01)
    assert rig.slow == []
    rig.clock.advance_s(30)
    rig.timer.resume()  # As after an extender: it does not count for the budget.
    rig.call("Quick", SCORE, 0.01)
    with pytest.raises(BudgetSpentError, match=r"took 11\.0s"):
        rig.call("Slow", SCORE, 11)


def test_an_attempt_is_set_aside_after_its_slice_but_not_at_its_end() -> None:
    rig = Rig(slice_s=0.5)
    rig.clock.advance_s(0.5)
    rig.timer.may_interrupt()
    rig.clock.advance_s(0.25)
    with pytest.raises(SetAsideError):
        rig.timer.may_interrupt()


def test_each_part_does_some_of_the_work_also_if_all_before_it_takes_long() -> None:
    rig = Rig(slice_s=0.5)
    rig.clock.advance_s(2)
    rig.timer.may_interrupt()
    rig.clock.advance_s(WORK_S_MIN / 2)
    rig.timer.may_interrupt()
    rig.clock.advance_s(WORK_S_MIN / 2)
    with pytest.raises(SetAsideError) as raised:
        rig.timer.may_interrupt()
    assert not raised.value.in_turns


class OneTurn:
    """Turns with a loop, in which the caller is or is not."""

    def __init__(self, rig: Rig, *, is_here: bool) -> None:
        self._rig = rig
        self.is_here = is_here
        self.count = 0

    def give_way(self) -> None:
        self.count += 1
        self._rig.clock.advance_s(5)


def test_work_that_is_not_kept_needs_turns() -> None:
    rig = Rig(slice_s=0.5)
    rig.clock.advance_s(2)
    rig.timer.pause()  # Without turns it goes on.
    rig.timer.turns = OneTurn(rig, is_here=False)
    with pytest.raises(SetAsideError) as raised:
        rig.timer.pause()
    assert raised.value.in_turns
    rig.timer.start(PodInfo(make_pod("web")), may_be_set_aside=False)
    rig.clock.advance_s(2)
    rig.timer.pause()
    rig.timer.may_interrupt()


def test_in_turns_an_attempt_rests_after_each_slice() -> None:
    rig = Rig(slice_s=0.5, budget_s=3)
    turns = rig.timer.turns = OneTurn(rig, is_here=True)
    rig.timer.start(PodInfo(make_pod("web")), may_be_set_aside=False)
    counts: list[int] = []
    for _ in range(7):
        rig.clock.advance_s(0.25)
        rig.timer.pause()
        rig.timer.may_interrupt()  # The same where no other pod may come in between.
        counts.append(turns.count)
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    rig.clock.advance_s(1.5)
    with pytest.raises(BudgetSpentError, match=r"took 3\.2s"):
        rig.timer.pause()


def test_the_error_names_the_slowest_call() -> None:
    rig = Rig()
    rig.call("A", PRE_FILTER, 2)
    rig.call("B", FILTER, 7)
    with pytest.raises(BudgetSpentError) as caught:
        rig.call("C", SCORE, 1.5)
    assert str(caught.value) == (
        "the attempt took 10.5s, its budget is 10s (--attempt-budget); "
        'the slowest call was Filter of plugin "B", 7.0s'
    )


def test_many_quick_calls_spend_the_budget_as_well() -> None:
    rig = Rig(budget_s=1)
    for _ in range(11):
        rig.call("A", FILTER, 0.09)
    with pytest.raises(BudgetSpentError, match=r"its budget is 1s \(--attempt-budget\)$"):
        rig.call("A", FILTER, 0.09)


@pytest.mark.parametrize("point", [POST_FILTER, RESERVE, PERMIT])
def test_what_has_begun_to_change_something_goes_on(point: str) -> None:
    rig = Rig()
    rig.call("A", point, 11)
    assert rig.slow == [("A", point)]


def test_the_middle_of_a_call_can_be_checked() -> None:
    rig = Rig()
    rig.clock.advance_s(10)
    rig.timer.check("A", FILTER)
    rig.clock.advance_s(0.5)
    with pytest.raises(BudgetSpentError, match=r'Filter of plugin "A", 10\.5s'):
        rig.timer.check("A", FILTER)


def test_each_attempt_has_the_whole_budget() -> None:
    rig = Rig()
    rig.call("A", FILTER, 9)
    rig.timer.start(PodInfo(make_pod()))
    rig.call("A", FILTER, 9)


def test_without_a_budget_no_attempt_ends() -> None:
    rig = Rig(budget_s=0)
    rig.call("A", FILTER, 1000)
    rig.timer.check("A", FILTER)
    assert rig.slow == [("A", FILTER)]


def test_a_simulation_is_not_timed() -> None:
    state, rig = CycleState(), Rig()
    state.measure(NO_METER, rig.timer)
    assert state.timer is state.sampler is rig.timer
    assert state.clone().timer is NO_TIMER
    assert state.shallow_copy().timer is NO_TIMER
