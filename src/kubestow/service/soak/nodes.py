"""Nodes of a soak, with what belongs to each of them: devices and CSI drivers.

Names, labels, topology keys, taints, images, resources, drivers and devices are new with each node.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.service.soak.pod_draft import HOSTNAME, ZONE

ZONES: Final = 4
DEVICES: Final = 8
# The nodes of one zone have one each: fewer than the pods that request one.
SEAT: Final = "example.com/seat"
# A resource that one node has alone, by the name of the node.
CHIP: Final = "{}.example.com/chip"
DEVICE_CLASS: Final = "any-device"
LATE_CLASS: Final = "late"
_IMAGE_BYTES: Final = 200 << 20

# What is there from the start and stays.
COMMON: Final[tuple[JsonObject, ...]] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": LATE_CLASS},
        "provisioner": "late.csi.example",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DEVICE_CLASS},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver.endsWith(".example")'}}]},
    },
)


def rack_key(node: str) -> str:
    """A topology key that one node has alone."""
    return f"rack-{node}"


def node_documents(number: int) -> list[JsonObject]:
    """A node and what belongs to it; the node comes first."""
    name = f"node-{number}"
    amounts = {
        "cpu": "32",
        "memory": f"{(64 << 30) + number}",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        SEAT: "1" if number % ZONES == 0 else "0",
        CHIP.format(name): "64",
    }
    labels = {
        HOSTNAME: name,
        ZONE: f"zone-{number % ZONES}",
        rack_key(name): "true",
        "pool": f"pool-{number // 100}",
    }
    image = {"names": [f"registry.example/system-{name}"], "sizeBytes": _IMAGE_BYTES}
    node: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": f"soft-{name}", "effect": "PreferNoSchedule"}]},
        "status": {"capacity": amounts, "allocatable": amounts, "images": [image]},
    }
    return [node, _drivers(name), _devices(name)]


def node_change(number: int) -> JsonObject:
    """A patch that gives a node labels, taints and images it never had."""
    word = f"change-{number}"
    return {
        "metadata": {"labels": {"changed": word, f"label-{word}": "true"}},
        "spec": {"taints": [{"key": f"soft-{word}", "effect": "PreferNoSchedule"}]},
    }


def image_change(number: int) -> JsonObject:
    """A patch of the status: what a kubelet reports after it pulled an image."""
    image = {"names": [f"registry.example/pulled-{number}"], "sizeBytes": _IMAGE_BYTES}
    return {"status": {"images": [image]}}


def _drivers(node: str) -> JsonObject:
    drivers: list[JsonObject] = [
        {"name": f"{driver}.csi.example", "nodeID": node, "topologyKeys": [ZONE]}
        for driver in ("late", node)
    ]
    drivers[0]["allocatable"] = {"count": 64}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": drivers},
    }


def _devices(node: str) -> JsonObject:
    devices = [
        {
            "name": f"device-{node}-{index}",
            "attributes": {f"model-{node}": {"string": node}, "index": {"int": index}},
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for index in range(DEVICES)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": f"{node}.example",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }
