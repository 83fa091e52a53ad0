"""When the next eviction may be: a pause, a number in an hour, hours of the day."""

import re
from collections import deque
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import InputError

HOUR_S: Final = 3600.0
_DAY_S: Final = 24 * HOUR_S
_TIME: Final = r"(\d{1,2})(?::(\d{2}))?"
_HOURS: Final = re.compile(rf"{_TIME}-{_TIME}")


class Hours(NamedTuple):
    """A part of each day, in seconds after midnight (UTC); it may go over midnight."""

    start_s: float
    end_s: float

    def wait_s(self, time_s: float) -> float:
        """How long it takes until the part begins; 0 within it."""
        if (time_s - self.start_s) % _DAY_S < (self.end_s - self.start_s) % _DAY_S:
            return 0.0
        return (self.start_s - time_s) % _DAY_S


def parse_hours(text: str) -> Hours:
    """Hours as of 22-6 or 8:30-17:00; InputError if it is none."""
    found = _HOURS.fullmatch(text)
    times = [int(number or 0) for number in found.groups()] if found is not None else []
    if not times or max(times[0], times[2]) > 24 or max(times[1], times[3]) > 59:
        raise InputError(f'--hours "{text}": expected, for example, 22-6 or 8:30-17:00 (UTC)')
    start_s, end_s = (hour * HOUR_S + minute * 60 for hour, minute in (times[:2], times[2:]))
    if start_s % _DAY_S == end_s % _DAY_S:
        raise InputError(f'--hours "{text}": the two times are the same')
    return Hours(start_s, end_s)


class Pacing:
    def __init__(
        self, clock: Clock, *, pause_s: float = 0.0, per_hour: int = 0, hours: Hours | None = None
    ) -> None:
        """`per_hour` is a limit of evictions; 0 is none."""
        self._clock = clock
        self._pause_s = pause_s
        self._hours = hours
        # Times of the last evictions, as many as an hour may have.
        self._times: deque[float] = deque(maxlen=per_hour or 1)
        self._per_hour = per_hour

    def allows(self, count: int) -> bool:
        """Whether this many evictions may ever follow one another at once."""
        return not self._per_hour or count <= self._per_hour

    def wait_s(self, count: int = 1) -> float:
        """How long to wait before this many evictions, which are done together."""
        now_s, waits = self._clock.monotonic_s(), [0.0]
        if self._times:
            waits.append(self._times[-1] + self._pause_s - now_s)
        surplus = len(self._times) + count - self._per_hour
        if self._per_hour and 0 < surplus <= len(self._times):
            waits.append(self._times[surplus - 1] + HOUR_S - now_s)
        if self._hours is not None:
            time = datetime.fromtimestamp(self._clock.now_ns() / NANOSECONDS, UTC)
            midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
            waits.append(self._hours.wait_s((time - midnight).total_seconds()))
        return max(waits)

    def evicted(self) -> None:
        """To be called after each eviction."""
        self._times.append(self._clock.monotonic_s())
