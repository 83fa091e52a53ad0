"""Classes of characters, with and without regard to case."""

from typing import Final
from unicodedata import category

from kubestow.linear_regex.tree import Matches

_CATEGORIES: Final = {
    "C": "cfos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps",
}  # fmt: skip
# Characters that Unicode folds to an ASCII letter or to another letter's case, but that Python's
# `upper` and `lower` reach in one direction only.
_FOLDS_TO: Final = {"s": "\u017f", "k": "\u212a", "å": "\u212b", "ω": "\u2126", "β": "ϐ"}


def is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def in_any_case(holds: Matches) -> Matches:
    """Whether the character, or one that differs from it only in case, is in the class."""
    return lambda char: any(map(holds, _cases(char)))


def one(char: str, *, ignores_case: bool) -> Matches:
    if not ignores_case:
        return char.__eq__
    cases = _cases(char)
    return lambda found: found in cases


def between(low: str, high: str) -> Matches:
    return lambda char: low <= char <= high


def any_of(members: list[Matches], *, is_negated: bool) -> Matches:
    return lambda char: is_negated != any(member(char) for member in members)


def negated(holds: Matches) -> Matches:
    return lambda char: not holds(char)


def unicode_class(name: str) -> Matches | None:
    """The class of `\\p{name}`: a general category; None if it is unknown."""
    if name == "Any":
        return lambda char: True
    if len(name) > 2 or name[:1] not in _CATEGORIES or name[1:] not in _CATEGORIES[name[:1]]:
        return None
    return lambda char: category(char).startswith(name)


def _cases(char: str) -> frozenset[str]:
    lower = _single(char.lower(), char)
    upper = _single(char.upper(), char)
    folded = _single(upper.lower(), lower)
    found = {char, lower, upper, folded, _single(folded.upper(), folded)}
    if folded in _FOLDS_TO:
        found.add(_FOLDS_TO[folded])
    return frozenset(found)


def _single(cased: str, otherwise: str) -> str:
    return cased if len(cased) == 1 else otherwise


def _ascii(holds: Matches) -> Matches:
    return lambda char: char.isascii() and holds(char)


_DIGIT: Final = _ascii(str.isdigit)
_SPACE: Final[Matches] = lambda char: char in "\t\n\f\r "  # noqa: E731 -- one of a table
PERL: Final[dict[str, Matches]] = {
    "d": _DIGIT,
    "D": negated(_DIGIT),
    "w": is_word,
    "W": negated(is_word),
    "s": _SPACE,
    "S": negated(_SPACE),
}
POSIX: Final[dict[str, Matches]] = {
    "alnum": _ascii(str.isalnum),
    "alpha": _ascii(str.isalpha),
    "ascii": str.isascii,
    "blank": lambda char: char in "\t ",
    "cntrl": lambda char: char < " " or char == "\x7f",
    "digit": _DIGIT,
    "graph": between("!", "~"),
    "lower": between("a", "z"),
    "print": between(" ", "~"),
    "punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
    "space": lambda char: char in "\t\n\v\f\r ",
    "upper": between("A", "Z"),
    "word": is_word,
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}
