"""Regular expressions in RE2's notation that take linear time.

A definition's pattern comes from a client and is applied to what clients send. Python's engine can
take exponential time for some patterns; here all alternatives are followed at once, so each
character of a text is looked at once. The steps between sets of states are remembered.

Not supported, and refused: lookaround, backreferences (as by RE2), `\\p{…}` classes.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from kubestow.apiserver.custom.pattern_parser import (
    Context,
    PatternError,
    PatternParser,
    is_word,
)

STEPS_MAX: Final = 4_096  # remembered steps of one pattern

States = frozenset[int]


class Pattern:
    """A compiled pattern."""

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        parser = PatternParser(text)
        try:
            self._first, self._last = parser.parsed()
        except RecursionError as error:
            raise PatternError(f"expression nests too deeply: `{text[:80]}`") from error
        self._states = parser.states
        self._steps: dict[tuple[States, Context, str], States | None] = {}

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text."""
        current: States = frozenset((self._first,))
        previous = ""
        for char in text:
            after = self._step(current, _context(previous, char), char)
            if after is None:
                return True
            current, previous = after, char
        return self._last in self._reached(current, _context(previous, ""))

    def _step(self, current: States, context: Context, char: str) -> States | None:
        """The states after a character; None if the pattern has matched before it."""
        key = (current, context, char)
        if key in self._steps:
            return self._steps[key]
        reached = self._reached(current, context)
        after: States | None = None
        if self._last not in reached:
            found = {self._first}  # a match may begin at any position
            for number in reached:
                state = self._states[number]
                if state.matches is not None and state.matches(char):
                    found.update(state.next)
            after = frozenset(found)
        if len(self._steps) >= STEPS_MAX:
            self._steps.clear()
        self._steps[key] = after
        return after

    def _reached(self, current: Iterable[int], context: Context) -> set[int]:
        """The states that are reached without a character."""
        reached = set(current)
        open_states = list(reached)
        while open_states:
            state = self._states[open_states.pop()]
            if state.matches is not None or (state.holds is not None and not state.holds(context)):
                continue
            for number in state.next:
                if number not in reached:
                    reached.add(number)
                    open_states.append(number)
        return reached


@lru_cache(256)  # few definitions have more patterns than that
def compiled(text: str) -> Pattern:
    return Pattern(text)


def _context(before: str, after: str) -> Context:
    return Context(
        is_start=not before,
        is_end=not after,
        is_line_start=before in ("", "\n"),
        is_line_end=after in ("", "\n"),
        is_word_edge=is_word(before) != is_word(after),
    )
