from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.apiserver.writes.json_patch import json_patch
from kubestow.explain.suggestions.patches import difference, patch_of
from kubestow.testing import make_node, make_pod

KEYS = st.sampled_from(["a", "b/c", "d~e", "~1", "requests", "tolerations"])
VALUES = st.recursive(
    st.one_of(st.integers(0, 3), st.sampled_from(["x", ""])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_the_difference_makes_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert json_patch(old, difference(old, new)) == new


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param(
            {"labels": {"x": "1"}},
            {"labels": {"x": "1", "example.com/a~b": "2"}},
            [{"op": "add", "path": "/labels/example.com~1a~0b", "value": "2"}],
            id="escaped",
        ),
        pytest.param(
            {"c": [{"hostPort": 1}, {"hostPort": 2}]},
            {"c": [{"hostPort": 1}, {"hostPort": 3}]},
            [{"op": "replace", "path": "/c/1/hostPort", "value": 3}],
            id="in-a-list",
        ),
        pytest.param(
            {"c": ["a", "b", "c"]},
            {"c": ["b"]},
            [{"op": "remove", "path": "/c/2"}, {"op": "remove", "path": "/c/0"}],
            id="removed-from-the-end",
        ),
        pytest.param(
            {"values": ["a"]},
            {"values": ["a", "b"]},
            [{"op": "add", "path": "/values/-", "value": "b"}],
            id="appended",
        ),
        pytest.param(
            {"requests": {"cpu": "2", "memory": "1Gi"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            [{"op": "add", "path": "/requests", "value": {"cpu": "1", "memory": "1Gi"}}],
            id="filled-in-by-a-server",
        ),
        pytest.param(
            {"volumeName": "pv", "other": 1},
            {},
            [
                {"op": "add", "path": "/volumeName", "value": ""},
                {"op": "remove", "path": "/other"},
            ],
            id="filled-in-and-gone",
        ),
    ],
)
def test_operations(
    old: dict[str, Any], new: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    assert difference(old, new, filled=frozenset(("requests", "volumeName"))) == operations


def test_new_and_deleted_objects_have_the_empty_path() -> None:
    (added,) = patch_of(None, make_node("a"))
    assert (added["op"], added["path"], added["value"]["kind"]) == ("add", "", "Node")
    assert patch_of(make_pod("p"), None) == [{"op": "remove", "path": ""}]
