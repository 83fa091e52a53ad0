"""Changing documents without modifying them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.cluster.documents import (
    filled_at,
    microseconds_at,
    removed_at,
    replaced_at,
    value_at,
    whole_seconds,
    whole_seconds_at,
)

DOCUMENT = {"metadata": {"name": "a"}, "spec": {"x": {"y": 1}, "z": None}}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("metadata", "name"), "a"),
        (("spec", "x"), {"y": 1}),
        (("spec", "z", "deeper"), None),
        (("spec", "x", "y", "deeper"), None),
        (("status", "phase"), None),
    ],
)
def test_value_at_is_none_where_a_step_is_missing(path: tuple[str, ...], expected: object):
    assert value_at(DOCUMENT, *path) == expected


def test_replaced_at_copies_the_path_and_shares_the_rest():
    changed = replaced_at(DOCUMENT, ("spec", "x", "y"), 2)
    assert changed == {"metadata": {"name": "a"}, "spec": {"x": {"y": 2}, "z": None}}
    assert changed["metadata"] is DOCUMENT["metadata"]
    assert DOCUMENT["spec"] == {"x": {"y": 1}, "z": None}
    assert replaced_at({}, ("a", "b"), 1) == {"a": {"b": 1}}
    assert replaced_at({"a": None}, ("a", "b"), 1) == {"a": {"b": 1}}


def test_removed_at_returns_the_same_document_if_there_is_nothing_to_remove():
    assert removed_at(DOCUMENT, ("spec", "x")) == {"metadata": {"name": "a"}, "spec": {"z": None}}
    for path in (("status",), ("spec", "w"), ("spec", "x", "w"), ("spec", "z", "w")):
        assert removed_at(DOCUMENT, path) is DOCUMENT


def test_filled_at_keeps_what_is_given():
    assert filled_at(DOCUMENT, ("metadata", "name"), "b") is DOCUMENT
    assert filled_at(DOCUMENT, ("spec", "z"), 3)["spec"]["z"] == 3
    assert filled_at({"a": False}, ("a",), True) == {"a": False}


keys = st.sampled_from("abc")
documents = st.recursive(st.integers(), lambda below: st.dictionaries(keys, below, max_size=3))


@given(st.dictionaries(keys, documents), st.lists(keys, min_size=1, max_size=4), st.integers())
def test_what_is_put_at_a_path_is_found_there(document: dict, path: list[str], value: int):
    before = repr(document)
    changed = replaced_at(document, tuple(path), value)
    assert value_at(changed, *path) == value
    assert value_at(removed_at(changed, tuple(path)), *path) is None
    assert repr(document) == before


def test_times_are_cut_not_rounded():
    now_ns = 1_700_000_000_987_654_321
    assert whole_seconds(now_ns) == "2023-11-14T22:13:20Z"
    assert whole_seconds_at(now_ns).isoformat() == "2023-11-14T22:13:20+00:00"
    assert microseconds_at(now_ns).isoformat() == "2023-11-14T22:13:20.987654+00:00"
