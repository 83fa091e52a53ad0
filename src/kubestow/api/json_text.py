"""What decoding a JSON text does not report: keys given twice, and how deeply it is nested.

Both are checked where JSON is in a file, or comes from a client of the embedded server. What comes
from a real API server, or was saved from there, is read at any depth (`deep_json`).
"""

import re
from typing import Any, Final, NamedTuple

import msgspec

from kubestow.api.yaml_text import LEVELS_MAX

_CONTAINERS: Final = (dict, list)
_SCALARS: Final = frozenset[type]({str, int, float, bool, type(None)})
_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_KEY: Final = re.compile(_STRING + rb"\s*(:?)", re.DOTALL)
_QUOTE_AND_DISTANT_COLON: Final = re.compile(rb'"\s+:')
_KEY_OR_BRACKET: Final = re.compile(_STRING + rb"\s*(:?)|[\[{]|[\]}]", re.DOTALL)


class Extent(NamedTuple):
    """How much there is in a value: keys of maps, and maps and lists within each other.

    Nothing is looked at that is nested deeper than allowed: `levels` then is one level more.
    """

    key_count: int
    levels: int


def extent_of(value: object) -> Extent:
    if not isinstance(value, _CONTAINERS):
        return Extent(0, 0)
    return Extent(*_extent(value, LEVELS_MAX + 1))


def _extent(container: Any, levels_left: int) -> tuple[int, int]:
    is_map = isinstance(container, dict)
    entries: Any = container.values() if is_map else container  # pyright: ignore[reportUnknownVariableType]
    key_count, levels = len(entries) if is_map else 0, 0
    # Most maps have only texts: this looks at their types without a step of Python each.
    if levels_left > 1 and not _SCALARS.issuperset(map(type, entries)):
        for entry in entries:
            if isinstance(entry, _CONTAINERS):
                inner_count, inner_levels = _extent(entry, levels_left - 1)
                key_count += inner_count
                levels = max(levels, inner_levels)
    return key_count, levels + 1


class DuplicateKey(NamedTuple):
    key: str
    offset: int  # in the text


def duplicate_key(raw: bytes, key_count: int) -> DuplicateKey | None:
    """The first key that a map of a JSON text has twice; `key_count` is how many it decodes to.

    Decoding silently keeps the last one. Whether there is any is found by counting.
    """
    if _key_count_max(raw) == key_count or _KEY.findall(raw).count(b":") == key_count:
        return None
    open_maps: list[set[str] | None] = []  # keys so far; None for a list
    for token in _KEY_OR_BRACKET.finditer(raw):
        match raw[token.start()]:
            case 0x7B:  # {
                open_maps.append(set())
            case 0x5B:  # [
                open_maps.append(None)
            case 0x7D | 0x5D:
                open_maps.pop()
            case _ if token[1]:
                keys = open_maps[-1]
                key = msgspec.json.decode(token[0].rstrip(b": \t\r\n"), type=str)
                if keys is not None and key in keys:
                    return DuplicateKey(key, token.start())
                if keys is not None:
                    keys.add(key)
            case _:
                pass
    return None


def _key_count_max(raw: bytes) -> int:
    """How many keys a text has, and more where a text begins with a colon; quick to count."""
    if b"\\" in raw:
        # Every quote that is left begins or ends a text.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return raw.count(b'":') + len(_QUOTE_AND_DISTANT_COLON.findall(raw))
