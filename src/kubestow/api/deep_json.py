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
from typing import TYPE_CHECKING, Any, Final, Self, cast

import msgspec

if TYPE_CHECKING:
    from kubestow.api.nested_spans import NestedSpans

LEVELS_KEPT: Final = 64


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
            # Here: it needs NumPy, which only some commands load.
            from kubestow.api.nested_spans import NestedSpans

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
