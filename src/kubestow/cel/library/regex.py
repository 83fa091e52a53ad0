"""Regular expressions in RE2's notation, as upstream's."""

from collections.abc import Iterator
from typing import Final

from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, metered, method
from kubestow.cel.meter import Meter
from kubestow.cel.static_types import BOOL, INT, STRING, list_of
from kubestow.linear_regex import Found, Pattern, PatternError, compiled

# Steps through the states of a pattern that take as long as one unit of work.
_STATES_PER_UNIT: Final = 4


def _matches(meter: Meter, text: str, source: str) -> bool:
    pattern = _compiled(meter, source)
    # Charged as if no step was remembered: an answer must not depend on earlier ones.
    _read(meter, pattern, len(text))
    return pattern.is_in(text)


def _find(meter: Meter, text: str, source: str) -> str:
    for found in _occurrences(meter, text, source):
        return text[found.start : found.end]
    return ""


def _find_all(meter: Meter, text: str, source: str, limit: int = -1) -> tuple[str, ...]:
    pieces: list[str] = []
    for found in _occurrences(meter, text, source):
        if len(pieces) == limit:
            break
        pieces.append(text[found.start : found.end])
    return tuple(pieces)


def _occurrences(meter: Meter, text: str, source: str) -> Iterator[Found]:
    """Matches that do not overlap; an empty one does not follow another immediately."""
    pattern = _compiled(meter, source)
    position, end_before = 0, -1
    while position <= len(text):
        found = pattern.find(text, position)
        read_to = len(text) if found is None else found.read_to
        _read(meter, pattern, read_to - position + 1)
        if found is None:
            return
        if found.end > position or found.start != end_before:
            yield found
        position = found.end if found.end > position else position + 1
        end_before = found.end


def _read(meter: Meter, pattern: Pattern, length: int) -> None:
    meter.work(length * (1 + pattern.size // _STATES_PER_UNIT))


def _compiled(meter: Meter, source: str) -> Pattern:
    try:
        pattern = compiled(source)
    except PatternError as error:
        meter.work(len(source))
        raise CelError(f"error parsing regexp: {error}") from error
    meter.work(len(source) + pattern.size)
    return pattern


REGEX: Final[tuple[Overload, ...]] = (
    metered(method("matches", (STRING, STRING), BOOL, _matches)),
    metered(function("matches", (STRING, STRING), BOOL, _matches)),
    metered(method("find", (STRING, STRING), STRING, _find)),
    metered(method("findAll", (STRING, STRING), list_of(STRING), _find_all)),
    metered(method("findAll", (STRING, STRING, INT), list_of(STRING), _find_all)),
)
