"""Patterns in RE2's notation, parsed into states that a text is matched by (`patterns`)."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kubestow.errors import InputError

STATES_MAX: Final = 5_000  # of one pattern; more are refused
REPEAT_MAX: Final = 1_000  # as RE2

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


class State:
    """Consumes a character, or leads on without one, perhaps only in some contexts."""

    __slots__ = ("holds", "matches", "next")

    def __init__(self) -> None:
        self.matches: Matches | None = None
        self.holds: Callable[[Context], bool] | None = None
        self.next: list[int] = []


class Part(NamedTuple):
    """A piece of the pattern: its first and its last state."""

    first: int
    last: int


class Flags(NamedTuple):
    ignores_case: bool = False
    is_multiline: bool = False
    dot_is_all: bool = False


class PatternParser:
    """Builds states from a pattern by recursive descent."""

    def __init__(self, text: str) -> None:
        self.states: list[State] = []
        self._text = text
        self._at = 0
        self._flags = Flags()

    def parsed(self) -> Part:
        part = self._alternatives()
        if self._at < len(self._text):
            raise PatternError(f"unexpected ): `{self._text}`")
        return part

    def _alternatives(self) -> Part:
        flags = self._flags
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        self._flags = flags
        if len(parts) == 1:
            return parts[0]
        last = self._new()
        first = self._new(next=[part.first for part in parts])
        for part in parts:
            self.states[part.last].next.append(last)
        return Part(first, last)

    def _sequence(self) -> Part:
        first = last = self._new()
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            part = self._repeated()
            self.states[last].next.append(part.first)
            last = part.last
        return Part(first, last)

    def _repeated(self) -> Part:
        start = self._at
        part = self._atom()
        end = self._at
        low, high = self._repetition()
        if (low, high) == (1, 1):
            return part
        part = self._times(part, start, end, low, high)
        if self._repetition() != (1, 1):
            raise PatternError(f"invalid nested repetition operator: `{self._text}`")
        return part

    def _repetition(self) -> tuple[int, int | None]:
        """How often the last piece occurs; None for any number."""
        low, high = 1, 1
        if self._take("*"):
            low, high = 0, None
        elif self._take("+"):
            low, high = 1, None
        elif self._take("?"):
            low, high = 0, 1
        elif self._peek() == "{":
            counts = self._counts()
            if counts is None:
                return 1, 1
            low, high = counts
            if (low, high) == (1, 1):
                return self._repetition()
        else:
            return 1, 1
        self._take("?")  # as few as possible: the same, as only whether it matches is of interest
        return low, high

    def _counts(self) -> tuple[int, int | None] | None:
        """The numbers of `{2,5}`; None if the braces are plain text."""
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if end < 0 or not low.isdecimal() or not (high.isdecimal() or not high):
            return None
        self._at = end + 1
        most = (int(high) if high else None) if comma else int(low)
        if int(low) > REPEAT_MAX or (most is not None and not int(low) <= most <= REPEAT_MAX):
            raise PatternError(f"invalid repeat count: `{self._text}`")
        return int(low), most

    def _times(self, part: Part, start: int, end: int, low: int, high: int | None) -> Part:
        """The piece between two positions of the pattern, several times in a row."""
        if high is None and low <= 1:
            last = self._new(next=[part.first])
            first = last if low == 0 else part.first
            self.states[part.last].next.append(last)
            return Part(first, self._after(last))
        parts = [part]
        wanted = low + 1 if high is None else high
        flags, after = self._flags, self._at
        while len(parts) < wanted:
            self._at = start
            parts.append(self._atom() if end > start else part)
        self._flags, self._at = flags, after
        last = self._new()
        if wanted == 0:
            return Part(last, last)
        for index, piece in enumerate(parts):
            following = parts[index + 1].first if index + 1 < len(parts) else last
            if index >= low:
                # This one and those after it may be missing.
                skipping = self._new(next=[piece.first, last])
                parts[index] = piece = Part(skipping, piece.last)
                if index:
                    self.states[parts[index - 1].last].next[-1] = skipping
            self.states[piece.last].next.append(following)
        if high is None:
            self.states[parts[-1].last].next.append(parts[-1].first)
        return Part(parts[0].first, last)

    def _after(self, state: int) -> int:
        end = self._new()
        self.states[state].next.append(end)
        return end

    # --- Single pieces ------------------------------------------------------------------------

    def _atom(self) -> Part:
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._consuming(self._set())
            case ".":
                dot_is_all = self._flags.dot_is_all
                return self._consuming(lambda found: dot_is_all or found != "\n")
            case "^":
                is_multiline = self._flags.is_multiline
                return self._asserting(
                    (lambda at: at.is_line_start) if is_multiline else (lambda at: at.is_start)
                )
            case "$":
                is_multiline = self._flags.is_multiline
                return self._asserting(
                    (lambda at: at.is_line_end) if is_multiline else (lambda at: at.is_end)
                )
            case "*" | "+" | "?":
                raise PatternError(f"missing argument to repetition operator: `{char}`")
            case "\\":
                return self._escape()
            case _:
                return self._consuming(self._one(char))

    def _group(self) -> Part:
        flags = self._flags
        if self._take("?"):
            if self._take("P<") or (
                self._peek() == "<" and self._text[self._at + 1 :][:1].isalpha()
            ):
                end = self._text.find(">", self._at)
                if end < 0:
                    raise PatternError(f"invalid named capture: `{self._text}`")
                self._at = end + 1
            elif self._set_flags():
                return self._empty()  # they hold until the end of the group around
        part = self._alternatives()
        if not self._take(")"):
            raise PatternError(f"missing closing ): `{self._text}`")
        self._flags = flags
        return part

    def _set_flags(self) -> bool:
        """Read `i:` or `i)`; True if nothing but flags is in the parentheses."""
        names = {"i": "ignores_case", "m": "is_multiline", "s": "dot_is_all"}
        value = True
        while (char := self._next()) not in ":)":
            if char == "-":
                value = False
            elif char in names:
                self._flags = self._flags._replace(**{names[char]: value})
            elif char != "U":
                raise PatternError(f"invalid or unsupported Perl syntax: `(?{char}`")
        return char == ")"

    def _escape(self) -> Part:
        char = self._next()
        match char:
            case "A":
                return self._asserting(lambda at: at.is_start)
            case "z":
                return self._asserting(lambda at: at.is_end)
            case "b":
                return self._asserting(lambda at: at.is_word_edge)
            case "B":
                return self._asserting(lambda at: not at.is_word_edge)
            case _:
                return self._consuming(self._escaped(char))

    def _escaped(self, char: str) -> Matches:
        """What a backslash and this character match, also within brackets."""
        if char in _CLASSES:
            return _CLASSES[char]
        return self._one(self._escaped_char(char))

    def _escaped_char(self, char: str) -> str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x":
            end = self._text.find("}", self._at) if self._take("{") else self._at + 2
            digits = self._text[self._at : end]
            self._at = end + (self._text[end : end + 1] == "}")
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError) as error:
                raise PatternError(f"invalid escape sequence: `\\x{digits}`") from error
        if char.isalnum():
            raise PatternError(f"invalid escape sequence: `\\{char}`")
        return char

    def _set(self) -> Matches:
        """What is between brackets."""
        is_negated = self._take("^")
        members: list[Matches] = []
        is_first = True
        while (char := self._next()) != "]" or is_first:
            is_first = False
            if char == "[" and self._peek() == ":":
                members.append(self._posix())
            elif char == "\\" and self._peek() in _CLASSES:
                members.append(_CLASSES[self._next()])
            else:
                low = self._escaped_char(self._next()) if char == "\\" else char
                members.append(self._range(low))
        return lambda found: is_negated != any(member(found) for member in members)

    def _range(self, low: str) -> Matches:
        rest = self._text[self._at :]
        if rest[:1] != "-" or rest[1:2] in ("]", ""):
            return self._one(low)
        self._next()
        high = self._next()
        if high == "\\":
            high = self._escaped_char(self._next())
        if high < low:
            raise PatternError(f"invalid character class range: `{low}-{high}`")
        if not self._flags.ignores_case:
            return lambda found: low <= found <= high
        return lambda found: low <= found.lower() <= high or low <= found.upper() <= high

    def _posix(self) -> Matches:
        end = self._text.find(":]", self._at)
        name = self._text[self._at + 1 : end]
        is_negated, name = name.startswith("^"), name.removeprefix("^")
        if end < 0 or name not in _POSIX:
            raise PatternError(f"invalid character class range: `[:{name}:]`")
        self._at = end + 2
        holds = _POSIX[name]
        return lambda found: is_negated != (found.isascii() and holds(found))

    def _one(self, char: str) -> Matches:
        if self._flags.ignores_case:
            lower = char.lower()
            return lambda found: found.lower() == lower
        return lambda found: found == char

    # --- States and text ----------------------------------------------------------------------

    def _new(self, next: list[int] | None = None) -> int:
        if len(self.states) >= STATES_MAX:
            raise PatternError(f"expression too large: `{self._text[:80]}`")
        state = State()
        state.next = next or []
        self.states.append(state)
        return len(self.states) - 1

    def _empty(self) -> Part:
        state = self._new()
        return Part(state, state)

    def _consuming(self, matches: Matches) -> Part:
        last = self._new()
        first = self._new(next=[last])
        self.states[first].matches = matches
        return Part(first, last)

    def _asserting(self, holds: Callable[[Context], bool]) -> Part:
        last = self._new()
        first = self._new(next=[last])
        self.states[first].holds = holds
        return Part(first, last)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise PatternError(f"the expression ends too early: `{self._text}`")
        self._at += 1
        return char

    def _take(self, text: str) -> bool:
        is_there = self._text.startswith(text, self._at)
        self._at += len(text) if is_there else 0
        return is_there


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def _is_space(char: str) -> bool:
    return bool(char) and char in "\t\n\f\r "


_CLASSES: Final[dict[str, Matches]] = {
    "d": _is_digit,
    "D": lambda char: not _is_digit(char),
    "w": is_word,
    "W": lambda char: not is_word(char),
    "s": _is_space,
    "S": lambda char: not _is_space(char),
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_POSIX: Final[dict[str, Matches]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "ascii": str.isascii,
    "blank": lambda char: char in "\t ",
    "cntrl": lambda char: char < " " or char == "\x7f",
    "digit": str.isdigit,
    "graph": lambda char: "!" <= char <= "~",
    "lower": str.islower,
    "print": lambda char: " " <= char <= "~",
    "punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
    "space": lambda char: char in "\t\n\v\f\r ",
    "upper": str.isupper,
    "word": is_word,
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}
