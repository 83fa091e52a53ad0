"""Extended resources that devices serve: a claim created for the pod (spec 08 B11).

A pod that requests `example.com/gpu: 2` gets a claim for two devices of the class that serves this
name. The claim is last among the pod's claims and exists in memory only until the pod is bound. Its
requests depend on the node: where a device plugin serves the resource, there are none.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from kubestow.api.device import (
    EXACT_COUNT,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.pod import Container, ContainerExtendedResourceRequest, Pod
from kubestow.api.requests import is_sidecar
from kubestow.index.devices.claims import EXTENDED_RESOURCE_ANNOTATION, Claims

SPECIAL_NAME: Final = "<extended-resources>"

Mappings = tuple[ContainerExtendedResourceRequest, ...]
# The name of the class that serves a resource.
ClassOf = Callable[[str], str]


class SpecialRequests(NamedTuple):
    """The requests of the special claim on a node, and which container each is for."""

    requests: tuple[DeviceRequest, ...]
    mappings: Mappings


def special_claim(pod: Pod, claims: Claims) -> ResourceClaim:
    """The claim for the pod's extended resources: one left by an earlier attempt, or a new one."""
    for claim in claims.made_for(pod.metadata.uid):
        owner = next(each for each in claim.metadata.owner_references if each.controller)
        is_here = claim.metadata.namespace == pod.metadata.namespace
        if is_here and owner.name == pod.metadata.name:
            return claim
    return ResourceClaim(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        metadata=ObjectMeta(
            name=SPECIAL_NAME,
            namespace=pod.metadata.namespace,
            # Has to differ from those of other claims only while it is in flight.
            uid=f"{pod.metadata.uid}-extended-resources",
            generate_name=f"{pod.metadata.name}-extended-resources-",
            annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
            owner_references=(
                OwnerReference(
                    api_version="v1",
                    kind="Pod",
                    name=pod.metadata.name,
                    uid=pod.metadata.uid,
                    controller=True,
                ),
            ),
        ),
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Whether the special claim is not in the API yet."""
    return claim.metadata.name == SPECIAL_NAME


def with_requests(claim: ResourceClaim, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=requests))
    return msgspec.structs.replace(claim, spec=spec)


def special_requests(pod: Pod, resources: Sequence[str], class_of: ClassOf) -> SpecialRequests:
    """The requests for these resources, which devices serve on the node."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        shares = _shares(pod, resource)
        kept = [share for share in shares if share.is_long_lived and share.amount]
        for share in kept:
            requests.append(share.request(class_of(resource)))
            mappings.append(share.mapping(share.request_name))
        largest, initial = _initial_shares(shares, kept)
        if largest is not None:
            requests.append(largest.request(class_of(resource)))
        mappings += initial
    requests.sort(key=lambda request: request.name)
    return SpecialRequests(tuple(requests), tuple(mappings))


class _Share(NamedTuple):
    """What one container requests of one resource."""

    container: Container
    container_index: int
    resource: str
    amount: int
    is_long_lived: bool

    @property
    def request_name(self) -> str:
        place = sorted(self.container.resources.requests or ()).index(self.resource)
        return f"container-{self.container_index}-request-{place}"

    def request(self, class_name: str) -> DeviceRequest:
        exactly = ExactDeviceRequest(
            device_class_name=class_name, allocation_mode=EXACT_COUNT, count=self.amount
        )
        return DeviceRequest(name=self.request_name, exactly=exactly)

    def mapping(self, request_name: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(
            container_name=self.container.name,
            resource_name=self.resource,
            request_name=request_name,
        )


def _shares(pod: Pod, resource: str) -> list[_Share]:
    init_count = len(pod.spec.init_containers)
    shares: list[_Share] = []
    for index, container in enumerate((*pod.spec.init_containers, *pod.spec.containers)):
        quantity = (container.resources.requests or {}).get(resource)
        amount = 0 if quantity is None else quantity.value()
        is_long_lived = index >= init_count or is_sidecar(container)
        shares.append(_Share(container, index, resource, amount, is_long_lived))
    return shares


def _initial_shares(
    shares: Sequence[_Share], kept: Sequence[_Share]
) -> tuple[_Share | None, list[ContainerExtendedResourceRequest]]:
    """Devices for plain init containers, which end before others start.

    Each uses devices of containers that start later; they share what is still missing, so only the
    largest remainder is requested.
    """
    mappings: list[tuple[_Share, str | None]] = []
    largest: _Share | None = None
    for share in shares:
        if share.is_long_lived or not share.amount:
            continue
        missing = share.amount
        for later in kept:
            if later.container_index >= share.container_index and missing > 0:
                mappings.append((share, later.request_name))
                missing -= later.amount
        if missing > 0:
            mappings.append((share, None))
            if largest is None or missing > largest.amount:
                largest = share._replace(amount=missing)
    shared_name = "" if largest is None else largest.request_name
    return largest, [share.mapping(name or shared_name) for share, name in mappings]
