"""The scalars of the configuration that Python has no type for.

Durations are read and printed as in Go (`300ms`, `15s`, `1h30m0s`); integers have the range of
upstream's, so that the same numbers are refused.
"""

from typing import Annotated, Final

import msgspec

from kubestow.api.duration import parse_duration
from kubestow.clock import NANOSECONDS

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
_SMALL_UNITS: Final = (("ms", 1_000_000), ("µs", 1_000), ("ns", 1))


class Duration(int):
    """Whole nanoseconds. The text is Go's: `str(Duration.parse("90s"))` is `1m30s`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Raises ValueError with Go's texts."""
        return cls(parse_duration(text))

    @property
    def seconds(self) -> float:
        return int(self) / NANOSECONDS

    def __str__(self) -> str:
        sign, rest = ("-", -int(self)) if self < 0 else ("", int(self))
        if rest == 0:
            return "0s"
        if rest < NANOSECONDS:
            unit, size = next(entry for entry in _SMALL_UNITS if rest >= entry[1])
            return f"{sign}{_decimal(rest, size)}{unit}"
        minutes, rest = divmod(rest, 60 * NANOSECONDS)
        hours, minutes = divmod(minutes, 60)
        text = f"{_decimal(rest, NANOSECONDS)}s"
        if hours or minutes:
            text = f"{minutes}m{text}"
        return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"

    def __repr__(self) -> str:
        return f"Duration({self})"


def seconds(count: int) -> Duration:
    return Duration(count * NANOSECONDS)


def _decimal(amount: int, size: int) -> str:
    """`amount / size` without trailing zeros; `size` is a power of ten."""
    whole, fraction = divmod(amount, size)
    digits = f"{fraction:0{len(str(size)) - 1}d}".rstrip("0") if size > 1 else ""
    return f"{whole}.{digits}" if digits else str(whole)


def parse_bool(text: str) -> bool:
    """A boolean as Go reads it; raises ValueError with Go's text."""
    if text not in _TRUE and text not in _FALSE:
        raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text in _TRUE
