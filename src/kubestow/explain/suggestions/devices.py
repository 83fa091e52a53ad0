"""Changes of the device claims of a pod: fewer devices, or one selector less."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np

from kubestow.api.device import EXACT_COUNT, DeviceRequest, ExactDeviceRequest, ResourceClaim
from kubestow.api.pod import Pod
from kubestow.explain.suggestions.remedy import (
    DROP_DEVICE_SELECTOR,
    LOWER_DEVICE_COUNT,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.stuck_pod import StuckPod

PLUGIN: Final = "DynamicResources"
# Nodes on which a number of devices is looked for first.
NODES_FIRST: Final = 256


def change_devices(stuck: StuckPod) -> Iterator[Remedy]:
    """Changes of each request of the pod's claims that has no devices yet."""
    if stuck.rejected_early != PLUGIN and not stuck.is_blocked_by(PLUGIN):
        return
    for claim in claims_of(stuck):
        if claim.status.allocation is not None:
            continue
        for index, request in enumerate(claim.spec.devices.requests):
            if request.exactly is not None:
                yield from _lower_count(stuck, claim, index, request.exactly)
                yield from _drop_selector(stuck, claim, index, request.exactly)


def claims_of(stuck: StuckPod) -> Iterator[ResourceClaim]:
    """The claims of the pod that exist, those made from templates included."""
    pod, claims = stuck.pod, stuck.cluster.objects.resource_claims
    names = claim_names(pod)
    for name in dict.fromkeys(names.values()):
        claim = claims.get(pod.metadata.namespace, name)
        if claim is not None:
            yield claim


def claim_names(pod: Pod) -> dict[str, str]:
    """The names of the pod's claims, by the name of their entry in the pod."""
    names = {
        entry.name: entry.resource_claim_name
        for entry in pod.spec.resource_claims
        if entry.resource_claim_name is not None
    }
    made = {
        status.name: status.resource_claim_name
        for status in pod.status.resource_claim_statuses
        if status.resource_claim_name is not None
    }
    return {**made, **names}


def template_of(pod: Pod, claim: ResourceClaim) -> str:
    """The template from which the claim was made for the pod; "" if it was not."""
    names = claim_names(pod)
    for entry in pod.spec.resource_claims:
        if names.get(entry.name) == claim.metadata.name:
            return entry.resource_claim_template_name or ""
    return ""


def _lower_count(
    stuck: StuckPod, claim: ResourceClaim, index: int, exactly: ExactDeviceRequest
) -> Iterator[Remedy]:
    # A request without a mode is for an exact number, and without a number for one.
    if exactly.allocation_mode not in ("", EXACT_COUNT) or exactly.count < 2:
        return

    def lowered(count: int) -> ResourceClaim:
        return _with_request(claim, index, msgspec.structs.replace(exactly, count=count))

    count = _largest_count(stuck, lowered, exactly.count)
    if count > 0:
        name = f"request {claim.spec.devices.requests[index].name} in {_name(stuck, claim)}"
        yield make_remedy(
            LOWER_DEVICE_COUNT,
            f"lower the number of devices of {name} from {exactly.count} to {count}",
            stuck.pod,
            objects=(lowered(count),),
            amount=-(-100 * (exactly.count - count) // exactly.count),
        )


def _largest_count(stuck: StuckPod, lowered: Callable[[int], ResourceClaim], count: int) -> int:
    """The largest smaller number with which the pod fits; 0 if none does.

    Devices are searched node by node, so the number is first found on a part of the nodes.
    """
    step = -(-len(stuck.snapshot) // NODES_FIRST)
    part = StuckPod(stuck.cluster, stuck.pod, np.arange(0, len(stuck.snapshot), max(step, 1)))
    found = _bisect(lambda each: part.fits_with(lowered(each)), 0, count)
    if found + 1 < count and stuck.fits_with(lowered(found + 1)):
        found = _bisect(lambda each: stuck.fits_with(lowered(each)), found + 1, count)
    return found


def _bisect(fits: Callable[[int], bool], fitting: int, failing: int) -> int:
    """The largest number that fits, which is at least `fitting` and below `failing`."""
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting


def _drop_selector(
    stuck: StuckPod, claim: ResourceClaim, index: int, exactly: ExactDeviceRequest
) -> Iterator[Remedy]:
    for number, selector in enumerate(exactly.selectors):
        kept = (*exactly.selectors[:number], *exactly.selectors[number + 1 :])
        new = _with_request(claim, index, msgspec.structs.replace(exactly, selectors=kept))
        if stuck.fits_with(new):
            name = f"request {claim.spec.devices.requests[index].name} in {_name(stuck, claim)}"
            expression = "" if selector.cel is None else f" {selector.cel.expression}"
            text = f"drop the selector{expression} of {name}"
            yield make_remedy(DROP_DEVICE_SELECTOR, text, stuck.pod, objects=(new,))


def _with_request(claim: ResourceClaim, index: int, exactly: ExactDeviceRequest) -> ResourceClaim:
    devices = claim.spec.devices
    changed: DeviceRequest = msgspec.structs.replace(devices.requests[index], exactly=exactly)
    requests = (*devices.requests[:index], changed, *devices.requests[index + 1 :])
    spec = msgspec.structs.replace(
        claim.spec, devices=msgspec.structs.replace(devices, requests=requests)
    )
    return msgspec.structs.replace(claim, spec=spec)


def _name(stuck: StuckPod, claim: ResourceClaim) -> str:
    template = template_of(stuck.pod, claim)
    return f"the claim template {template}" if template else f"the claim {claim.metadata.name}"
