"""Text of an expression to tokens."""

import math
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from kubestow.cel.errors import CelError, located
from kubestow.cel.values import UInt, checked_int, checked_uint


class TokenKind(Enum):
    IDENT = auto()
    LITERAL = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """`text` of an identifier or symbol; `value` of a literal."""

    kind: TokenKind
    text: str
    value: object
    offset: int


_WORDS: Final[dict[str, object]] = {"true": True, "false": False, "null": None}

_QUOTED: Final = (
    r"(?P<prefix>[rR][bB]?|[bB][rR]?)?"
    r"(?P<quote>\"\"\"|'''|\"|')"
)
_TOKEN: Final = re.compile(
    r"(?P<space>(?:\s|//[^\n]*)+)"
    r"|(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)"
    r"|(?P<hex>0[xX][0-9a-fA-F]+)(?P<hex_u>[uU])?"
    r"|(?P<int>\d+)(?P<int_u>[uU])?"
    rf"|(?P<string>{_QUOTED})"
    r"|(?P<ident>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])"
)
# No literal with more digits is valid, and Python refuses to convert very many.
_DIGITS_MAX: Final = 30
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\?\"'`])"
    r"|[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<u4>[0-9a-fA-F]{4})|U(?P<u8>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2})|(?P<bad>.|$))",
    re.DOTALL,
)
_SIMPLE_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip


def tokenize(source: str) -> Iterator[Token]:
    """The tokens of an expression, the last one of kind END; raises CompileError."""
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise _unexpected(source, position)
        if match["space"] is None:
            token, position = _token(source, match)
            yield token
        else:
            position = match.end()
    yield Token(TokenKind.END, "<EOF>", None, len(source))


def _token(source: str, match: re.Match[str]) -> tuple[Token, int]:
    text, start = match.group(), match.start()
    if match["string"] is not None:
        return _string(source, match)
    if match["ident"] is not None:
        if text in _WORDS:
            return Token(TokenKind.LITERAL, text, _WORDS[text], start), match.end()
        return Token(TokenKind.IDENT, text, None, start), match.end()
    if match["symbol"] is not None:
        return Token(TokenKind.SYMBOL, text, None, start), match.end()
    return Token(TokenKind.LITERAL, text, _number(source, match), start), match.end()


def _number(source: str, match: re.Match[str]) -> object:
    if match["float"] is not None:
        double = float(match.group())
        if math.isinf(double):
            raise located(source, match.start(), "invalid double literal")
        return double
    digits = (match["hex"] or match["int"]).lower().removeprefix("0x")
    digits = digits.lstrip("0")[:_DIGITS_MAX] or "0"
    number = int(digits, 16 if match["hex"] else 10)
    is_unsigned = bool(match["hex_u"] or match["int_u"])
    if is_unsigned:
        try:
            return UInt(checked_uint(number))
        except CelError as error:
            raise located(source, match.start(), "invalid uint literal") from error
    # 2**63 is valid only after a minus sign, which the parser handles.
    if number > 2**63:
        raise located(source, match.start(), "invalid int literal")
    return number if number == 2**63 else checked_int(number)


def _string(source: str, match: re.Match[str]) -> tuple[Token, int]:
    prefix, quote = (match["prefix"] or "").lower(), match["quote"]
    start = match.end()
    end = _find_end(source, start, quote, is_raw="r" in prefix)
    if end < 0:
        raise located(source, match.start(), "Syntax error: token recognition error: string")
    body = source[start:end]
    value: object = body
    if "b" in prefix:
        value = body.encode() if "r" in prefix else _unescape_bytes(source, match.start(), body)
    elif "r" not in prefix:
        value = _ESCAPE.sub(lambda escape: _character(source, match.start(), escape), body)
    text = source[match.start() : end + len(quote)]
    return Token(TokenKind.LITERAL, text, value, match.start()), end + len(quote)


def _find_end(source: str, start: int, quote: str, *, is_raw: bool) -> int:
    position = start
    while position < len(source):
        if source.startswith(quote, position):
            return position
        if source[position] == "\n" and len(quote) == 1:
            return -1
        position += 2 if source[position] == "\\" and not is_raw else 1
    return -1


def _character(source: str, offset: int, escape: re.Match[str]) -> str:
    """The character of an escape in a string."""
    if escape["simple"]:
        return _SIMPLE_ESCAPES[escape["simple"]]
    code = escape["hex"] or escape["u4"] or escape["u8"]
    number = int(code, 16) if code else int(escape["octal"] or "-1", 8)
    if number < 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise located(source, offset, "unable to unescape string")
    return chr(number)


def _unescape_bytes(source: str, offset: int, body: str) -> bytes:
    """Bytes: an escape gives one byte, any other character its UTF-8 form."""
    pieces: list[bytes] = []
    end = 0
    for escape in _ESCAPE.finditer(body):
        if escape["u4"] or escape["u8"]:
            raise located(source, offset, "unable to unescape string")
        pieces += [
            body[end : escape.start()].encode(),
            _character(source, offset, escape).encode("latin-1"),
        ]
        end = escape.end()
    return b"".join((*pieces, body[end:].encode()))


def _unexpected(source: str, position: int) -> Exception:
    return located(
        source, position, f"Syntax error: token recognition error at: '{source[position]}'"
    )
