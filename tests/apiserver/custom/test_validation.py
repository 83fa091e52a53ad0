"""Values against the schema of a definition."""

from typing import Any

import pytest

from kubestow.apiserver.custom.validation import value_errors

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        pytest.param(TEXT, "x", [], id="text"),
        pytest.param(
            {"type": "integer"},
            "x",
            ['f: Invalid value: "string": f in body must be of type integer: "string"'],
            id="type",
        ),
        pytest.param(
            {"type": "integer"},
            True,
            ['f: Invalid value: "boolean": f in body must be of type integer: "boolean"'],
            id="a-flag-is-no-number",
        ),
        pytest.param({"type": "integer"}, 3.0, [], id="whole-float"),
        pytest.param({"type": "number"}, 3, [], id="whole-number"),
        pytest.param(
            TEXT,
            None,
            ['f: Invalid value: "null": f in body must be of type string: "null"'],
            id="null",
        ),
        pytest.param({**TEXT, "nullable": True}, None, [], id="nullable"),
        pytest.param({"x-kubernetes-int-or-string": True}, "5%", [], id="number-or-text"),
        pytest.param(
            {**TEXT, "enum": ["a", "b"]},
            "c",
            ['f: Unsupported value: "c": supported values: "a", "b"'],
            id="enum",
        ),
        pytest.param(
            {**TEXT, "pattern": "^a+$"},
            "b",
            ["f: Invalid value: \"b\": f in body should match '^a+$'"],
            id="pattern",
        ),
        pytest.param(
            {**TEXT, "minLength": 2},
            "b",
            ['f: Invalid value: "b": f in body should be at least 2 chars long'],
            id="short",
        ),
        pytest.param(
            {**TEXT, "maxLength": 2},
            "bbb",
            ["f: Too long: may not be more than 2 bytes"],
            id="long",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1},
            0,
            ["f: Invalid value: 0: f in body should be greater than or equal to 1"],
            id="minimum",
        ),
        pytest.param(
            {"type": "number", "maximum": 1, "exclusiveMaximum": True},
            1,
            ["f: Invalid value: 1: f in body should be less than 1"],
            id="exclusive-maximum",
        ),
        pytest.param(
            {"type": "integer", "multipleOf": 5},
            7,
            ["f: Invalid value: 7: f in body should be a multiple of 5"],
            id="multiple",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "maxItems": 1},
            ["a", 1],
            [
                "f: Too many: 2: must have at most 1 items",
                'f[1]: Invalid value: "integer": f[1] in body must be of type string: "integer"',
            ],
            id="list",
        ),
        pytest.param(
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            ["a", "a"],
            ['f[1]: Duplicate value: "a"'],
            id="set",
        ),
        pytest.param(
            {"type": "object", "required": ["a"], "properties": {"b": TEXT}},
            {"b": 1},
            [
                "f.a: Required value",
                'f.b: Invalid value: "integer": f.b in body must be of type string: "integer"',
            ],
            id="object",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"x": "y"},
            ['f.x: Invalid value: "string": f.x in body must be of type integer: "string"'],
            id="map",
        ),
        pytest.param(
            {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 2},
            [
                '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf).'
                " Found 2 valid alternatives"
            ],
            id="one-of",
        ),
        pytest.param(
            {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]},
            3,
            ['<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)'],
            id="any-of",
        ),
        pytest.param(
            {"type": "integer", "not": {"minimum": 5}},
            6,
            ['<nil>: Invalid value: "": "f" must not validate the schema (not)'],
            id="not",
        ),
    ],
)
def test_errors_name_the_field_and_the_rule(schema: Any, value: Any, errors: list[str]):
    assert list(value_errors(value, schema, "f")) == errors
