"""What decoding a JSON text does not report: keys given twice, and how deeply it is nested.

Both are checked where JSON is written by hand, or by a client of the embedded server. What comes
from a real API server is read at any depth (`deep_json`).
"""

import re
from typing import Any, Final, NamedTuple

import msgspec

_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_KEY: Final = re.compile(_STRING + rb"\s*(:?)", re.DOTALL)
_KEY_OR_BRACKET: Final = re.compile(_STRING + rb"\s*(:?)|[\[{]|[\]}]", re.DOTALL)


def is_nested_deeper(value: object, levels: int) -> bool:
    """Whether a value has more than this many maps and lists within each other."""
    within: list[Any] = [value]
    for _ in range(levels):
        within = [
            entry
            for container in within
            if isinstance(container, dict | list)
            for entry in (container.values() if isinstance(container, dict) else container)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            if isinstance(entry, dict | list)
        ]
        if not within:
            return False
    return True


class DuplicateKey(NamedTuple):
    key: str
    offset: int  # in the text


def duplicate_key(raw: bytes, value: object) -> DuplicateKey | None:
    """The first key that a map of a JSON text has twice; `value` is what the text decodes to.

    Decoding silently keeps the last one. Whether there is any is found by counting.
    """
    if _KEY.findall(raw).count(b":") == _key_count(value):
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


def _key_count(value: object) -> int:
    count = 0
    within: list[Any] = [value]
    while within:
        entry = within.pop()
        if isinstance(entry, dict):
            count += len(entry)  # pyright: ignore[reportUnknownArgumentType]
            within += entry.values()  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        elif isinstance(entry, list):
            within += entry
    return count
