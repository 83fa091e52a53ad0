"""What is kept of documents: all that some rule reads."""

import json
from typing import Any

import pytest

from kubestow.simulator.kept_documents import without_copied_parts, without_unread_parts
from kubestow.simulator.pretended_process import run_of

SECRET = "hunter2"
CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": "i",
    "command": ["server", SECRET],
    "args": [SECRET],
    "env": [{"name": "A", "value": SECRET}],
    "envFrom": [{"prefix": SECRET}],
    "lifecycle": {"postStart": {"exec": {"command": [SECRET]}}},
    "livenessProbe": {"httpGet": {"httpHeaders": [{"value": SECRET}]}},
}
BARE = {"name": "c", "image": "i"}
APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "kept": "y"}


@pytest.mark.parametrize(
    "path",
    [
        ("spec",),
        ("spec", "template", "spec"),
        ("spec", "jobTemplate", "spec", "template", "spec"),
        ("template", "spec"),
    ],
)
def test_containers_at_any_place(path: tuple[str, ...]) -> None:
    document: Any = {"containers": [CONTAINER], "initContainers": [CONTAINER]}
    expected: Any = {"containers": [BARE], "initContainers": [BARE]}
    for step in reversed(path):
        document, expected = {step: document}, {step: expected}
    assert without_unread_parts(document) == expected


def test_metadata_of_objects_and_templates() -> None:
    metadata = {"name": "a", "annotations": APPLIED, "managedFields": [{"fieldsV1": {SECRET: 1}}]}
    document = {"metadata": metadata, "spec": {"template": {"metadata": metadata}}}
    kept = {"name": "a", "annotations": {"kept": "y"}}
    for strip in (without_unread_parts, without_copied_parts):
        assert strip(document) == {"metadata": kept, "spec": {"template": {"metadata": kept}}}


def test_what_drivers_read() -> None:
    document = {
        "spec": {
            "devices": {"config": [{"opaque": {"driver": "d", "parameters": {"a": SECRET}}}]},
            "volumes": [
                {"name": "a", "csi": {"driver": "d", "volumeAttributes": {"a": SECRET}}},
                {"name": "b", "flexVolume": {"driver": "d", "options": {"a": SECRET}}},
            ],
            "dnsConfig": {"options": [{"name": "ndots"}]},
        },
        "status": {"devices": [{"driver": "d", "data": SECRET, "networkData": {"a": SECRET}}]},
    }
    found = without_unread_parts(document)
    assert SECRET not in json.dumps(found)
    assert found["spec"]["devices"] == {"config": [{"opaque": {"driver": "d", "parameters": {}}}]}
    assert found["spec"]["dnsConfig"] == document["spec"]["dnsConfig"]
    assert found["status"]["devices"] == [{"driver": "d"}]


def test_parameters_of_storage() -> None:
    storage = {"kind": "StorageClass", "provisioner": "p", "parameters": {"a": SECRET}}
    assert without_unread_parts(storage) == {"kind": "StorageClass", "provisioner": "p"}


def test_labels_may_have_any_name() -> None:
    names = ("env", "options", "managedFields", "volumeAttributes", "containers", "annotations")
    document = {"metadata": {"labels": dict.fromkeys(names, "x")}}
    assert without_unread_parts(document) is document
    assert without_copied_parts(document) is document


@pytest.mark.parametrize(
    "command",
    [
        ["sleep", "20"],
        ["sh", "-c", f"export A={SECRET}; sleep 5; exit 3"],
        ["sh", "-c", f"{SECRET}; exit 2"],
        ["true"],
        ["false"],
        [SECRET],
        [],
    ],
)
def test_a_process_still_takes_as_long(command: list[str]) -> None:
    pod = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "command": command}]},
    }
    kept = without_unread_parts(pod)
    assert SECRET not in json.dumps(kept)
    assert run_of(kept) == run_of(pod)
