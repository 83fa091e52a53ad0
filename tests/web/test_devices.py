"""The devices that a node reaches, and who has them."""

from kubestow.api.decode import convert
from kubestow.api.device import ResourceClaim, ResourceSlice
from kubestow.cache.objects import ClusterObjects
from kubestow.testing import make_node
from kubestow.web.devices import devices_of

POOL = {"name": "n", "generation": 1, "resourceSliceCount": 1}


def published(name: str, devices: list[dict[str, object]], **where: object) -> ResourceSlice:
    spec = {"driver": "gpu.example.com", "pool": POOL, "devices": devices, **where}
    return convert(ResourceSlice, {"metadata": {"name": name}, "spec": spec})


def test_devices_are_found_with_their_claims_and_pods() -> None:
    objects = ClusterObjects()
    taint = [{"key": "broken", "effect": "NoSchedule"}]
    selector = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
        ]
    }
    own = published("own", [{"name": "b", "taints": taint}, {"name": "a"}], nodeName="n")
    rack = published("rack", [{"name": "c"}], nodeSelector=selector)
    other = published("other", [{"name": "x"}], nodeName="m")
    each = published(
        "each",
        [{"name": "d", "nodeName": "m"}, {"name": "e", "allNodes": True}],
        perDeviceNodeSelection=True,
    )
    for slice_ in (own, rack, other, each):
        objects.resource_slices.put(slice_)
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "a"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}],
    }
    metadata = {"name": "claim", "namespace": "demo"}
    objects.resource_claims.put(convert(ResourceClaim, {"metadata": metadata, "status": status}))
    found = devices_of(objects, make_node("n", labels={"rack": "r1"}))
    assert (found.count, found.used) == (4, 1)
    assert [device.name for device in found.devices] == ["a", "b", "c", "e"]
    assert found.devices[0].claims == ("demo/claim",)
    assert found.devices[0].pods == ("demo/p",)
    assert found.devices[1].tainted
    assert [device.name for device in devices_of(objects, make_node("m")).devices] == [
        "d",
        "e",
        "x",
    ]
