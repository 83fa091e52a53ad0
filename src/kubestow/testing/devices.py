"""Devices, classes and claims for tests: give what matters, get a whole object."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count as counted

from kubestow.api.deep_json import OpaqueJson
from kubestow.api.device import (
    EXACT_COUNT,
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequirements,
    CelDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassConfiguration,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.pod import NodeSelector, Pod
from kubestow.api.quantity import parse_quantity

DRIVER = "d.com"

# Attribute values as people write them; a version is a text that starts with "v".
AttributeValue = int | bool | str
_API_VERSION = "resource.k8s.io/v1"
_uids = counted(1)


def make_device_class(
    name: str = "any",
    *selectors: str,
    extended_resource: str | None = None,
    config: Mapping[str, object] | None = None,
    created: datetime | None = None,
) -> DeviceClass:
    """A class that selects by CEL expressions; `config` are parameters for the driver."""
    opaque = None
    if config is not None:
        opaque = OpaqueDeviceConfiguration(driver=DRIVER, parameters=OpaqueJson.of(config))
    return DeviceClass(
        api_version=_API_VERSION,
        kind="DeviceClass",
        metadata=ObjectMeta(name=name, uid=f"class-{next(_uids)}", creation_timestamp=created),
        spec=DeviceClassSpec(
            selectors=make_selectors(*selectors),
            config=() if opaque is None else (DeviceClassConfiguration(opaque=opaque),),
            extended_resource_name=extended_resource,
        ),
    )


def make_selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(
        DeviceSelector(cel=CelDeviceSelector(expression=expression)) for expression in expressions
    )


def make_device(
    name: str,
    *,
    attributes: Mapping[str, AttributeValue] | None = None,
    capacity: Mapping[str, str] | None = None,
    policies: Mapping[str, CapacityRequestPolicy] | None = None,
    consumes: Mapping[str, Mapping[str, str]] | None = None,
    taints: Iterable[str] = (),
    node: str | None = None,
    node_selector: NodeSelector | None = None,
    all_nodes: bool | None = None,
    binds_to_node: bool | None = None,
    binding_conditions: Sequence[str] = (),
    binding_failure_conditions: Sequence[str] = (),
    shareable: bool | None = None,
) -> Device:
    """A device. `consumes` maps counter sets to counters; taints are `key=value:Effect`."""
    policies = policies or {}
    return Device(
        name=name,
        attributes={key: make_attribute(value) for key, value in (attributes or {}).items()},
        capacity={
            key: DeviceCapacity(value=parse_quantity(value), request_policy=policies.get(key))
            for key, value in (capacity or {}).items()
        },
        consumes_counters=tuple(
            DeviceCounterConsumption(counter_set=name, counters=_counters(counters))
            for name, counters in (consumes or {}).items()
        ),
        taints=tuple(map(make_device_taint, taints)),
        node_name=node,
        node_selector=node_selector,
        all_nodes=all_nodes,
        binds_to_node=binds_to_node,
        binding_conditions=tuple(binding_conditions),
        binding_failure_conditions=tuple(binding_failure_conditions),
        allow_multiple_allocations=shareable,
    )


def make_attribute(value: AttributeValue) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return DeviceAttribute(int_value=value)
    if value.startswith("v"):
        return DeviceAttribute(version_value=value[1:])
    return DeviceAttribute(string_value=value)


def make_device_taint(text: str) -> DeviceTaint:
    marker, _, effect = text.rpartition(":")
    key, _, value = marker.partition("=")
    return DeviceTaint(key=key, value=value, effect=effect)


def make_slice(
    *devices: Device | str,
    name: str | None = None,
    driver: str = DRIVER,
    pool: str = "pool",
    generation: int = 1,
    slice_count: int = 1,
    node: str | None = None,
    node_selector: NodeSelector | None = None,
    all_nodes: bool | None = None,
    per_device: bool | None = None,
    counters: Mapping[str, Mapping[str, str]] | None = None,
) -> ResourceSlice:
    """A slice; a device may be given by its name alone. Without a place it is for all nodes."""
    if node is None and node_selector is None and all_nodes is None and per_device is None:
        all_nodes = True
    return ResourceSlice(
        api_version=_API_VERSION,
        kind="ResourceSlice",
        metadata=ObjectMeta(name=f"slice-{next(_uids):04}" if name is None else name),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=slice_count),
            node_name=node,
            node_selector=node_selector,
            all_nodes=all_nodes,
            per_device_node_selection=per_device,
            devices=tuple(
                make_device(device) if isinstance(device, str) else device for device in devices
            ),
            shared_counters=tuple(
                CounterSet(name=name, counters=_counters(values))
                for name, values in (counters or {}).items()
            ),
        ),
    )


def make_request(
    name: str = "r",
    *selectors: str,
    device_class: str = "any",
    count: int = 1,
    mode: str = EXACT_COUNT,
    admin: bool | None = None,
    tolerations: Sequence[DeviceToleration] = (),
    capacity: Mapping[str, str] | None = None,
) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name=device_class,
            selectors=make_selectors(*selectors),
            allocation_mode=mode,
            count=count,
            admin_access=admin,
            tolerations=tuple(tolerations),
            capacity=_capacity(capacity),
        ),
    )


def make_alternatives(name: str, *alternatives: DeviceSubRequest) -> DeviceRequest:
    return DeviceRequest(name=name, first_available=alternatives)


def make_alternative(
    name: str,
    *selectors: str,
    device_class: str = "any",
    count: int = 1,
    mode: str = EXACT_COUNT,
    tolerations: Sequence[DeviceToleration] = (),
    capacity: Mapping[str, str] | None = None,
) -> DeviceSubRequest:
    return DeviceSubRequest(
        name=name,
        device_class_name=device_class,
        selectors=make_selectors(*selectors),
        allocation_mode=mode,
        count=count,
        tolerations=tuple(tolerations),
        capacity=_capacity(capacity),
    )


def make_claim(
    name: str = "claim",
    *requests: DeviceRequest,
    namespace: str = "default",
    constraints: Sequence[DeviceConstraint] = (),
    spec: DeviceClaim | None = None,
    owner: Pod | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    deleted: datetime | None = None,
    version: str = "",
    allocation: AllocationResult | None = None,
    reserved_for: Iterable[Pod] = (),
) -> ResourceClaim:
    """A claim; without a spec of its own it has these requests and constraints."""
    owners = () if owner is None else (_controller(owner),)
    return ResourceClaim(
        api_version=_API_VERSION,
        kind="ResourceClaim",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"claim-{next(_uids)}",
            resource_version=version,
            annotations=dict(annotations or {}),
            owner_references=owners,
            finalizers=tuple(finalizers),
            deletion_timestamp=deleted,
        ),
        spec=ResourceClaimSpec(
            devices=spec or DeviceClaim(requests=requests, constraints=tuple(constraints))
        ),
        status=ResourceClaimStatus(
            allocation=allocation,
            reserved_for=tuple(
                ResourceClaimConsumerReference(
                    resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
                )
                for pod in reserved_for
            ),
        ),
    )


def make_allocation(
    *devices: str, request: str = "r", node_selector: NodeSelector | None = None
) -> AllocationResult:
    """An allocation of devices given as `pool/device`, or `driver/pool/device`."""
    results: list[DeviceRequestAllocationResult] = []
    for device in devices:
        *driver, pool, name = device.split("/")
        results.append(
            DeviceRequestAllocationResult(
                request=request, driver=driver[0] if driver else DRIVER, pool=pool, device=name
            )
        )
    return AllocationResult(
        devices=DeviceAllocationResult(results=tuple(results)), node_selector=node_selector
    )


def _controller(pod: Pod) -> OwnerReference:
    return OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        controller=True,
    )


def _counters(values: Mapping[str, str]) -> dict[str, Counter]:
    return {name: Counter(value=parse_quantity(value)) for name, value in values.items()}


def _capacity(capacity: Mapping[str, str] | None) -> CapacityRequirements | None:
    if capacity is None:
        return None
    requests = {name: parse_quantity(value) for name, value in capacity.items()}
    return CapacityRequirements(requests=requests)
