"""States over texts.

All alternatives are followed at once, so each character is looked at once per state. Whether a text
matches depends on the set of states alone, so the steps between sets are remembered; where the
match is depends on their order of preference too.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from kubestow.linear_regex.characters import is_word
from kubestow.linear_regex.parser import PatternParser
from kubestow.linear_regex.program import Builder
from kubestow.linear_regex.tree import Context, PatternError

STEPS_MAX: Final = 4_096  # remembered steps of one pattern
REMEMBERED_MAX: Final = 20_000  # numbers in the sets of states that are remembered
_MATCH: Final = 0
_WORD: Final = "a"  # stands for every word character before a position


class _Node:
    """A set of states after a character of a kind; steps to others by the next character."""

    __slots__ = ("before", "is_match_at_end", "moves", "states")

    def __init__(self, states: tuple[int, ...], before: str) -> None:
        self.states = states
        self.before = before
        self.moves: dict[str, _Node | None] = {}
        self.is_match_at_end: bool | None = None


class Pattern:
    """A compiled pattern. `size` is the number of its states."""

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        builder = Builder(text)
        try:
            tree = PatternParser(text).parsed()
            self._first = builder.add(tree, _MATCH)
        except RecursionError as error:
            raise PatternError(f"expression nests too deeply: `{text[:80]}`") from error
        self._states = builder.states
        self.size = len(builder.states)
        self._forget()

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text."""
        node = self._start
        for char in text:
            try:
                following = node.moves[char]
            except KeyError:
                following = self._move(node, char)
            if following is None:
                return True
            node = following
        if node.is_match_at_end is None:
            reached = self._reached(node.states, _context(node.before, ""))
            node.is_match_at_end = _MATCH in reached
        return node.is_match_at_end

    def find(
        self, text: str, start: int = 0, *, spend: Callable[[int], None] | None = None
    ) -> tuple[int, int] | None:
        """The first match at or after a position; of those that begin there the preferred one.

        `spend` is called with the number of states looked at, for each character.
        """
        found: tuple[int, int] | None = None
        # Where the match of each state began; in the order of preference.
        threads: dict[int, int] = {}
        before = text[start - 1] if start else ""
        for position in range(start, len(text) + 1):
            if found is None:
                threads.setdefault(self._first, position)
            elif not threads:
                break
            char = text[position : position + 1]
            after: dict[int, int] = {}
            reached = self._spread(threads, _context(before, char))
            if spend is not None:
                spend(len(reached))
            for number, began in reached.items():
                if number == _MATCH:
                    found = began, position
                    break  # those that follow are less preferred
                state = self._states[number]
                if char and state.matches is not None and state.matches(char):
                    after.setdefault(state.next[0], began)
            threads, before = after, char
        return found

    def _spread(self, threads: dict[int, int], context: Context) -> dict[int, int]:
        """The threads after all steps that read no character, in the order of preference."""
        reached: dict[int, int] = {}
        stack = list(reversed(threads.items()))
        while stack:
            number, began = stack.pop()
            if number in reached:
                continue
            reached[number] = began
            state = self._states[number]
            if state.matches is None and (state.holds is None or state.holds(context)):
                stack.extend((following, began) for following in reversed(state.next))
        return reached

    def _reached(self, current: tuple[int, ...], context: Context) -> set[int]:
        return set(self._spread(dict.fromkeys(current, 0), context))

    # --- Remembered steps ---------------------------------------------------------------------

    def _forget(self) -> None:
        self._nodes: dict[tuple[tuple[int, ...], str], _Node] = {}
        self._step_count = 0
        self._remembered = 0
        self._start = self._node((self._first,), "")

    def _move(self, node: _Node, char: str) -> _Node | None:
        """The set after a character; None if the pattern has matched before it."""
        reached = self._reached(node.states, _context(node.before, char))
        following: _Node | None = None
        if _MATCH not in reached:
            states = {self._first}  # a match may begin at any position
            for number in reached:
                state = self._states[number]
                if state.matches is not None and state.matches(char):
                    states.update(state.next)
            if self._step_count >= STEPS_MAX or self._remembered >= REMEMBERED_MAX:
                self._forget()
            following = self._node(tuple(sorted(states)), _kind(char))
        self._step_count += 1
        node.moves[char] = following
        return following

    def _node(self, states: tuple[int, ...], before: str) -> _Node:
        node = self._nodes.get((states, before))
        if node is None:
            node = self._nodes[states, before] = _Node(states, before)
            self._remembered += len(states)
        return node


@lru_cache(256)  # few clusters have more patterns than that
def compiled(text: str) -> Pattern:
    """The pattern of a text; raises PatternError."""
    return Pattern(text)


def _kind(char: str) -> str:
    """What an assertion after the character can see of it."""
    return char if char == "\n" else _WORD if is_word(char) else " "


def _context(before: str, after: str) -> Context:
    return Context(
        is_start=not before,
        is_end=not after,
        is_line_start=before in ("", "\n"),
        is_line_end=after in ("", "\n"),
        is_word_edge=is_word(before) != is_word(after),
    )
