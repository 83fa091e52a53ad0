"""Names that were probably meant: one or two letters differ, or the case, or the prefix.

Names of one series (`zone-a` and `zone-b`, `node-1` and `node-12`) are not taken for each other.
"""

import re
from collections.abc import Iterable
from typing import Final

# Names of up to this many letters may differ by one letter, longer ones by two.
_SHORT: Final = 6
# Shorter names have too many neighbours.
_LENGTH_MIN: Final = 4
# A part of up to this many letters is a number or a letter of a series.
_SERIES_LENGTH: Final = 2
SIMILAR_MAX: Final = 3

_PARTS: Final = re.compile(r"[^a-z0-9]+|(?<=[a-z])(?=[0-9])|(?<=[0-9])(?=[a-z])")


def close_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The names that may have been meant, the closest first."""
    found = [(distance, each) for each in known if (distance := _distance(name, each)) is not None]
    return tuple(each for _, each in sorted(set(found))[:SIMILAR_MAX])


def close_hint(name: str, known: Iterable[str]) -> str:
    """The closest name as the end of a message; empty if none is close."""
    close = close_names(name, known)
    return f'; did you mean "{close[0]}"?' if close else ""


def _distance(given: str, known: str) -> int | None:
    """How far apart two names are; None if they are equal, or too far."""
    if given == known or not given or not known:
        return None
    one, other = given.lower(), known.lower()
    if one == other:
        return 0
    if ("/" in one) != ("/" in other) and one.rpartition("/")[2] == other.rpartition("/")[2]:
        return 0
    if min(len(one), len(other)) < _LENGTH_MIN or _are_of_series(one, other):
        return None
    limit = 1 if max(len(one), len(other)) <= _SHORT else 2
    distance = _edits(one, other, limit)
    return distance if distance <= limit else None


def _are_of_series(one: str, other: str) -> bool:
    parts, others = _PARTS.split(one), _PARTS.split(other)
    if len(parts) != len(others):
        return False
    differing = [pair for pair in zip(parts, others, strict=True) if pair[0] != pair[1]]
    return all(
        (len(left) <= _SERIES_LENGTH and len(right) <= _SERIES_LENGTH)
        or (left.isdigit() and right.isdigit())
        for left, right in differing
    )


def _edits(one: str, other: str, limit: int) -> int:
    """Letters to insert, remove, replace or swap; a larger number if more than the limit."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [number]
        for place, opposite in enumerate(other, start=1):
            cost = min(
                before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != opposite)
            )
            is_swap = number > 1 and place > 1 and letter == other[place - 2]
            if is_swap and one[number - 2] == opposite:
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
