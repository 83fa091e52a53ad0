"""What no rule reads and may be secret is not recorded."""

import json
from typing import Any

import pytest

from kubestow.api.decode import KINDS, decode_json
from kubestow.api.object_copies import LAST_APPLIED
from kubestow.recording.kept import recorded_answer, recorded_json

SECRET = "hunter2"
OPAQUE = {"driver": "d", "parameters": {"password": SECRET}}
APPLIED = {LAST_APPLIED: json.dumps({"env": SECRET}), "other": "kept"}


def recorded(kind: str, **fields: Any) -> dict[str, Any]:
    fields.setdefault("metadata", {})["name"] = "a"
    api_object = decode_json(KINDS[kind], json.dumps(fields).encode())
    text = recorded_json(api_object)
    assert SECRET not in text.decode()
    # A recording is read again.
    decode_json(KINDS[kind], text)
    return json.loads(text)


@pytest.mark.parametrize("kind", ["Pod", "Node", "StatefulSet", "ReplicaSet", "Service"])
def test_copies_of_manifests(kind: str) -> None:
    found = recorded(kind, metadata={"annotations": APPLIED})
    assert found["metadata"]["annotations"] == {"other": "kept"}


def test_environment_commands_and_templates() -> None:
    container = {
        "name": "c",
        "image": "i",
        "command": [SECRET],
        "args": [SECRET],
        "env": [{"name": "A", "value": SECRET}],
        "livenessProbe": {"exec": {"command": [SECRET]}},
    }
    volume = {"name": "v", "csi": {"driver": "d", "volumeAttributes": {"a": SECRET}}}
    found = recorded("Pod", spec={"containers": [container], "volumes": [volume]})
    assert found["spec"]["containers"] == [{"name": "c", "image": "i"}]
    template = {"metadata": {"annotations": APPLIED}, "spec": {"containers": [container]}}
    managed = [{"manager": "kubectl", "fieldsV1": {"f:x": SECRET}}]
    recorded("ReplicaSet", spec={"template": template}, metadata={"managedFields": managed})


def test_parameters_of_devices() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "g"}}
    found = recorded(
        "ResourceClaim",
        spec={
            "devices": {"requests": [request], "config": [{"requests": ["r"], "opaque": OPAQUE}]}
        },
        status={
            "allocation": {
                "devices": {
                    "results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}],
                    "config": [{"source": "FromClass", "opaque": OPAQUE}],
                }
            },
            "devices": [
                {"driver": "d", "device": "x", "data": OPAQUE, "networkData": {"ips": [SECRET]}}
            ],
        },
    )
    kept = {"driver": "d", "parameters": {}}
    assert found["spec"]["devices"]["config"] == [{"requests": ["r"], "opaque": kept}]
    assert found["status"]["allocation"]["devices"]["config"] == [
        {"source": "FromClass", "opaque": kept}
    ]
    assert found["status"]["devices"] == [{"driver": "d", "device": "x"}]
    assert recorded("DeviceClass", spec={"config": [{"opaque": OPAQUE}]})["spec"]["config"] == [
        {"opaque": kept}
    ]


def test_parameters_of_storage() -> None:
    found = recorded("StorageClass", provisioner="p", parameters={"restuserkey": SECRET})
    assert found == {"metadata": {"name": "a"}, "provisioner": "p"}


def test_answers_of_extenders() -> None:
    node = {"metadata": {"name": "n", "annotations": APPLIED}}
    body = json.dumps({"Nodes": {"items": [node]}, "error": ""}).encode()
    text = recorded_answer(body)
    assert SECRET.encode() not in text
    assert json.loads(text)["Nodes"]["items"][0]["metadata"]["name"] == "n"
    for other in (b"", b"no json, annotations", b'{"nodenames": ["a"]}'):
        assert recorded_answer(other) == other
