"""Regular expressions in RE2's notation, as upstream's."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, metered, method
from kubestow.cel.meter import CostMeter
from kubestow.cel.static_types import BOOL, INT, STRING, list_of
from kubestow.linear_regex import Pattern, PatternError, compiled

# Steps through the states of a pattern that take as long as one unit of work.
_STATES_PER_UNIT: Final = 4
_FIND_WORK: Final = 3  # for each state at each character
_COMPILE_WORK: Final = 3  # for each character and each state; charged for remembered patterns too


def _matches(meter: CostMeter, text: str, source: str) -> bool:
    pattern = _compiled(meter, source)
    # Charged as if no step was remembered: an answer must not depend on earlier ones.
    meter.work(len(text) * (1 + pattern.size // _STATES_PER_UNIT))
    return pattern.is_in(text)


def _find(meter: CostMeter, text: str, source: str) -> str:
    return next(_occurrences(meter, text, source), "")


def _find_all(meter: CostMeter, text: str, source: str, limit: int = -1) -> tuple[str, ...]:
    found = _occurrences(meter, text, source)
    return tuple(found if limit < 0 else islice(found, limit))


def _occurrences(meter: CostMeter, text: str, source: str) -> Iterator[str]:
    """Matches that do not overlap; an empty one does not follow another immediately."""
    pattern = _compiled(meter, source)
    position, end_before = 0, -1

    def spend(state_count: int) -> None:
        meter.work(_FIND_WORK * state_count)

    while position <= len(text):
        found = pattern.find(text, position, spend=spend)
        if found is None:
            return
        start, end = found
        if end > position or start != end_before:
            yield text[start:end]
        position = max(end, position + 1)
        end_before = end


def _compiled(meter: CostMeter, source: str) -> Pattern:
    try:
        pattern = compiled(source)
    except PatternError as error:
        meter.work(_COMPILE_WORK * len(source))
        raise CelError(f"error parsing regexp: {error}") from error
    meter.work(_COMPILE_WORK * (len(source) + pattern.size))
    return pattern


REGEX: Final[tuple[Overload, ...]] = (
    metered(method("matches", (STRING, STRING), BOOL, _matches)),
    metered(function("matches", (STRING, STRING), BOOL, _matches)),
    metered(method("find", (STRING, STRING), STRING, _find)),
    metered(method("findAll", (STRING, STRING), list_of(STRING), _find_all)),
    metered(method("findAll", (STRING, STRING, INT), list_of(STRING), _find_all)),
)
