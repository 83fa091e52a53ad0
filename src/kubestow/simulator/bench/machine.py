"""The state of the machine during a measurement: how fast it is, and who else uses it.

A figure taken on a busy machine says little about the code, and a comparison with a figure of
another machine even less. Three signs are recorded with every run; `disturbances` judges them.

foreign cores        CPU time that other processes and other guests of the host took, per second
wall over CPU        how much longer the timed section took than it computed: it had to wait
calibration spread   how much the speed of a fixed piece of array work varied meanwhile
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kubestow.clock import Clock, process_cpu_s, thread_cpu_s

# The limits of a calm machine. Of two cores, 0.15 is 0.3 cores.
FOREIGN_SHARE_LIMIT: Final = 0.15
WALL_OVER_CPU_LIMIT: Final = 1.1
CALIBRATION_SPREAD_LIMIT: Final = 1.2

_ROUNDS: Final = 2000
# The rounds of one sample, and the rounds before it that warm up the caches.
_ROUNDS_AT_ONCE: Final = 80
_ROUNDS_TO_WARM_UP: Final = 40
# A spread needs some samples, also if the measurement was short. A sample takes a millisecond.
_SAMPLES_MIN: Final = 20

_STAT: Final = Path("/proc/stat")
# The numbers of its first line: user, nice, system, idle, iowait, irq, softirq, steal.
_BUSY_FIELDS: Final = (0, 1, 2, 5, 6, 7)


class Calibration:
    """The typical speed of the machine, from samples of a fixed piece of array work.

    CPU time, so that a sample during which the thread had to wait is as good as any other.
    """

    def __init__(self) -> None:
        self._left, self._right = np.random.default_rng(0).integers(0, 1000, (2, 3, 5000))
        self._samples_s: list[float] = []

    def sample(self) -> None:
        """Time a part of the calibration work."""
        self._work(_ROUNDS_TO_WARM_UP)
        started_s = thread_cpu_s()
        self._work(_ROUNDS_AT_ONCE)
        self._samples_s.append(thread_cpu_s() - started_s)

    def result(self) -> "CalibrationResult":
        """The result, after more samples if there are few."""
        while len(self._samples_s) < _SAMPLES_MIN:
            self.sample()
        low_s, middle_s, high_s = np.percentile(self._samples_s, (25, 50, 75)).tolist()
        return CalibrationResult(middle_s * _ROUNDS / _ROUNDS_AT_ONCE, high_s / low_s)

    def _work(self, rounds: int) -> None:
        for _ in range(rounds):
            (self._left >= self._right).all(0)


class CalibrationResult(NamedTuple):
    """How long all of the work takes, and the upper quartile of its samples by the lower one."""

    seconds: float
    spread: float


class ForeignLoad:
    """CPU time that other processes take from now on."""

    def __init__(
        self,
        clock: Clock,
        *,
        own_cpu_s: Callable[[], float] = process_cpu_s,
        stat: Path = _STAT,
    ) -> None:
        self._clock = clock
        self._own_cpu_s = own_cpu_s
        self._stat = stat
        self._started = self._read()

    def cores(self) -> float | None:
        """How many cores others have used since the start, on average; None if not known."""
        now = self._read()
        if now.busy_s is None or self._started.busy_s is None:
            return None
        own_s = now.own_s - self._started.own_s
        passed_s = now.at_s - self._started.at_s
        # The counters of the machine advance in steps of 10 ms, those of the process do not.
        return max(now.busy_s - self._started.busy_s - own_s, 0.0) / passed_s

    def _read(self) -> "_Reading":
        return _Reading(self._clock.monotonic_s(), self._own_cpu_s(), _busy_s(self._stat))


class _Reading(NamedTuple):
    at_s: float
    own_s: float
    busy_s: float | None


def _busy_s(stat: Path) -> float | None:
    """CPU time of everything on the machine; None where the system does not count it this way."""
    try:
        with stat.open(encoding="ascii") as file:
            counters = file.readline().split()[1:]
        ticks = sum(int(counters[field]) for field in _BUSY_FIELDS)
    except (OSError, ValueError, IndexError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def disturbances(
    *, cores: int, foreign_cores: float | None, wall_over_cpu: float, calibration_spread: float
) -> list[str]:
    """Why a measurement says little about the code, in words; empty on a calm machine."""
    found: list[str] = []
    if foreign_cores is not None and foreign_cores > FOREIGN_SHARE_LIMIT * cores:
        found.append(f"other processes used {foreign_cores:.1f} of {cores} cores")
    if wall_over_cpu > WALL_OVER_CPU_LIMIT:
        found.append(f"pods took {wall_over_cpu:.1f} times their CPU time")
    if calibration_spread > CALIBRATION_SPREAD_LIMIT:
        found.append(f"the calibration varied by a factor of {calibration_spread:.1f}")
    return found
