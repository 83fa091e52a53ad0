"""Merge patches and strategic merge patches."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.schema.types import Schema, Shape
from kubestow.apiserver.writes.patch import merge_patch, strategic_merge_patch
from kubestow.errors import ApiError

A = {"type": "A", "status": "True"}
B = {"type": "B", "status": "False", "reason": "r"}

POD = schema_of("", "v1", "Pod")
# The fields of the spec and of the status may also stand at the top, to keep the examples short.
ANY_PART_OF_A_POD = Schema(
    shape=Shape.OBJECT,
    fields=POD.fields | POD.fields["spec"].fields | POD.fields["status"].fields,
)
ANY_PART_OF_A_POD.fields["finalizers"] = POD.fields["metadata"].fields["finalizers"]


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replace"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="add"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="remove"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="list-to-text"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-are-replaced"),
        pytest.param(
            {"a": {"b": "c", "d": 1}}, {"a": {"b": None}}, {"a": {"d": 1}}, id="deep-remove"
        ),
        pytest.param({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, id="nulls-are-not-kept"),
        pytest.param({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="scalar-to-object"),
    ],
)
def test_merge_patch(document: Any, patch: Any, expected: Any):
    assert merge_patch(document, patch) == expected


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param(
            {"conditions": [A, B]},
            {"conditions": [{"type": "B", "reason": "new"}]},
            {"conditions": [A, {**B, "reason": "new"}]},
            id="element-by-key",
        ),
        pytest.param({"conditions": [A]}, {"conditions": [B]}, {"conditions": [A, B]}, id="append"),
        pytest.param({}, {"conditions": [B]}, {"conditions": [B]}, id="first-of-a-list"),
        pytest.param(
            {"conditions": [A, B]},
            {"conditions": [{"$patch": "delete", "type": "A"}]},
            {"conditions": [B]},
            id="delete-element",
        ),
        pytest.param(
            {"conditions": [A, B]},
            {"conditions": [{"$patch": "replace"}, {"type": "C"}]},
            {"conditions": [{"type": "C"}]},
            id="replace-list",
        ),
        pytest.param(
            {"conditions": [A, B]},
            {"conditions": [{"type": "B", "reason": None}]},
            {"conditions": [A, {"type": "B", "status": "False"}]},
            id="null-in-element",
        ),
        pytest.param(
            {"conditions": [A, B]},
            {
                "$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}],
                "conditions": [{"type": "A", "status": "False"}],
            },
            {"conditions": [B, {**A, "status": "False"}]},
            id="order",
        ),
        pytest.param(
            {"conditions": [{"type": "X"}, A, {"type": "Y"}, B]},
            {
                "$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}, {"type": "C"}],
                "conditions": [{"type": "C"}],
            },
            {"conditions": [{"type": "X"}, A, {"type": "Y"}, B, {"type": "C"}]},
            id="order-names-only-some",
        ),
        pytest.param(
            {"taints": [{"key": "a"}]},
            {"taints": [{"key": "b"}]},
            {"taints": [{"key": "b"}]},
            id="list-without-key-is-replaced",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b", "a"]}},
            {"metadata": {"finalizers": ["a", "b"]}},
            id="set-of-texts",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
            id="delete-from-set",
        ),
        pytest.param(
            {"a": {"b": 1, "c": 2}}, {"a": {"$patch": "replace", "d": 3}}, {"a": {"d": 3}},
            id="replace-object",
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="delete-object"),
        pytest.param(
            {"s": {"rollingUpdate": {}, "type": "R"}},
            {"s": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"s": {"type": "Recreate"}},
            id="retain-keys",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}},
            {
                "spec": {
                    "containers": [
                        {"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}]}
                    ]
                }
            },
            {
                "spec": {
                    "containers": [
                        {"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}]}
                    ]
                }
            },
            id="lists-inside-lists",
        ),
    ],
)  # fmt: skip
def test_strategic_merge_patch(document: Any, patch: Any, expected: Any):
    before = deepcopy((document, patch))
    assert strategic_merge_patch(document, patch, ANY_PART_OF_A_POD) == expected
    assert (document, patch) == before


def test_ports_of_a_service_have_another_key():
    document = {"spec": {"ports": [{"port": 80, "name": "a"}]}}
    patch = {"spec": {"ports": [{"port": 80, "name": "b"}]}}
    patched = strategic_merge_patch(document, patch, schema_of("", "v1", "Service"))
    assert patched == {"spec": {"ports": [{"port": 80, "name": "b"}]}}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"conditions": [{"status": "True"}]}, "does not contain declared merge key: type"),
        ({"a": {"$patch": "mangle"}}, "Unknown patch type found: mangle"),
    ],
)
def test_an_invalid_patch_is_a_bad_request(patch: Any, message: str):
    with pytest.raises(ApiError, match=message) as caught:
        strategic_merge_patch({}, patch, ANY_PART_OF_A_POD)
    assert caught.value.code == 400


def test_parts_that_a_patch_does_not_name_are_shared():
    document = {"spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Pending"}}
    patched = strategic_merge_patch(document, {"status": {"phase": "Running"}}, ANY_PART_OF_A_POD)
    assert patched["spec"] is document["spec"]


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below),
    max_leaves=8,
)
json_objects = st.dictionaries(st.sampled_from("abc"), values)


def _rfc_7386(target: Any, patch: Any) -> Any:
    """The pseudo-code of the RFC."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _rfc_7386(result.get(name), value)
    return result


@given(json_objects, json_objects)
def test_merge_patch_is_that_of_the_rfc(document: Any, patch: Any):
    assert merge_patch(document, patch) == _rfc_7386(document, patch)


@given(json_objects, json_objects)
def test_without_keyed_lists_and_directives_both_patches_agree(document: Any, patch: Any):
    strategic = strategic_merge_patch(document, patch, ANY_PART_OF_A_POD)
    assert strategic == merge_patch(document, patch)
