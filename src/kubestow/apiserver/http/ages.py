"""Ages as tables show them: `12s`, `3m20s`, `4h`, `2d5h`.

A larger age has fewer digits, with the same limits as in any cluster.
"""

from typing import Final

from kubestow.clock import NANOSECONDS
from kubestow.cluster.documents import seconds_of

UNKNOWN: Final = "<unknown>"
_MINUTE_S: Final = 60
_HOUR_S: Final = 60 * _MINUTE_S
_DAY_S: Final = 24 * _HOUR_S
_YEAR_S: Final = 365 * _DAY_S


def age(timestamp: object, now_ns: int) -> str:
    """How long ago a time of a document was."""
    then_s = seconds_of(timestamp)
    return UNKNOWN if then_s is None else duration(int(now_ns / NANOSECONDS - then_s))


def duration(seconds: int) -> str:
    """A length of time in one or two units."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 2 * _MINUTE_S:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE_S:
        return _two_units(seconds, _MINUTE_S, "m", 1, "s")
    if seconds < 3 * _HOUR_S:
        return f"{seconds // _MINUTE_S}m"
    if seconds < 8 * _HOUR_S:
        return _two_units(seconds, _HOUR_S, "h", _MINUTE_S, "m")
    if seconds < 2 * _DAY_S:
        return f"{seconds // _HOUR_S}h"
    if seconds < 8 * _DAY_S:
        return _two_units(seconds, _DAY_S, "d", _HOUR_S, "h")
    if seconds < 2 * _YEAR_S:
        return f"{seconds // _DAY_S}d"
    if seconds < 8 * _YEAR_S:
        return _two_units(seconds, _YEAR_S, "y", _DAY_S, "d")
    return f"{seconds // _YEAR_S}y"


def _two_units(seconds: int, large_s: int, large: str, small_s: int, small: str) -> str:
    rest = seconds % large_s // small_s
    text = f"{seconds // large_s}{large}"
    return f"{text}{rest}{small}" if rest else text
