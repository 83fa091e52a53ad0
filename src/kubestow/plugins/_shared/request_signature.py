"""What rules on resources depend on, as a part of a pod's signature (spec 05 §14)."""

from typing import Final

from kubestow.api.resources import Resources
from kubestow.framework.plugin import SignFragments
from kubestow.framework.status import Status
from kubestow.index.devices.classes import DeviceClassMap

_DEVICES: Final = Status.unschedulable(
    "signature disabled when dra extended resources are used in the cluster"
)


def sign_request(
    request: Resources, device_classes: DeviceClassMap | None
) -> SignFragments | Status:
    """The request that Filter sees; refused where devices serve a part of it: no two are alike.

    No map of device classes means that devices serve no extended resources.
    """
    if device_classes is not None and any(
        amount and device_classes.class_of(name) is not None
        for name, amount in request.scalar.items()
    ):
        return _DEVICES
    return {
        "v1.Pod.Spec.ContainerRequestsAndOverheads()": (
            request.milli_cpu,
            request.memory,
            request.ephemeral_storage,
            tuple(sorted(request.scalar.items())),
        )
    }
