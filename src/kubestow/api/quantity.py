"""Kubernetes quantities ("100m", "1.5Gi", "129e6") as exact numbers.

Sums and comparisons must be exact and rounding must happen once, on the pod's total (spec 01 §1.3),
so a quantity is a whole count of nano-units: no parsable input is finer, and Python's integers are
unbounded. Clusters use few distinct quantity texts, so parsed ones are interned.

Invariant: a Quantity never changes once built; the conversions kept on it are only a cache.
Not here: which resource name is read in which unit (`resources`).
"""

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final

FORMAT_ERROR: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_ERROR: Final = "unable to parse quantity's suffix"
NUMERIC_ERROR: Final = "unable to parse numeric part of quantity"

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)


class Format(Enum):
    """How a quantity was written, and so how it is printed."""

    DECIMAL_SI = auto()
    BINARY_SI = auto()
    DECIMAL_EXPONENT = auto()


class Quantity:
    """An exact decimal number with a resolution of 10⁻⁹. Equal numbers are equal quantities."""

    __slots__ = ("_milli", "_text", "_value", "format", "nano", "small_scale")

    nano: int
    format: Format
    # The power of ten upstream's 64-bit form would carry, None for its arbitrary-precision form.
    # It only decides what an out-of-range conversion gives (spec 01 §1.2).
    small_scale: int | None

    def __init__(
        self, nano: int, format: Format = Format.DECIMAL_SI, small_scale: int | None = None
    ) -> None:
        self.nano = nano
        self.format = format
        self.small_scale = small_scale
        self._value: int | None = None
        self._milli: int | None = None
        self._text: str | None = None

    def value(self) -> int:
        """Whole units, rounded away from zero, as a signed 64-bit number."""
        value = self._value
        if value is None:
            value = self._value = self._at_scale(0)
        return value

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero, as a signed 64-bit number."""
        milli = self._milli
        if milli is None:
            milli = self._milli = self._at_scale(-3)
        return milli

    def rounded_up_to_milli(self) -> "Quantity":
        """What the API server keeps of a quantity in a resource list (spec 01 §0.1 step 1)."""
        nano = _divide_away_from_zero(self.nano, 10**6) * 10**6
        if nano == self.nano:
            return self
        return Quantity(nano, self.format, _scale_of_sum(nano, self.small_scale, -3))

    def __add__(self, other: "Quantity") -> "Quantity":
        # Spec 01 §1.4: a zero takes the other's format, otherwise the left format stays.
        if not other.nano:
            return self
        if not self.nano:
            return other
        nano = self.nano + other.nano
        return Quantity(nano, self.format, _scale_of_sum(nano, self.small_scale, other.small_scale))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano

    def __str__(self) -> str:
        """The canonical text (spec 01 §1.4)."""
        text = self._text
        if text is None:
            text = self._text = _canonical(self.nano, self.format)
        return text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _at_scale(self, scale: int) -> int:
        scaled = _divide_away_from_zero(self.nano, 10 ** (9 + scale))
        if INT64_MIN <= scaled <= INT64_MAX:
            return scaled
        # Spec 01 §1.2: out of range nothing saturates. The 64-bit form multiplies in one wrapping
        # step for these distances and returns 0 for all others; the other form wraps.
        if self.small_scale is None or self.small_scale - scale in (1, 2, 3, 6, 9):
            return wrap_int64(scaled)
        return 0


ZERO: Final = Quantity(0, Format.DECIMAL_SI, 0)


def parse_quantity(text: str | int | float | None) -> Quantity:
    """The quantity of a text (or a JSON number, or null).

    Raises ValueError with one of the three texts of spec 01 §1.1. White space is an error here; a
    decoder trims it first.
    """
    if text is None:
        return ZERO
    return _parse(text if isinstance(text, str) else repr(text))


def wrap_int64(number: int) -> int:
    """The low 64 bits of a number, read as signed: what 64-bit arithmetic would have given."""
    if INT64_MIN <= number <= INT64_MAX:
        return number
    return (number - INT64_MIN) % 2**64 + INT64_MIN


_DECIMAL_SUFFIXES: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}

# More lenient than the expression FORMAT_ERROR quotes, as upstream's scanner is.
# Possessive repeats (`*+`) do not backtrack, so a long text costs one pass.
_SCANNER: Final = re.compile(
    r"([+-]?+0*+([0-9]*+)(?:\.([0-9]*+))?+)([eEinumkKMGTP]*+[-+]?+[0-9]*+)"
)
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)")

SMALL_DIGITS_MAX: Final = 18
# Up to this many integer digits before the suffix, the product has the 64-bit form.
_SMALL_BINARY_DIGITS: Final = {10: 11, 20: 8, 30: 5, 40: 2, 50: -1, 60: -1}
# A larger exponent would build a number of a billion digits: a way to exhaust memory.
EXPONENT_MAX: Final = 4096


@lru_cache(maxsize=8_192)
def _parse(text: str) -> Quantity:
    match = _SCANNER.fullmatch(text)
    if not text or match is None:
        raise ValueError(FORMAT_ERROR)
    number, integer, fraction, suffix = match.groups(default="")
    format, exponent = _interpret_suffix(suffix)
    integer = integer or "0"
    small_scale = _small_scale(format, exponent, integer, fraction)
    # Without any digit only the 64-bit form reads a zero; the other one requires a number.
    if small_scale is None and not number.strip("+-."):
        raise ValueError(NUMERIC_ERROR)

    try:
        digits = int(integer + fraction)
    except ValueError as error:  # more digits than Python converts
        raise ValueError(NUMERIC_ERROR) from error
    if format is Format.BINARY_SI:
        nano = _times_power_of_ten(digits << exponent, 9 - len(fraction))
        nano = min(nano, INT64_MAX * 10**9)
        if 0 < nano < 10**9:
            format = Format.DECIMAL_SI
    else:
        nano = _times_power_of_ten(digits, 9 + exponent - len(fraction))
    if number.startswith("-"):
        nano = -nano
    return Quantity(nano, format, small_scale)


def _interpret_suffix(suffix: str) -> tuple[Format, int]:
    """The format, and the exponent of 2 (binary) or 10 (the others)."""
    if (exponent := _DECIMAL_SUFFIXES.get(suffix)) is not None:
        return Format.DECIMAL_SI, exponent
    if (exponent := _BINARY_SUFFIXES.get(suffix)) is not None:
        return Format.BINARY_SI, exponent
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > 20 or int(match[1]) > EXPONENT_MAX:
        raise ValueError(SUFFIX_ERROR)
    return Format.DECIMAL_EXPONENT, int(match[1])


def _small_scale(format: Format, exponent: int, integer: str, fraction: str) -> int | None:
    """The scale of upstream's 64-bit form, None if the number has the other (spec 01 §1.2)."""
    if format is Format.BINARY_SI:
        return 0 if not fraction and len(integer) <= _SMALL_BINARY_DIGITS[exponent] else None
    scale = exponent - len(fraction)
    is_small = len(integer) + len(fraction) <= SMALL_DIGITS_MAX and scale >= -9
    return scale if is_small else None


def _times_power_of_ten(number: int, exponent: int) -> int:
    """A number ≥ 0 times ten to the `exponent`, rounded up to a whole."""
    if exponent >= 0:
        return number * 10**exponent
    # Far below the resolution only zero or not matters; computing the power would be slow.
    if -exponent > SMALL_DIGITS_MAX + number.bit_length():
        return 1 if number else 0
    return _divide_away_from_zero(number, 10**-exponent)


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _scale_of_sum(nano: int, left: int | None, right: int | None) -> int | None:
    """A sum keeps the finer scale of the two until its mantissa leaves 64 bits."""
    if left is None or right is None:
        return None
    scale = min(left, right)
    return scale if INT64_MIN <= nano // 10 ** (9 + scale) <= INT64_MAX else None


def _canonical(nano: int, format: Format) -> str:
    if not nano:
        return "0"
    units, rest = divmod(abs(nano), 10**9)
    if format is Format.BINARY_SI and units >= 1024 and not rest:
        body = _canonical_binary(units)
    else:
        body = _canonical_decimal(abs(nano), format)
    return body if nano > 0 else f"-{body}"


def _canonical_binary(units: int) -> str:
    exponent = 0
    while units % 1024 == 0 and exponent < 60:
        units //= 1024
        exponent += 10
    return f"{units}{_BINARY_NAMES.get(exponent, '')}"


def _canonical_decimal(nano: int, format: Format) -> str:
    exponent = -9
    # Above exa there is no suffix, so the digits stay.
    while nano % 1000 == 0 and (exponent < 18 or format is Format.DECIMAL_EXPONENT):
        nano //= 1000
        exponent += 3
    if format is Format.DECIMAL_EXPONENT:
        return f"{nano}e{exponent}" if exponent else str(nano)
    return f"{nano}{_DECIMAL_NAMES[exponent]}"
