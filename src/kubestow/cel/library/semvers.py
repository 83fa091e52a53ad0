"""Semantic versions."""

import operator
import re
from functools import lru_cache, total_ordering
from typing import Final

from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, method
from kubestow.cel.static_types import BOOL, INT, SEMVER, STRING
from kubestow.cel.values import name_type

_PART_NAMES: Final = ("major", "minor", "patch")
_NUMBER_MAX: Final = 2**64 - 1
_DIGITS_MAX: Final = 20  # of the largest number; Python refuses to convert very many
_IDENTIFIER: Final = re.compile("[0-9A-Za-z-]+")
_DIGITS: Final = re.compile("[0-9]+")

# Numbers come before words, and compare as numbers: by their length first.
Identifier = tuple[bool, int, str]


@total_ordering
class Semver:
    """A version. Build metadata is ignored in comparisons."""

    __slots__ = ("_key", "_text", "core")

    def __init__(self, text: str, core: tuple[int, int, int], pre_release: tuple[str, ...]) -> None:
        self._text = text
        self.core = core
        # A version without a pre-release comes after all of its pre-releases.
        self._key = (core, not pre_release, tuple(map(_identifier, pre_release)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key == other._key

    def __lt__(self, other: "Semver") -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self._text


name_type(Semver, SEMVER.name)


@lru_cache(1024)
def parse_semver(text: str) -> Semver:
    """The version of a text; raises CelError."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, _, build = parts[2].partition("+")
    patch, dash, pre_release = rest.partition("-")
    numbers = [
        _number(name, part) for name, part in zip(_PART_NAMES, (*parts[:2], patch), strict=True)
    ]
    identifiers = tuple(pre_release.split(".")) if dash else ()
    for identifier in identifiers:
        _check_identifier(identifier, "Prerelease", is_numeric_strict=True)
    if "+" in parts[2]:
        for identifier in build.split("."):
            _check_identifier(identifier, "Build meta data", is_numeric_strict=False)
    return Semver(text, (numbers[0], numbers[1], numbers[2]), identifiers)


def _number(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise CelError(f'Invalid character(s) found in {name} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise CelError(f'{name.capitalize()} number must not contain leading zeroes "{text}"')
    if len(text) > _DIGITS_MAX or int(text) > _NUMBER_MAX:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _check_identifier(text: str, what: str, *, is_numeric_strict: bool) -> None:
    if not text:
        raise CelError(f"{what} is empty")
    if not _IDENTIFIER.fullmatch(text):
        raise CelError(f'Invalid character(s) found in {what.lower()} "{text}"')
    if is_numeric_strict and _DIGITS.fullmatch(text) and len(text) > 1 and text[0] == "0":
        raise CelError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')


def _identifier(text: str) -> Identifier:
    is_number = _DIGITS.fullmatch(text) is not None
    return not is_number, len(text) if is_number else 0, text


def _normalized(text: str) -> str:
    """Without a leading `v`, with three numbers, which have no leading zeroes."""
    text = text.strip().removeprefix("v")
    core, mark, rest = text, "", ""
    for position, character in enumerate(text):
        if character in "-+":
            core, mark, rest = text[:position], character, text[position + 1 :]
            break
    parts = core.split(".")
    if len(parts) < 3 and mark:
        raise CelError("No Major.Minor.Patch elements found")
    parts = [part.lstrip("0") or "0" if part else part for part in parts]
    parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + mark + rest


def _semver(text: str, normalize: bool = False) -> Semver:
    return parse_semver(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except CelError:
        return False
    return True


def _compare(first: Semver, second: Semver) -> int:
    return (first > second) - (first < second)


def _part(name: str, place: int) -> Overload:
    def read(version: Semver) -> int:
        return version.core[place]

    return method(name, (SEMVER,), INT, read)


SEMVERS: Final[tuple[Overload, ...]] = (
    function("semver", (STRING,), SEMVER, _semver),
    function("semver", (STRING, BOOL), SEMVER, _semver),
    function("isSemver", (STRING,), BOOL, _is_semver),
    function("isSemver", (STRING, BOOL), BOOL, _is_semver),
    *(_part(name, place) for place, name in enumerate(_PART_NAMES)),
    method("isGreaterThan", (SEMVER, SEMVER), BOOL, operator.gt),
    method("isLessThan", (SEMVER, SEMVER), BOOL, operator.lt),
    method("compareTo", (SEMVER, SEMVER), INT, _compare),
)
