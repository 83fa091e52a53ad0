"""Schedules of CronJobs: five fields, a name such as `@daily`, or `@every 1h30m`.

    minute  hour  day of month  month  day of week
    0-59    0-23  1-31          1-12   0-6, Sunday is 0

A field is a list of numbers, names, ranges and steps: `*/15`, `MON-FRI`, `1,3,10-20/5`. If both
days are restricted one of them has to match, else both. Times are those of a time zone: a time
that a change of the clock skips is left out, one that it repeats counts twice.

Pure functions of times; texts of errors are those that kubectl users know from a real cluster.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple, Protocol

from kubestow.api.duration import parse_duration
from kubestow.clock import NANOSECONDS

YEARS_AHEAD: Final = 5
_EVERY: Final = "@every "
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS: Final = "sun mon tue wed thu fri sat"
_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Schedule(Protocol):
    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC; None if there is none in the next years."""
        ...


class _Bounds(NamedTuple):
    first: int
    last: int
    names: Mapping[str, int] = {}


_BOUNDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS.split(), start=1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS.split())}),
)


class _Field(NamedTuple):
    numbers: frozenset[int]
    # Whether `*` is in it: the field restricts nothing.
    is_any: bool


class FieldSchedule:
    """All minutes whose local time matches five fields."""

    def __init__(self, fields: tuple[_Field, ...], zone: tzinfo) -> None:
        self._minutes, self._hours, self._days, self._months, self._weekdays = fields
        self._zone = zone

    def next_after(self, moment: datetime) -> datetime | None:
        found = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        year_max = found.astimezone(self._zone).year + YEARS_AHEAD
        while True:
            local = found.astimezone(self._zone)
            if local.year > year_max:
                return None
            if not self._matches_day(local.date()):
                tomorrow = datetime.combine(local.date() + timedelta(days=1), time(), self._zone)
                # Where the clock skips midnight this is the first minute of the day.
                found = tomorrow.astimezone(UTC)
            elif local.hour not in self._hours.numbers:
                found += timedelta(minutes=60 - local.minute)
            elif local.minute not in self._minutes.numbers:
                found += timedelta(minutes=1)
            else:
                return found

    def _matches_day(self, day: date) -> bool:
        if day.month not in self._months.numbers:
            return False
        is_day = day.day in self._days.numbers
        is_weekday = day.isoweekday() % 7 in self._weekdays.numbers
        if self._days.is_any or self._weekdays.is_any:
            return is_day and is_weekday
        return is_day or is_weekday


class IntervalSchedule:
    """A fixed time after the last one."""

    def __init__(self, interval_s: int) -> None:
        self._interval = timedelta(seconds=max(interval_s, 1))

    def next_after(self, moment: datetime) -> datetime | None:
        return moment.astimezone(UTC).replace(microsecond=0) + self._interval


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """The schedule of a text; ValueError says what is wrong with it."""
    if not text:
        raise ValueError("empty spec string")
    if text.startswith(_EVERY):
        try:
            interval_ns = parse_duration(text.removeprefix(_EVERY))
        except ValueError as error:
            raise ValueError(f"failed to parse duration {text}: {error}") from error
        return IntervalSchedule(interval_ns // NANOSECONDS)
    if text.startswith("@"):
        if text not in _NAMED:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _NAMED[text]
    parts = text.split()
    if len(parts) != len(_BOUNDS):
        shown = " ".join(parts)
        raise ValueError(f"expected exactly {len(_BOUNDS)} fields, found {len(parts)}: [{shown}]")
    fields = tuple(_field(part, bounds) for part, bounds in zip(parts, _BOUNDS, strict=True))
    return FieldSchedule(fields, zone)


def _field(text: str, bounds: _Bounds) -> _Field:
    ranges = [_range(part, bounds) for part in text.split(",") if part]
    numbers = frozenset(number for one in ranges for number in one.numbers)
    return _Field(numbers, any(one.is_any for one in ranges))


def _range(text: str, bounds: _Bounds) -> _Field:
    span, *steps = text.split("/")
    low, *high = span.split("-")
    if len(high) > 1:
        raise ValueError(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _number(steps[0]) if steps else 1
    if low in ("*", "?"):
        first, last = bounds.first, bounds.last
    else:
        first = _number(low, bounds.names)
        # `5/10` is from 5 to the end.
        last = bounds.last if steps else first
        last = _number(high[0], bounds.names) if high else last
    _check_range(text, first, last, step, bounds)
    return _Field(frozenset(range(first, last + 1, step)), low in ("*", "?") and step == 1)


def _check_range(text: str, first: int, last: int, step: int, bounds: _Bounds) -> None:
    if first < bounds.first:
        raise ValueError(f"beginning of range ({first}) below minimum ({bounds.first}): {text}")
    if last > bounds.last:
        raise ValueError(f"end of range ({last}) above maximum ({bounds.last}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, names: Mapping[str, int] | None = None) -> int:
    if names and text.lower() in names:
        return names[text.lower()]
    digits = text.removeprefix("+").removeprefix("-")
    if not digits.isascii() or not digits.isdecimal():
        reason = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {reason}")
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


class Recent(NamedTuple):
    """Where a schedule stands."""

    # The last time that was used, or the beginning.
    since: datetime
    # The latest time since then that is not in the future, if there is one.
    due: datetime | None
    # About how many there were.
    missed_count: int


def most_recent(schedule: Schedule, since: datetime, now: datetime) -> Recent:
    """The latest time of a schedule up to now; ValueError for one that never comes."""
    first = schedule.next_after(since)
    second = None if first is None else schedule.next_after(first)
    if first is None or second is None:
        raise ValueError("time difference between two schedules is less than 1 second")
    if now < first:
        return Recent(since, None, 0)
    if now < second:
        return Recent(since, first, 0)
    # Not all of them are visited, there may be many. Begin two intervals before the estimate:
    # intervals may differ.
    interval_s = round((second - first).total_seconds())
    count = int((now - first).total_seconds()) // interval_s + 1
    due = None
    found = schedule.next_after(first + timedelta(seconds=(count - 2) * interval_s))
    while found is not None and found <= now:
        due, found = found, schedule.next_after(found)
    return Recent(since, due, count)
