"""Regular expressions in RE2's notation, run by Python's engine.

The notations differ in a few places, which are rewritten. What RE2 cannot do (lookaround,
backreferences) is an error here too: an expression must mean the same as upstream.
"""

import re
from functools import lru_cache
from typing import Final

from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, method
from kubestow.cel.static_types import INT, STRING, list_of

_PIECE: Final = re.compile(
    r"(?P<escape>\\.)"
    r"|(?P<posix>\[:(?P<negated>\^?)(?P<name>[a-z]+):\])"
    r"|(?P<look>\(\?(?:<?[=!]|>|P=|P>|\())"
    r"|(?P<named>\(\?<(?=[A-Za-z_]))"
    r"|(?P<other>.)",
    re.DOTALL,
)
_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def searches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = compiled(pattern).search(text)
    return "" if match is None else match.group()


def _find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    found = [match.group() for match in compiled(pattern).finditer(text)]
    return tuple(found if limit < 0 else found[:limit])


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_rewritten(pattern), re.ASCII)
    except re.error as error:
        raise CelError(f"error parsing regexp: {error}") from error


def _rewritten(pattern: str) -> str:
    pieces: list[str] = []
    in_class = False
    is_multiline = bool(re.match(r"\(\?[a-z]*m", pattern))
    for match in _PIECE.finditer(pattern):
        piece = match.group()
        if match["escape"]:
            piece = _escape(piece, pattern, in_class=in_class)
        elif match["posix"] and in_class:
            piece = _POSIX.get(match["name"], "")
            if not piece or match["negated"]:
                raise CelError(f"error parsing regexp: invalid character class range: `{pattern}`")
        elif match["look"] and not in_class:
            text = f"invalid or unsupported Perl syntax: `{piece}`"
            raise CelError(f"error parsing regexp: {text}")
        elif match["named"] and not in_class:
            piece = "(?P<"
        elif piece == "$" and not in_class and not is_multiline:
            piece = r"\Z"  # Python's `$` also matches before a line break at the end
        elif piece == "[" and in_class:
            piece = r"\["
        if piece == "[":
            in_class = True
        elif piece == "]" and in_class and pieces[-1] not in ("[", "[^"):
            in_class = False
        elif piece == "^" and pieces and pieces[-1] == "[":
            pieces[-1] = "[^"
            continue
        pieces.append(piece)
    return "".join(pieces)


def _escape(piece: str, pattern: str, *, in_class: bool) -> str:
    if piece == r"\z":
        return r"\Z"
    if piece[1].isdigit() and piece[1] != "0" and not in_class:
        raise CelError(f"error parsing regexp: invalid escape sequence: `{piece}`")
    if piece in (r"\pL", r"\PL", r"\p", r"\P", r"\C", r"\Q", r"\E"):
        raise CelError(f"error parsing regexp: invalid escape sequence: `{pattern}`")
    return piece


REGEX: Final[tuple[Overload, ...]] = (
    method("find", (STRING, STRING), STRING, _find),
    method("findAll", (STRING, STRING), list_of(STRING), _find_all),
    method("findAll", (STRING, STRING, INT), list_of(STRING), _find_all),
)
