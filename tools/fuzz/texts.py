"""Strategies of texts: valid examples with some damage, which reach further than noise does."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

# What parsers stumble over: brackets, quotes, signs, long and odd numbers, times, tags, nesting.
PIECES: Final = (
    "", " ", "\n", "\t", ",", ":", "-", "+", ".", "=", "!", "(", ")", "[", "]", "{", "}", '"', "'",
    "\\", "/", "~", "*a", "&a ", "null", "true", "0", "-1", "1e999", "1e-999",
    "9" * 20, "9" * 5000, "2147483648", "9223372036854775808", "0x", "0b", "NaN", ".inf",
    "\u0000", "\ud7ff", "é",
    "\u0663", "\ufeff", "2024-99-99", "99:99", "!!int ", "!!binary ", "!!float ", "<<",
    "[" * 300, '{"a":' * 300, "(" * 300, "$patch", "$retainKeys", "\\u0000", "\\ud800", "%",
    "1_000",
    "1.5Ki", "1m1", "a" * 300,
)  # fmt: skip


def damaged(*examples: str) -> st.SearchStrategy[str]:
    """One of the examples, with up to four pieces removed, inserted or repeated."""
    return st.builds(damage, st.sampled_from(examples), st.lists(_EDITS, max_size=4))


def damaged_bytes(*examples: bytes) -> st.SearchStrategy[bytes]:
    """One of the examples, with pieces removed, inserted or repeated; a piece may be any byte."""
    texts = damaged(*(example.decode("latin-1") for example in examples))
    return texts.map(lambda text: text.encode("latin-1", "replace"))


_Edit = tuple[float, float, str]
_PLACE: Final = st.floats(0, 1)
_EDITS: Final[st.SearchStrategy[_Edit]] = st.tuples(
    _PLACE,
    st.sampled_from((0.0, 0.0, 0.02, 0.2)),
    st.sampled_from(PIECES) | st.text(max_size=6) | st.characters(max_codepoint=255),
)


def damage(text: str, edits: Sequence[_Edit]) -> str:
    for place, share, piece in edits:
        start = int(place * len(text))
        end = start + int(share * len(text))
        text = text[:start] + piece + text[end:]
    return text


json_values: Final[st.SearchStrategy[object]] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(PIECES[:40]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(PIECES), inner, max_size=4)
    ),
    max_leaves=12,
)
