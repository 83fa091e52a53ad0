from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.explain.explanation import ObjectPatch, Suggestion
from kubestow.explain.suggestions.apply import applied

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {"x": 1}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
OTHER = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "other"}}
DOCUMENTS = [Document(each, f"f.yaml, {each['kind']}") for each in (NODE, POD, OTHER)]


def suggestion(
    kind: str, name: str, *operations: dict[str, Any], namespace: str = ""
) -> Suggestion:
    patch = ObjectPatch(
        api_version="v1", kind=kind, name=name, namespace=namespace, patch=operations
    )
    return Suggestion(kind="Uncordon", text="", patches=(patch,))


def test_a_patch_changes_its_object_only() -> None:
    change = suggestion("Node", "a", {"op": "remove", "path": "/spec/x"})
    result = applied(DOCUMENTS, change)
    assert result[0].raw["spec"] == {}
    assert result[1:] == DOCUMENTS[1:]
    assert NODE["spec"] == {"x": 1}


def test_a_pod_is_found_by_its_namespace_which_is_default_if_not_given() -> None:
    gone = suggestion("Pod", "p", {"op": "remove", "path": ""}, namespace="default")
    assert [each.raw for each in applied(DOCUMENTS, gone)] == [NODE, OTHER]


def test_a_new_object_comes_last() -> None:
    new = {**NODE, "metadata": {"name": "b"}}
    result = applied(DOCUMENTS, suggestion("Node", "b", {"op": "add", "path": "", "value": new}))
    assert [each.raw for each in result] == [NODE, POD, OTHER, new]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            suggestion("Node", "z", {"op": "remove", "path": "/spec"}),
            'the Node "z" is not in the documents',
            id="missing",
        ),
        pytest.param(
            suggestion("Pod", "z", {"op": "remove", "path": ""}, namespace="default"),
            'the Pod "default/z" is not in the documents',
            id="missing-to-delete",
        ),
        pytest.param(
            suggestion("Node", "a", {"op": "remove", "path": "/spec/y"}),
            'f.yaml, Node: the patch does not apply: the JSON patch names "/spec/y"',
            id="other-content",
        ),
    ],
)
def test_what_does_not_match_is_an_error(change: Suggestion, text: str) -> None:
    with pytest.raises(InputError, match=text):
        applied(DOCUMENTS, change)
