"""Annotations that hold a whole object are found."""

import json

import pytest

from kubestow.api.object_copies import LAST_APPLIED, without_copies

POD = json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"env": []}]}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (LAST_APPLIED, "{}"),
        (LAST_APPLIED, "no JSON"),
        ("example.com/last-applied-configuration", "x"),
        ("objectset.rio.cattle.io/applied", "H4sIAAAA"),
        ("kapp.k14s.io/original", POD),
        ("example.com/anything", POD),
        ("example.com/indented", "\n " + POD),
    ],
)
def test_copies_are_left_out(key: str, value: str) -> None:
    assert without_copies({"a": "b", key: value}) == {"a": "b"}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "text",
        '"apiVersion"',
        '{"apiVersion": 1}',
        # It refers to an object; an older scheduler reads it.
        '{"preferAvoidPods":[{"podSignature":{"podController":{"apiVersion":"v1","kind":"X"}}}]}',
        '{"apiVersion": ' + "[" * 100_000,
    ],
)
def test_others_stay(value: str) -> None:
    annotations = {"a": value, "b": "c"}
    assert without_copies(annotations) is annotations
