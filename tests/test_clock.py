"""Times that are compared with each other do not jump with the wall clock."""

from kubestow.clock import NANOSECONDS, SteadyClock


class TwoClocks:
    """A wall clock that can be set, and a monotonic one."""

    def __init__(self) -> None:
        self.wall_ns = 1_000 * NANOSECONDS
        self.passed_s = 50.0

    def now_ns(self) -> int:
        return self.wall_ns

    def monotonic_s(self) -> float:
        return self.passed_s


def test_a_steady_clock_follows_the_time_that_passed() -> None:
    clocks = TwoClocks()
    steady = SteadyClock(clocks)
    clocks.passed_s += 2.5
    clocks.wall_ns += 3_600 * NANOSECONDS
    assert steady.now_ns() == 1_002_500_000_000
    clocks.passed_s += 1
    clocks.wall_ns -= 7_200 * NANOSECONDS
    assert steady.now_ns() == 1_003_500_000_000
    assert steady.monotonic_s() == 53.5


def test_no_two_readings_are_equal() -> None:
    steady = SteadyClock(TwoClocks())
    assert [steady.now_ns() for _ in range(3)] == [10**12, 10**12 + 1, 10**12 + 2]
