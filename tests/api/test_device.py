"""Devices and claims decode, and nothing of them is lost when they are written back."""

import pytest

from kubestow.api.decode import KINDS, convert, to_document
from kubestow.api.device import ResourceClaim, ResourceSlice
from kubestow.api.meta import JsonObject

CLAIM: JsonObject = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "name": "c",
        "namespace": "default",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True,
             "blockOwnerDeletion": True}
        ],
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    },
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "a",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "allocationMode": "ExactCount",
                        "count": 2,
                        "adminAccess": True,
                        "tolerations": [
                            {"key": "k", "operator": "Exists", "effect": "NoExecute",
                             "tolerationSeconds": 5}
                        ],
                        "capacity": {"requests": {"memory": "1Gi"}},
                    },
                },
                {"name": "b", "firstAvailable": [
                    {"name": "x", "deviceClassName": "gpu", "allocationMode": "All"}
                ]},
            ],
            "constraints": [
                {"requests": ["a"], "matchAttribute": "d.com/numa"},
                {"distinctAttribute": "d.com/numa"},
            ],
            "config": [
                {"requests": ["a"], "opaque": {"driver": "d.com", "parameters": {"x": [1, None]}}}
            ],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "a", "driver": "d.com", "pool": "p", "device": "d", "shareID": "s",
                     "consumedCapacity": {"memory": "1Gi"}, "bindingConditions": ["Ready"]}
                ],
                "config": [{"source": "FromClass", "requests": ["a"],
                            "opaque": {"driver": "d.com", "parameters": {"y": 1}}}],
            },
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {"driver": "d.com", "pool": "p", "device": "d", "shareID": "s",
             "conditions": [{"type": "Ready", "status": "True"}], "data": {"z": "any"},
             "networkData": {"interfaceName": "eth0"}}
        ],
    },
}  # fmt: skip
SLICE: JsonObject = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d.com",
        "pool": {"name": "p", "generation": 3, "resourceSliceCount": 2},
        "perDeviceNodeSelection": True,
        "devices": [
            {
                "name": "d",
                "attributes": {
                    "i": {"int": 0},
                    "b": {"bool": False},
                    "s": {"string": ""},
                    "v": {"version": "1.2.3"},
                    "l": {"strings": ["a"]},
                },
                "capacity": {
                    "memory": {
                        "value": "4Gi",
                        "requestPolicy": {
                            "default": "1Gi",
                            "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"},
                        },
                    },
                    "cores": {"value": "8", "requestPolicy": {"validValues": ["1", "2"]}},
                },
                "consumesCounters": [{"counterSet": "set", "counters": {"m": {"value": "1"}}}],
                "nodeName": "n1",
                "taints": [{"key": "k", "effect": "NoSchedule"}],
                "bindsToNode": True,
                "bindingConditions": ["Ready"],
                "bindingFailureConditions": ["Broken"],
                "allowMultipleAllocations": True,
            }
        ],
        "sharedCounters": [{"name": "set", "counters": {"m": {"value": "2"}}}],
    },
}


@pytest.mark.parametrize(("cls", "document"), [(ResourceClaim, CLAIM), (ResourceSlice, SLICE)])
def test_documents_come_back_as_they_were(
    cls: type[ResourceClaim] | type[ResourceSlice], document: JsonObject
) -> None:
    assert to_document(convert(cls, document)) == document


def test_a_zero_is_not_a_missing_attribute() -> None:
    device = convert(ResourceSlice, SLICE).spec.devices[0]
    assert device.attributes["i"].int_value == 0
    assert device.attributes["b"].bool_value is False
    assert device.attributes["s"].string_value == ""
    assert device.attributes["i"].string_value is None


def test_an_empty_allocation_is_an_allocation() -> None:
    claim = convert(ResourceClaim, {"status": {"allocation": {"devices": {}}}})
    assert claim.status.allocation is not None
    assert convert(ResourceClaim, to_document(claim)) == claim


def test_the_kinds_are_known() -> None:
    assert {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"} <= set(KINDS)
