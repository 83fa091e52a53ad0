"""JSON Patch: every operation, and the errors when one does not match."""

from typing import Any

import pytest

from kubestow.apiserver.writes.json_patch import json_patch
from kubestow.errors import ApiError

DOCUMENT: dict[str, Any] = {"a": {"b": [1, 2, 3]}, "t~/": "x", "n": None}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        pytest.param({"op": "add", "path": "/c", "value": 5}, "c", 5, id="add-member"),
        pytest.param({"op": "add", "path": "/a", "value": 5}, "a", 5, id="add-replaces"),
        pytest.param(
            {"op": "add", "path": "/a/b/1", "value": 9}, "a", {"b": [1, 9, 2, 3]}, id="add-inserts"
        ),
        pytest.param(
            {"op": "add", "path": "/a/b/-", "value": 9}, "a", {"b": [1, 2, 3, 9]}, id="add-appends"
        ),
        pytest.param({"op": "remove", "path": "/a/b/0"}, "a", {"b": [2, 3]}, id="remove-element"),
        pytest.param({"op": "remove", "path": "/a/b"}, "a", {}, id="remove-member"),
        pytest.param(
            {"op": "replace", "path": "/a/b/2", "value": "z"}, "a", {"b": [1, 2, "z"]}, id="replace"
        ),
        pytest.param({"op": "replace", "path": "/n", "value": 1}, "n", 1, id="replace-null"),
        pytest.param({"op": "copy", "from": "/a/b/0", "path": "/c"}, "c", 1, id="copy"),
        pytest.param({"op": "move", "from": "/a/b", "path": "/c"}, "c", [1, 2, 3], id="move"),
        pytest.param({"op": "replace", "path": "/t~0~1", "value": "y"}, "t~/", "y", id="escaped"),
        pytest.param({"op": "test", "path": "/a/b/0", "value": 1}, "t~/", "x", id="test-passes"),
    ],
)
def test_an_operation_changes_one_place(operation: dict[str, Any], path: str, expected: object):
    assert json_patch(DOCUMENT, [operation])[path] == expected
    assert DOCUMENT["a"] == {"b": [1, 2, 3]}


def test_operations_are_done_in_order():
    operations = [
        {"op": "add", "path": "/labels", "value": {}},
        {"op": "add", "path": "/labels/app", "value": "web"},
        {"op": "test", "path": "/labels/app", "value": "web"},
        {"op": "move", "from": "/labels/app", "path": "/labels/tier"},
    ]
    assert json_patch({}, operations) == {"labels": {"tier": "web"}}


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        pytest.param({"op": "remove", "path": "/x"}, 422, id="remove-missing"),
        pytest.param({"op": "replace", "path": "/x", "value": 1}, 422, id="replace-missing"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, 422, id="add-below-missing"),
        pytest.param({"op": "add", "path": "/a/b/4", "value": 1}, 422, id="add-past-the-end"),
        pytest.param({"op": "add", "path": "/a/b/01", "value": 1}, 422, id="index-with-zero"),
        pytest.param({"op": "add", "path": "/t~0~1/x", "value": 1}, 422, id="add-below-text"),
        pytest.param({"op": "copy", "from": "/x", "path": "/c"}, 422, id="copy-missing"),
        pytest.param({"op": "remove", "path": ""}, 422, id="remove-everything"),
        pytest.param({"op": "add", "path": "", "value": 1}, 422, id="no-object-left"),
        pytest.param({"op": "test", "path": "/a/b/0", "value": 2}, 422, id="test-fails"),
        pytest.param({"op": "add", "path": "/c"}, 400, id="no-value"),
        pytest.param({"op": "add", "path": "c", "value": 1}, 400, id="no-pointer"),
        pytest.param({"op": "burn", "path": "/a"}, 400, id="unknown-operation"),
    ],
)
def test_an_operation_that_does_not_match_is_refused(operation: dict[str, Any], code: int):
    with pytest.raises(ApiError) as caught:
        json_patch(DOCUMENT, [operation])
    assert caught.value.code == code


def test_a_patch_is_a_list():
    with pytest.raises(ApiError, match="expected a JSON array"):
        json_patch(DOCUMENT, {"op": "add"})
