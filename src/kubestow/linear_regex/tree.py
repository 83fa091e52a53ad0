"""What a pattern consists of."""

from collections.abc import Callable
from typing import NamedTuple

from kubestow.errors import InputError

Matches = Callable[[str], bool]


class PatternError(InputError):
    """A pattern that cannot be used; the text says why."""


class Context(NamedTuple):
    """What an assertion can see at a position of the text."""

    is_start: bool
    is_end: bool
    is_line_start: bool
    is_line_end: bool
    is_word_edge: bool


class One(NamedTuple):
    """One character."""

    matches: Matches


class Assertion(NamedTuple):
    """A condition on the position."""

    holds: Callable[[Context], bool]


class Sequence(NamedTuple):
    parts: "tuple[Tree, ...]"


class Alternatives(NamedTuple):
    """The first that leads to a match is preferred."""

    choices: "tuple[Tree, ...]"


class Repeat(NamedTuple):
    """`high` None is any number. Greedy prefers more repetitions."""

    part: "Tree"
    low: int
    high: int | None
    is_greedy: bool


Tree = One | Assertion | Sequence | Alternatives | Repeat
EMPTY = Sequence(())
