"""Patterns in RE2's notation, parsed into trees. The errors are those of Go's package regexp."""

from operator import attrgetter
from typing import Final, NamedTuple

from kubestow.linear_regex.characters import (
    PERL,
    POSIX,
    any_of,
    between,
    in_any_case,
    negated,
    one,
    unicode_class,
)
from kubestow.linear_regex.tree import (
    EMPTY,
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

REPEAT_MAX: Final = 1_000  # as RE2
DEPTH_MAX: Final = 100  # of groups; RE2 allows 1,000, which Python's stack does not

_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = "01234567"


class Flags(NamedTuple):
    ignores_case: bool = False
    is_multiline: bool = False
    dot_is_all: bool = False
    is_lazy: bool = False


_FLAGS: Final = {"i": "ignores_case", "m": "is_multiline", "s": "dot_is_all", "U": "is_lazy"}


class _Count(NamedTuple):
    """A repetition operator; `text` is how it was written."""

    low: int
    high: int | None
    is_greedy: bool
    text: str


class PatternParser:
    """Reads a pattern by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = Flags()
        self._depth = 0
        self._names: set[str] = set()

    def parsed(self) -> Tree:
        """Raises PatternError."""
        tree = self._alternatives()
        if self._at < len(self._text):
            raise PatternError(f"unexpected ): `{self._text}`")
        return tree

    def _alternatives(self) -> Tree:
        flags = self._flags
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._flags = flags
        return choices[0] if len(choices) == 1 else Alternatives(tuple(choices))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._take("\\Q"):
                parts.extend(self._quoted())
                if not parts:
                    continue
                parts[-1] = self._repeated(parts[-1])
            else:
                parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    # --- Repetitions --------------------------------------------------------------------------

    def _repeated(self, part: Tree) -> Tree:
        count = self._count()
        if count is None:
            return part
        again = self._count()
        if again is not None:
            text = count.text + again.text
            raise PatternError(f"invalid nested repetition operator: `{text}`")
        tree = Repeat(part, count.low, count.high, count.is_greedy)
        if _repetitions(tree) > REPEAT_MAX:
            raise PatternError(f"invalid repeat count: `{count.text}`")
        return tree

    def _count(self) -> _Count | None:
        """The repetition operator that comes next, if one does."""
        start = self._at
        low, high = 0, None
        if self._take("+"):
            low = 1
        elif self._take("?"):
            high = 1
        elif self._peek() == "{":
            counts = self._counts()
            if counts is None:
                return None
            low, high = counts
        elif not self._take("*"):
            return None
        is_greedy = self._take("?") == self._flags.is_lazy
        return _Count(low, high, is_greedy, self._text[start : self._at])

    def _counts(self) -> tuple[int, int | None] | None:
        """The numbers of `{2,5}`; None if the braces are plain text."""
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            return None
        text = self._text[self._at : end + 1]
        least = _number(low)
        most = (_number(high) if high else None) if comma else least
        if least > REPEAT_MAX or (most is not None and not least <= most <= REPEAT_MAX):
            raise PatternError(f"invalid repeat count: `{text}`")
        self._at = end + 1
        return least, most

    # --- Single pieces ------------------------------------------------------------------------

    def _atom(self) -> Tree:
        char = self._next()
        flags = self._flags
        match char:
            case "(":
                return self._group()
            case "[":
                return One(self._set())
            case ".":
                return One(_anything if flags.dot_is_all else _anything_in_line)
            case "^":
                return _LINE_START if flags.is_multiline else _START
            case "$":
                return _LINE_END if flags.is_multiline else _END
            case "*" | "+" | "?":
                raise PatternError(f"missing argument to repetition operator: `{char}`")
            case "\\":
                return self._escape()
            case "{":
                self._at -= 1
                if (count := self._count()) is not None:
                    text = f"missing argument to repetition operator: `{count.text}`"
                    raise PatternError(text)
                self._at += 1
                return One(self._one(char))
            case _:
                return One(self._one(char))

    def _group(self) -> Tree:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise PatternError(f"expression nests too deeply: `{self._text[:80]}`")
        flags = self._flags
        if self._peek() == "?":
            if self._text.startswith(("?P<", "?<"), self._at):
                self._name()
            elif self._set_flags():
                self._depth -= 1
                return EMPTY  # they hold until the end of the group around
        tree = self._alternatives()
        if not self._take(")"):
            raise PatternError(f"missing closing ): `{self._text}`")
        self._flags = flags
        self._depth -= 1
        return tree

    def _name(self) -> None:
        start = self._at - 1
        is_python = self._take("?P<")
        if not is_python and self._text[self._at + 2 : self._at + 3] in ("=", "!"):
            text = self._text[start : self._at + 3]
            raise PatternError(f"invalid or unsupported Perl syntax: `{text}`")
        self._at += 0 if is_python else 2
        end = self._text.find(">", self._at)
        if end < 0:
            raise PatternError(f"invalid named capture: `{self._text[start:]}`")
        name = self._text[self._at : end]
        is_valid = name.isascii() and name.replace("_", "a").isalnum()
        if not is_valid or name in self._names:
            raise PatternError(f"invalid named capture: `{self._text[start : end + 1]}`")
        self._names.add(name)
        self._at = end + 1

    def _set_flags(self) -> bool:
        """Read `?i:` or `?i)`; True if nothing but flags is in the parentheses."""
        start = self._at - 1
        self._at += 1
        value, has_flag = True, False
        while True:
            char = self._next() if self._at < len(self._text) else ""
            if char in (":", ")") and (value or has_flag):
                return char == ")"
            if char == "-" and value:
                value, has_flag = False, False
            elif char in _FLAGS:
                has_flag = True
                self._flags = self._flags._replace(**{_FLAGS[char]: value})
            elif not char:
                raise PatternError(f"missing closing ): `{self._text}`")
            else:
                text = self._text[start : self._at]
                raise PatternError(f"invalid or unsupported Perl syntax: `{text}`")

    # --- Escapes ------------------------------------------------------------------------------

    def _escape(self) -> Tree:
        char = self._after_backslash()
        if char in _ASSERTIONS:
            return _ASSERTIONS[char]
        return One(self._class_of(char) or self._one(self._escaped_char(char)))

    def _after_backslash(self) -> str:
        if self._at >= len(self._text):
            raise PatternError("trailing backslash at end of expression: ``")
        return self._next()

    def _quoted(self) -> list[Tree]:
        """The characters of `\\Q…\\E`; the end of the pattern ends it too."""
        end = self._text.find("\\E", self._at)
        text = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) if end < 0 else end + 2
        return [One(self._one(char)) for char in text]

    def _class_of(self, char: str) -> Matches | None:
        """What a backslash and this character match, if it is a class."""
        if char in PERL:
            return PERL[char]
        if char not in ("p", "P"):
            return None
        start = self._at - 2
        if self._peek() == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise PatternError(f"invalid character class range: `{self._text[start:]}`")
            name = self._text[self._at + 1 : end]
            self._at = end + 1
        else:
            name = self._after_backslash()
        is_negated = (char == "P") != name.startswith("^")
        holds = unicode_class(name.removeprefix("^"))
        if holds is None:
            text = self._text[start : self._at]
            raise PatternError(f"invalid character class range: `{text}`")
        holds = in_any_case(holds) if self._flags.ignores_case else holds
        return negated(holds) if is_negated else holds

    def _escaped_char(self, char: str) -> str:
        start = self._at - 2
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x":
            return self._hexadecimal(start)
        if char == "0" or (char in _OCTAL and self._peek() in _OCTAL and self._peek()):
            while self._at < min(len(self._text), start + 4) and self._peek() in _OCTAL:
                self._at += 1
            return chr(int(self._text[start + 1 : self._at], 8))
        if not char.isascii() or char.isalnum():
            raise PatternError(f"invalid escape sequence: `\\{char}`")
        return char

    def _hexadecimal(self, start: int) -> str:
        is_braced = self._take("{")
        end = self._text.find("}", self._at) if is_braced else self._at + 2
        digits = self._text[self._at : end] if end >= 0 else ""
        is_complete = len(digits) > 0 if is_braced else len(digits) == 2
        if not is_complete or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise PatternError(f"invalid escape sequence: `{self._text[start : self._at + 1]}`")
        self._at = end + is_braced
        if len(digits.lstrip("0")) > 6 or int(digits, 16) > 0x10FFFF:
            raise PatternError(f"invalid escape sequence: `{self._text[start : self._at]}`")
        return chr(int(digits, 16))

    # --- Brackets -----------------------------------------------------------------------------

    def _set(self) -> Matches:
        start = self._at - 1
        is_negated = self._take("^")
        members: list[Matches] = []
        while not (self._peek() == "]" and members):
            if self._at >= len(self._text):
                raise PatternError(f"missing closing ]: `{self._text[start:]}`")
            members.append(self._member())
        self._at += 1
        return any_of(members, is_negated=is_negated)

    def _member(self) -> Matches:
        start = self._at
        if self._text.startswith("[:", start) and ":]" in self._text[start + 2 :]:
            return self._posix()
        char = self._next()
        if char == "\\":
            escaped = self._after_backslash()
            found = self._class_of(escaped)
            if found is not None:
                return found
            char = self._escaped_char(escaped)
        rest = self._text[self._at : self._at + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return self._one(char)
        self._at += 1
        high = self._next()
        if high == "\\":
            high = self._escaped_char(self._after_backslash())
        if high < char:
            text = self._text[start : self._at]
            raise PatternError(f"invalid character class range: `{text}`")
        return self._cased(between(char, high))

    def _posix(self) -> Matches:
        end = self._text.index(":]", self._at + 2)
        text = self._text[self._at : end + 2]
        name = text[2:-2]
        holds = POSIX.get(name.removeprefix("^"))
        if holds is None:
            raise PatternError(f"invalid character class range: `{text}`")
        self._at = end + 2
        return negated(self._cased(holds)) if name.startswith("^") else self._cased(holds)

    def _cased(self, holds: Matches) -> Matches:
        return in_any_case(holds) if self._flags.ignores_case else holds

    def _one(self, char: str) -> Matches:
        return one(char, ignores_case=self._flags.ignores_case)

    # --- Text ---------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, text: str) -> bool:
        is_there = self._text.startswith(text, self._at)
        self._at += len(text) if is_there else 0
        return is_there


def _repetitions(tree: Tree) -> int:
    """How many copies of a piece nested repetitions ask for."""
    match tree:
        case Repeat():
            times = max(tree.low, tree.high or 1)
            return max(times, 1) * _repetitions(tree.part)
        case Sequence(parts=pieces) | Alternatives(choices=pieces):
            return max(map(_repetitions, pieces), default=1)
        case _:
            return 1


def _is_number(text: str) -> bool:
    # Go reads no number with a leading zero: the braces are plain text then.
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")


def _number(text: str) -> int:
    return int(text) if len(text) <= 4 else REPEAT_MAX + 1


def _anything(char: str) -> bool:
    return True


def _anything_in_line(char: str) -> bool:
    return char != "\n"


def _is_word_edge(at: Context) -> bool:
    return at.is_word_edge


def _is_no_word_edge(at: Context) -> bool:
    return not at.is_word_edge


_START: Final = Assertion(attrgetter("is_start"))
_END: Final = Assertion(attrgetter("is_end"))
_LINE_START: Final = Assertion(attrgetter("is_line_start"))
_LINE_END: Final = Assertion(attrgetter("is_line_end"))
_ASSERTIONS: Final = {
    "A": _START,
    "z": _END,
    "b": Assertion(_is_word_edge),
    "B": Assertion(_is_no_word_edge),
}
