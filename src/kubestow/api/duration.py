"""Durations as Go writes them (`1h30m`, `10s`, `1.5ms`, `1ns`), in whole nanoseconds."""

import re
from typing import Final

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")
NANOSECONDS_MAX: Final = 2**63 - 1


def parse_duration(text: str) -> int:
    """The duration in nanoseconds, finer parts cut off; raises ValueError with Go's texts."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total = 0
    position = 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part["whole"] or part["fraction"]):
            raise ValueError(f'time: invalid duration "{text}"')
        if not part["unit"]:
            raise ValueError(f'time: missing unit in duration "{text}"')
        unit = _UNITS.get(part["unit"])
        if unit is None:
            raise ValueError(f'time: unknown unit "{part["unit"]}" in duration "{text}"')
        total += int(part["whole"] or 0) * unit
        if part["fraction"]:
            total += int(part["fraction"]) * unit // 10 ** len(part["fraction"])
        position = part.end()
    if not rest or total > NANOSECONDS_MAX:
        raise ValueError(f'time: invalid duration "{text}"')
    return sign * total
