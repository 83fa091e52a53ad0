"""What the embedded API server of v1.37 does differently with objects a scheduler reads.

Spec 12 §20.2.
"""

from typing import Any

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.errors import InvalidError
from kubestow.testing import ManualClock


def server(version: str) -> MemoryCluster:
    return MemoryCluster(ManualClock(), gates=FeatureGates({}, edition_named(version)))


def container(name: str) -> dict[str, Any]:
    amounts = {"cpu": "400m", "memory": "1Gi"}
    return {"name": name, "image": "i", "resources": {"requests": amounts, "limits": amounts}}


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [container("a"), container("b")], **spec},
    }


@pytest.mark.parametrize(
    ("version", "resources"),
    [
        pytest.param("v1.36", {"requests": {"cpu": "1"}}, id="v1.36"),
        pytest.param(
            "v1.37",
            {
                "requests": {"cpu": "1", "memory": "2Gi"},
                "limits": {"cpu": "1", "memory": "2Gi"},
            },
            id="V16",
        ),
    ],
)
def test_pod_level_resources_are_completed(version: str, resources: dict[str, Any]) -> None:
    stored = server(version).create(PODS, pod(resources={"requests": {"cpu": "1"}}))
    assert stored.document["spec"]["resources"] == resources


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_a_status_without_claim_statuses_keeps_them_since_v1_37(version: str) -> None:
    cluster = server(version)
    cluster.create(PODS, pod())
    claims = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    stored = cluster.patch(
        PODS, "default", "p", {"status": {"resourceClaimStatuses": claims}}, subresource="status"
    )
    document = {**stored.document, "status": {"phase": "Pending"}}
    status = cluster.update(PODS, document, subresource="status").document["status"]
    assert status.get("resourceClaimStatuses") == (claims if version == "v1.37" else None)


def test_the_target_of_a_binding_is_a_name() -> None:
    for version in ("v1.36", "v1.37"):
        cluster = server(version)
        cluster.create(PODS, pod())
        if version == "v1.36":
            cluster.bind("default", "p", "No_Name")
            continue
        with pytest.raises(InvalidError, match=r"target\.name: Invalid value: \"No_Name\""):
            cluster.bind("default", "p", "No_Name")


@pytest.mark.parametrize("is_on", [False, True])
def test_mount_options_are_dropped_without_their_gate(is_on: bool) -> None:
    gates = FeatureGates({"VolumeBindMountOptions": is_on}, edition_named("v1.37"))
    cluster = MemoryCluster(ManualClock(), gates=gates)
    mount = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
    stored = cluster.create(
        PODS,
        pod(
            containers=[{**container("a"), "volumeMounts": [mount]}],
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
    )
    (kept,) = stored.document["spec"]["containers"][0]["volumeMounts"]
    assert ("bindMountOptions" in kept) is is_on
    assert kept["mountPath"] == "/v"
