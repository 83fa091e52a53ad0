"""Objects as deeply nested as a real API server stores them."""

from typing import Any

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.informer import POD_FIELD_SELECTOR

NO_ELECTION = "--leader-elect=false"
MANAGED_LEVELS = 9_990  # with those around it, the 10,000 that the server reads
PARAMETER_LEVELS = 1_100


def nested(levels: int, key: str) -> msgspec.Raw:
    return msgspec.Raw(b'{"%s":' % key.encode() * levels + b"{}" + b"}" * levels)


def node(name: str) -> JsonObject:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, *, is_deep: bool = False, claim: str = "") -> JsonObject:
    container: JsonObject = {"name": "main", "image": "pause"}
    spec: JsonObject = {"containers": [container], "terminationGracePeriodSeconds": 0}
    metadata: JsonObject = {"name": name, "namespace": "default"}
    if claim:
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": claim}]
        container["resources"] = {"claims": [{"name": "c"}]}
    if is_deep:
        metadata["managedFields"] = [
            {
                "manager": "m",
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": nested(MANAGED_LEVELS, "f:a"),
            }
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def device_documents() -> list[JsonObject]:
    """A device on n1, its class, and a claim with deep parameters."""
    api = {"apiVersion": "resource.k8s.io/v1"}
    request = {"name": "r", "exactly": {"deviceClassName": "any"}}
    opaque = {"driver": "d.example.com", "parameters": nested(PARAMETER_LEVELS, "a")}
    return [
        {**api, "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
        {
            **api,
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": "n1",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d1"}],
            },
        },
        {
            **api,
            "kind": "ResourceClaim",
            "metadata": {"name": "deep", "namespace": "default"},
            "spec": {"devices": {"requests": [request], "config": [{"opaque": opaque}]}},
        },
    ]


def test_deep_pods_are_scheduled_beside_others(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1"), pod("listed", is_deep=True), pod("canary-1"))
        async with bench.scheduler(NO_ELECTION) as scheduler:
            for name in ("listed", "canary-1"):
                assert await bench.bound(name) == "n1"
            await bench.create(pod("watched", is_deep=True), pod("canary-2"))
            for name in ("watched", "canary-2"):
                assert await bench.bound(name) == "n1"
            path = "/api/v1/namespaces/default/pods/listed"
            stored = await bench.send("GET", path)
            assert '"managedFields"' in str(msgspec.json.encode(stored))
            await bench.send("DELETE", path, {"gracePeriodSeconds": 0})
            assert "cannot decode" not in scheduler.log
        listed = await bench.client.list(Pod, field_selector=POD_FIELD_SELECTOR)
        assert {pod.metadata.name for pod in listed} == {"watched", "canary-1", "canary-2"}

    run(main)


@pytest.mark.usefixtures("with_devices")
def test_a_claim_with_deep_parameters_is_allocated(run: Any) -> None:
    async def main(bench: Any) -> None:
        await bench.create(node("n1"), *device_documents(), pod("a", claim="deep"), pod("canary"))
        async with bench.scheduler(NO_ELECTION):
            assert await bench.bound("canary") == "n1"
            assert await bench.bound("a") == "n1"
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/deep"
        claim = await bench.send("GET", path)
        (config,) = claim["status"]["allocation"]["devices"]["config"]
        text = msgspec.json.encode(config["opaque"]["parameters"])
        assert text.count(b'{"a":') == PARAMETER_LEVELS

    run(main)
