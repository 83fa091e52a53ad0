"""Updates as differences: fields that are not declared are never lost."""

from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.cluster.client import update_patch

METADATA = {"name": "c", "namespace": "x", "uid": "u", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param(
            {},
            {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}},
            {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}},
            id="W8-annotation",
        ),
        pytest.param(
            {"metadata": {"annotations": {"a": "1", "b": "2"}}},
            {"metadata": {"annotations": {"b": "3"}}},
            {"metadata": {"annotations": {"a": None, "b": "3"}}},
            id="removed-and-changed",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["a", "b"]}},
            id="lists-as-a-whole",
        ),
        pytest.param(
            {"spec": {"volumeName": "v"}},
            {},
            {"spec": {"volumeName": None}},
            id="back-to-default",
        ),
        pytest.param(
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {}},
            {"spec": {"selector": None}},
            id="removed-as-a-whole",
        ),
    ],
)
def test_the_patch_is_the_difference_for_that_version_only(old: Any, new: Any, expected: Any):
    def claim(parts: Any) -> PersistentVolumeClaim:
        metadata = {**METADATA, **parts.get("metadata", {})}
        return convert(PersistentVolumeClaim, {**parts, "metadata": metadata})

    patch = update_patch(claim(old), claim(new))
    if expected:
        expected = {
            **expected,
            "metadata": {
                **expected.get("metadata", {}),
                "resourceVersion": "7",
                "uid": "u",
            },
        }
    assert patch == expected


def test_lists_that_did_not_change_are_not_sent():
    spec = {"containers": [{"name": "a"}]}
    old = convert(Pod, {"metadata": METADATA, "spec": spec})
    new = convert(Pod, {"metadata": METADATA, "spec": {**spec, "nodeName": "n1"}})
    assert update_patch(old, new)["spec"] == {"nodeName": "n1"}
