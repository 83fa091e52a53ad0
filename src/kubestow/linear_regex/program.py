"""States made from a tree.

A state consumes a character, or leads on without one, perhaps only in some contexts. Its followers
are in the order of preference.
"""

from collections.abc import Callable
from typing import Final

from kubestow.linear_regex.tree import (
    Alternatives,
    Assertion,
    Context,
    Matches,
    One,
    PatternError,
    Repeat,
    Sequence,
    Tree,
)

STATES_MAX: Final = 10_000  # of one pattern; more are refused


class State:
    __slots__ = ("holds", "matches", "next")

    def __init__(self) -> None:
        self.matches: Matches | None = None
        self.holds: Callable[[Context], bool] | None = None
        self.next: tuple[int, ...] = ()


class Builder:
    """Adds the states of a tree from its end to its beginning.

    State 0 has no follower: it is the match.
    """

    def __init__(self, source: str) -> None:
        self.states: list[State] = [State()]
        self._source = source

    def add(self, tree: Tree, then: int) -> int:
        """The first state of the tree; after the tree comes the state `then`."""
        match tree:
            case One():
                number = self._new((then,))
                self.states[number].matches = tree.matches
                return number
            case Assertion():
                number = self._new((then,))
                self.states[number].holds = tree.holds
                return number
            case Sequence():
                for part in reversed(tree.parts):
                    then = self.add(part, then)
                return then
            case Alternatives():
                return self._new(tuple(self.add(choice, then) for choice in tree.choices))
            case Repeat():
                return self._repeat(tree, then)

    def _repeat(self, tree: Repeat, then: int) -> int:
        end = then
        if tree.high is None:
            # Many are one and perhaps more: a piece that can be empty is tried before it is left.
            loop = self._new(())
            first = self.add(tree.part, loop)
            self.states[loop].next = self._ordered(first, end, tree)
            then = self._new(self._ordered(first, end, tree)) if tree.low == 0 else first
            copies = tree.low - 1
        else:
            for _ in range(tree.high - tree.low):
                then = self._new(self._ordered(self.add(tree.part, then), end, tree))
            copies = tree.low
        for _ in range(copies):
            then = self.add(tree.part, then)
        return then

    def _ordered(self, more: int, end: int, tree: Repeat) -> tuple[int, int]:
        return (more, end) if tree.is_greedy else (end, more)

    def _new(self, following: tuple[int, ...]) -> int:
        if len(self.states) >= STATES_MAX:
            raise PatternError(f"expression too large: `{self._source[:80]}`")
        state = State()
        state.next = following
        self.states.append(state)
        return len(self.states) - 1
