"""Keys given twice are found in any spelling, and nothing else is taken for one."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.json_text import Extent, duplicate_key, extent_of
from kubestow.api.yaml_text import LEVELS_MAX


def duplicate_in(text: str) -> str | None:
    raw = text.encode()
    found = duplicate_key(raw, extent_of(msgspec.json.decode(raw)).key_count)
    return None if found is None else found.key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a":1,"a":2}', "a"),
        ('{"a":1,"a" :2}', "a"),
        ('{"a" : 1, "b": {"c": 1, "c" \n: 2}}', "c"),
        ('{"a":1,"\\u0061":2}', "a"),
        ('{"\\"":1,"\\"":2}', '"'),
        ('{"\\\\":1,"\\\\":2}', "\\"),
        ('[{"a":":"},{"a":":","a":1}]', "a"),
        ('{"a":1,"A":2}', None),
        ('{"a":{"a":1},"b":[{"a":1},{"a":2}]}', None),
        ('{"a":":","b":"\\":","c":" :"}', None),
        ('{"a":"\\\\","b":"\\\\\\":"}', None),
        ('{"": "\\u0022:"}', None),
        ("[]", None),
        ('"a"', None),
    ],
)
def test_the_first_key_given_twice(text: str, key: str | None) -> None:
    assert duplicate_in(text) == key


pieces = st.text('":\\ a{[,', max_size=4)
documents = st.recursive(
    pieces,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(pieces, inner, max_size=3),
    max_leaves=8,
)


@given(documents, st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
def test_what_is_written_once_is_not_found(value: object, separators: tuple[str, str]) -> None:
    assert duplicate_in(json.dumps(value, separators=separators)) is None


def nested(levels: int) -> object:
    value: object = {"a": 1}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "extent"),
    [
        (1, Extent(0, 0)),
        ([], Extent(0, 1)),
        ({"a": [{"b": 1}], "c": {}}, Extent(3, 3)),
        ([[[]], {"a": "b"}], Extent(1, 3)),
        ([[], {"a": {"b": {"c": [1]}}}, [[]]], Extent(3, 5)),
        (nested(LEVELS_MAX), Extent(LEVELS_MAX, LEVELS_MAX)),
        (nested(LEVELS_MAX + 1), Extent(LEVELS_MAX + 1, LEVELS_MAX + 1)),
        (nested(900), Extent(LEVELS_MAX + 1, LEVELS_MAX + 1)),
    ],
)
def test_extent(value: object, extent: Extent) -> None:
    assert extent_of(value) == extent
