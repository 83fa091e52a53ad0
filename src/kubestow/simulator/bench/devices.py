"""Devices of the benchmark suite, and claims to them (spec 10 §2, §3, §4.6).

Building the cluster includes the work of its other parts: a driver publishes one slice per node,
and a controller makes the claims of pods that name a template.
"""

from typing import Final, NamedTuple

import msgspec

from kubestow.api.decode import convert
from kubestow.api.device import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodResourceClaimStatus
from kubestow.simulator.bench import templates as t

DEVICES_PER_NODE: Final = 10
_API_VERSION: Final = "resource.k8s.io/v1"
_DRIVER: Final = "test-driver.cdi.k8s.io"

DEVICE_CLASS: Final = convert(
    DeviceClass,
    {
        "apiVersion": _API_VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": "test-class", "uid": "test-class"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]},
    },
)
# The claim template requests one device of the class.
_CLAIM_SPEC: Final = ResourceClaimSpec(
    devices=DeviceClaim(
        requests=(
            DeviceRequest(
                name="req-0",
                exactly=ExactDeviceRequest(
                    device_class_name=DEVICE_CLASS.metadata.name,
                    allocation_mode=EXACT_COUNT,
                    count=1,
                ),
            ),
        )
    )
)


class Claiming(NamedTuple):
    """A pod and the claim made for it."""

    pod: Pod
    claim: ResourceClaim


def device_node(name: str) -> Node:
    return t.node(name, labels={"node-with-dra": "true"})


def device_slice(node_name: str) -> ResourceSlice:
    """The slice that the driver publishes for a node."""
    return convert(
        ResourceSlice,
        {
            "apiVersion": _API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node_name}-slice", "uid": f"{node_name}-slice"},
            "spec": {
                "driver": _DRIVER,
                "nodeName": node_name,
                "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
                "devices": [_device(index) for index in range(DEVICES_PER_NODE)],
            },
        },
    )


def _device(index: int) -> t.JsonObject:
    return {
        "name": f"instance-{index}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": index},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


def claiming(pod: Pod) -> Claiming:
    """The claim that the controller makes for a pod, and the pod with the claim in its status."""
    entry = pod.spec.resource_claims[0]
    meta = pod.metadata
    claim_name = f"{meta.name}-{entry.name}"
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True
    )
    claim = ResourceClaim(
        api_version=_API_VERSION,
        kind="ResourceClaim",
        metadata=ObjectMeta(
            name=claim_name,
            namespace=meta.namespace,
            uid=f"{meta.namespace}/{claim_name}",
            resource_version="1",
            annotations={"resource.kubernetes.io/pod-claim-name": entry.name},
            owner_references=(owner,),
        ),
        spec=_CLAIM_SPEC,
    )
    made = PodResourceClaimStatus(name=entry.name, resource_claim_name=claim_name)
    status = msgspec.structs.replace(pod.status, resource_claim_statuses=(made,))
    return Claiming(msgspec.structs.replace(pod, status=status), claim)
