"""The clock of the tests shows exactly the time it was set to."""

import pytest

from kubestow.testing.clock import ManualClock


def test_it_moves_only_when_set_or_advanced() -> None:
    clock = ManualClock(100.7)
    assert clock.now_ns() == clock.now_ns() == 100_700_000_000
    clock.advance_s(0.3)
    assert clock.now_ns() == 101_000_000_000
    assert clock.monotonic_s() == 101.0


def test_whole_seconds_stay_exact_however_many() -> None:
    assert ManualClock(2**62).now_ns() == 2**62 * 10**9


def test_setting_may_go_back_and_advancing_may_not() -> None:
    clock = ManualClock(5)
    clock.set_s(3)
    assert clock.now_ns() == 3_000_000_000
    clock.set_ns(1)
    assert clock.now_ns() == 1
    with pytest.raises(ValueError, match="cannot advance a clock by -1 ns"):
        clock.advance_ns(-1)
