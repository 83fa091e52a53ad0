"""Where values begin and end that are nested at one level of a JSON text.

The scan goes over brackets and quotes as arrays, without a stack: its time grows with the text
alone. Not imported by `deep_json` until it is needed: commands that only print help load no NumPy.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

# How much is read at a time: a few milliseconds.
PIECE_BYTES: Final = 1 << 20
# What a byte can mean in a JSON text.
_QUOTE, _OPENING, _CLOSING, _BACKSLASH = 1, 2, 3, 4
_MEANINGS: Final = np.zeros(256, np.uint8)
_MEANINGS[list(b'"')] = _QUOTE
_MEANINGS[list(b"[{")] = _OPENING
_MEANINGS[list(b"]}")] = _CLOSING
_MEANINGS[list(b"\\")] = _BACKSLASH


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
