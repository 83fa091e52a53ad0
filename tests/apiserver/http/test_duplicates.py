"""Fields that a text has twice."""

import json

import pytest

from kubestow.apiserver.http.bodies import json_duplicates


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param('{"a": 1, "b": [{"a": 1}]}', [], id="none"),
        pytest.param('{"a": 1, "a": 2}', ["a"], id="top"),
        pytest.param('{"a": {"b": 1, "b": 2, "b": 3}}', ["a.b"], id="three-times"),
        pytest.param('{"a": [{}, {"b": {"c": 1, "c": 1}}]}', ["a[1].b.c"], id="in-a-list"),
        pytest.param('{"a": 1, "b": {"c": 1, "c": 1}, "a": 2}', ["a", "b.c"], id="two"),
    ],
)
def test_repeated_fields_are_found_with_their_paths(text: str, paths: list[str]):
    json.loads(text)
    assert json_duplicates(text.encode()) == paths
