"""JSON that stays text: what is only passed on, and what is nested too deeply to be decoded.

The API server accepts 10,000 levels, in fields that no scheduler reads (`managedFields`) and in
parameters that it only passes on. msgspec needs a level of the stack for each, also to skip a field
that a struct does not declare: Python 3.11 ends at 990 levels, 3.12 at 1,492, 3.13 at 9,993. No
field that the scheduler reads is nested more than some twenty levels. So what is nested more deeply
than `LEVELS_KEPT` is cut out of the text before decoding and stays text, a `msgspec.Raw`.

The scan goes over brackets and quotes, without a stack: its time grows with the text alone.
Not here: deciding that a text needs it (`decode`, after a RecursionError).
"""

import hashlib
import re
from typing import Any, Final, Self, cast

import msgspec
import numpy as np
import numpy.typing as npt

LEVELS_KEPT: Final = 64

# How much is read at a time: a few milliseconds.
PIECE_BYTES: Final = 1 << 20
# What a byte can mean in a JSON text.
_QUOTE, _OPENING, _CLOSING, _BACKSLASH = 1, 2, 3, 4
_MEANINGS: Final = np.zeros(256, np.uint8)
_MEANINGS[list(b'"')] = _QUOTE
_MEANINGS[list(b"[{")] = _OPENING
_MEANINGS[list(b"]}")] = _CLOSING
_MEANINGS[list(b"\\")] = _BACKSLASH


def read_json(raw: bytes) -> object:
    """The value of a JSON text; raises msgspec.DecodeError.

    As in Go, bytes that are not UTF-8 become U+FFFD. What is nested deeply may be a `msgspec.Raw`.
    """
    try:
        return msgspec.json.decode(raw)
    except (UnicodeDecodeError, RecursionError):
        return DeepJson(as_utf8(raw)).document()


def readable_json(value: object) -> bytes:
    """A value as indented lines; what is nested deeply stays on one line."""
    text = msgspec.json.encode(value)
    try:
        return msgspec.json.format(text, indent=2) + b"\n"
    except RecursionError:
        deep = DeepJson(text)
        return deep.restored(msgspec.json.format(deep.text, indent=2)) + b"\n"


def as_utf8(raw: bytes) -> bytes:
    """The text with U+FFFD for all bytes that are not UTF-8."""
    return raw.decode(errors="replace").encode()


class OpaqueJson:
    """A value that is passed on unchanged, such as the parameters of a driver."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text: Final = text

    @classmethod
    def of(cls, value: object) -> Self:
        return cls(msgspec.json.encode(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueJson) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"OpaqueJson({self.text!r})"


class NestedSpans:
    """Where the lists and objects nested at one level begin and end.

    The text is read piece by piece. What is no JSON gives some spans or others.
    """

    __slots__ = ("_backslashes", "_depth", "_is_in_string", "_level", "_starts", "read", "spans")

    def __init__(self, level: int) -> None:
        """Level 1 is the outermost value."""
        self.spans: list[tuple[int, int]] = []
        self.read = 0
        self._level = level
        self._starts: list[int] = []
        self._depth = 0
        self._is_in_string = False
        self._backslashes = 0

    @property
    def unfinished(self) -> int | None:
        """Where a value begins that does not end."""
        return self._starts[0] if self._starts else None

    def read_all(self, raw: bytes) -> None:
        while self.read < len(raw):
            self.read_piece(raw)

    def read_piece(self, raw: bytes) -> None:
        """The next bytes of the text."""
        count = min(PIECE_BYTES, len(raw) - self.read)
        meanings = _MEANINGS[np.frombuffer(raw, np.uint8, count, self.read)]
        self._clear_escaped(meanings)
        at = np.flatnonzero(meanings)
        kinds = meanings[at]
        is_quote = kinds == _QUOTE
        quotes = np.cumsum(is_quote) + self._is_in_string
        is_bracket = ((kinds == _OPENING) | (kinds == _CLOSING)) & (quotes & 1 == 0)
        at, kinds = at[is_bracket] + self.read, kinds[is_bracket]
        is_opening = kinds == _OPENING
        depths = np.cumsum(np.where(is_opening, 1, -1)) + self._depth
        self._starts += at[is_opening & (depths == self._level)].tolist()
        ends: list[int] = at[~is_opening & (depths == self._level - 1)].tolist()
        self.spans += [(start, end + 1) for start, end in zip(self._starts, ends, strict=False)]
        del self._starts[: len(ends)]
        self.read += count
        self._depth = int(depths[-1]) if len(depths) else self._depth
        self._is_in_string ^= bool(np.count_nonzero(is_quote) & 1)

    def _clear_escaped(self, meanings: npt.NDArray[np.uint8]) -> None:
        """What follows an odd number of backslashes means nothing by itself."""
        at = np.flatnonzero(meanings == _BACKSLASH)
        if not len(at):
            if self._backslashes & 1:
                meanings[0] = 0
            self._backslashes = 0
            return
        # The first and the last of each row of backslashes.
        is_first = np.diff(at, prepend=-2) != 1
        firsts, lasts = at[is_first], at[np.roll(is_first, -1)]
        counts = lasts - firsts + 1
        if firsts[0] == 0:
            counts[0] += self._backslashes
        elif self._backslashes & 1:
            meanings[0] = 0
        escaped = lasts[counts & 1 == 1] + 1
        meanings[escaped[escaped < len(meanings)]] = 0
        self._backslashes = int(counts[-1]) if lasts[-1] == len(meanings) - 1 else 0


class DeepJson:
    """A JSON text in two parts: a text of few levels with marks in it, and what the marks mean."""

    def __init__(
        self,
        raw: bytes,
        *,
        levels_kept: int = LEVELS_KEPT,
        spans: "NestedSpans | None" = None,
    ) -> None:
        """`spans`: those of the text at the level after `levels_kept`, if they are known."""
        if spans is None:
            spans = NestedSpans(levels_kept + 1)
            spans.read_all(raw)
        self._raw: Final = raw
        self._cut: Final[list[tuple[int, int]]] = spans.spans
        kept: list[bytes] = []
        position = 0
        for start, end in self._cut:
            kept.append(raw[position:start])
            position = end
        # An unfinished value is left out: the text then is no JSON, and decoding it fails.
        kept.append(raw[position : spans.unfinished])
        # A text cannot contain its own hash: no string in it can be taken for a mark.
        digest = hashlib.sha256()
        for part in kept:
            digest.update(part)
        mark = digest.hexdigest().encode()
        parts = [kept[0]]
        for number, part in enumerate(kept[1:]):
            parts += (b'"%s:%d"' % (mark, number), part)
        self.text: Final = b"".join(parts)
        self._any_mark: Final = re.compile(b'"%s:([0-9]+)"' % mark)

    def restored(self, part: bytes) -> bytes:
        """A part of `text` as it was in the original."""
        return self._any_mark.sub(self._meaning, part)

    def document(self) -> object:
        """The value; what was cut out is a `msgspec.Raw`. Raises as `msgspec.json.decode` does."""
        value = msgspec.json.decode(self.text)
        return self._with_raw(value) if self._cut else value

    def _meaning(self, mark: re.Match[bytes]) -> bytes:
        start, end = self._cut[int(mark[1])]
        return self._raw[start:end]

    def _with_raw(self, value: Any) -> Any:  # any JSON value
        if isinstance(value, dict):
            entries = cast(dict[str, Any], value)
            return {key: self._with_raw(entry) for key, entry in entries.items()}
        if isinstance(value, list):
            return [self._with_raw(entry) for entry in cast(list[Any], value)]
        if isinstance(value, str) and self._any_mark.fullmatch(f'"{value}"'.encode()):
            return msgspec.Raw(self.restored(f'"{value}"'.encode()))
        return value
