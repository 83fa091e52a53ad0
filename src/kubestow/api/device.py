"""Devices and claims to them: the kinds of resource.k8s.io.

A driver publishes its devices in ResourceSlices, an administrator names kinds of them in
DeviceClasses, and a pod requests some through a ResourceClaim. The scheduler writes claims back, so
unlike other kinds they are declared in full: a field not declared here would be lost in an update.

Not here: which devices a claim gets (`plugins.dynamic_resources`).
"""

from datetime import datetime
from typing import Final

import msgspec

from kubestow.api.deep_json import OpaqueJson
from kubestow.api.meta import ApiObject, Condition, Object, ObjectMeta
from kubestow.api.pod import NodeSelector
from kubestow.api.quantity import ZERO, Quantity

# Values of `allocationMode`.
EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"


# --- Requests ---------------------------------------------------------------------------------


class CelDeviceSelector(Object, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Object, frozen=True, kw_only=True):
    cel: CelDeviceSelector | None = None


class OpaqueDeviceConfiguration(Object, frozen=True, kw_only=True):
    driver: str = ""
    parameters: OpaqueJson | None = None  # only the driver reads them


class DeviceToleration(Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Object, frozen=True, kw_only=True):
    requests: dict[str, Quantity] = {}


class DeviceDerivedAttribute(Object, frozen=True, kw_only=True):
    """An attribute that constraints see and that is computed (DRADerivedAttributes)."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(Object, frozen=True, kw_only=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Object, frozen=True, kw_only=True):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Object, frozen=True, kw_only=True):
    """A request: `exactly` this, or the first of some alternatives that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Object, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()  # empty means all
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Object, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Object, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Object, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


# --- Allocations ------------------------------------------------------------------------------


class DeviceRequestAllocationResult(Object, frozen=True, kw_only=True):
    """One device allocated to one request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Object, frozen=True, kw_only=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Object, frozen=True, kw_only=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Object, frozen=True, kw_only=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ResourceClaimConsumerReference(Object, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Object, frozen=True, kw_only=True):
    """What the driver reports on one allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: tuple[Condition, ...] = ()
    # Drivers write them, the scheduler does not read them.
    data: OpaqueJson | None = None
    network_data: OpaqueJson | None = None


class ResourceClaimStatus(Object, frozen=True, kw_only=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiObject, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Object, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject, frozen=True, kw_only=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


# --- Classes and published devices ------------------------------------------------------------


class DeviceClassConfiguration(Object, frozen=True, kw_only=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Object, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Object, frozen=True, kw_only=True):
    """One value of one type; the lists belong to the gate DRAListTypeAttributes."""

    int_value: int | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)
    int_values: tuple[int, ...] | None = msgspec.field(name="ints", default=None)
    bool_values: tuple[bool, ...] | None = msgspec.field(name="bools", default=None)
    string_values: tuple[str, ...] | None = msgspec.field(name="strings", default=None)
    version_values: tuple[str, ...] | None = msgspec.field(name="versions", default=None)


class CapacityRequestPolicyRange(Object, frozen=True, kw_only=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Object, frozen=True, kw_only=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Object, frozen=True, kw_only=True):
    value: Quantity = ZERO
    request_policy: CapacityRequestPolicy | None = None


class Counter(Object, frozen=True, kw_only=True):
    value: Quantity = ZERO


class CounterSet(Object, frozen=True, kw_only=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Object, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()  # DRADeviceCompatibilityGroups


class DeviceTaint(Object, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Device(Object, frozen=True, kw_only=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourcePool(Object, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Object, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()  # DRAOptionalNodeOperations


class ResourceSlice(ApiObject, frozen=True, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Object, frozen=True, kw_only=True):
    """The devices that a rule is for: all that is given has to be equal."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Object, frozen=True, kw_only=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiObject, frozen=True, kw_only=True):
    """A taint that an administrator adds to devices, beside those that their driver publishes."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
