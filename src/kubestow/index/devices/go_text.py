"""Node selectors and devices the way Go prints them: error texts quote them (spec 08 B7.1).

Upstream prints the values of attributes as addresses in memory, and those of capacities in a form
of their own; here both are printed as values.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kubestow.api.device import Device, DeviceAttribute, DeviceCounterConsumption, DeviceTaint
from kubestow.api.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


class DeviceFields(NamedTuple):
    """What devices have in one edition and not in another.

    has_groups     counters that a device draws from name groups
    allocatable    the field for the resources of the node that it stands for, and its type
    """

    has_groups: bool = False
    allocatable: tuple[str, str] = (
        "NodeAllocatableResourceMappings",
        "NodeAllocatableResourceMapping",
    )


_CORE_FIELDS: Final = DeviceFields()


def selector_text(selector: NodeSelector) -> str:
    terms = "".join(f"{_term(term)}," for term in selector.node_selector_terms)
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _term(term: NodeSelectorTerm) -> str:
    return (
        f"NodeSelectorTerm{{MatchExpressions:{_requirements(term.match_expressions)},"
        f"MatchFields:{_requirements(term.match_fields)},}}"
    )


def _requirements(requirements: tuple[NodeSelectorRequirement, ...]) -> str:
    listed = "".join(
        f"NodeSelectorRequirement{{Key:{each.key},Operator:{each.operator},"
        f"Values:{_list(each.values or ())},}},"
        for each in requirements
    )
    return f"[]NodeSelectorRequirement{{{listed}}}"


def device_text(device: Device, fields: DeviceFields = _CORE_FIELDS) -> str:
    attributes = {name: _attribute(value) for name, value in device.attributes.items()}
    capacity = {name: str(entry.value) for name, entry in device.capacity.items()}
    consumes = "".join(f"{_consumption(each, fields)}," for each in device.consumes_counters)
    allocatable, allocatable_type = fields.allocatable
    taints = "".join(f"{_taint(each)}," for each in device.taints)
    selector = "nil"
    if device.node_selector is not None:
        selector = selector_text(device.node_selector).replace(
            "NodeSelector", "v11.NodeSelector", 1
        )
    return (
        f"&Device{{Name:{device.name},"
        f"Attributes:{_map('QualifiedName', 'DeviceAttribute', attributes)},"
        f"Capacity:{_map('QualifiedName', 'DeviceCapacity', capacity)},"
        f"ConsumesCounters:[]DeviceCounterConsumption{{{consumes}}},"
        f"NodeName:{_pointer(device.node_name)},NodeSelector:{selector},"
        f"AllNodes:{_pointer(device.all_nodes)},Taints:[]DeviceTaint{{{taints}}},"
        f"BindsToNode:{_pointer(device.binds_to_node)},"
        f"BindingConditions:{_list(device.binding_conditions)},"
        f"BindingFailureConditions:{_list(device.binding_failure_conditions)},"
        f"AllowMultipleAllocations:{_pointer(device.allow_multiple_allocations)},"
        f"{allocatable}:{_map('k8s_io_api_core_v1.ResourceName', allocatable_type, {})},}}"
    )


def _attribute(attribute: DeviceAttribute) -> str:
    values = (
        attribute.int_value,
        attribute.bool_value,
        attribute.string_value,
        attribute.version_value,
    )
    lists = (
        attribute.int_values,
        attribute.bool_values,
        attribute.string_values,
        attribute.version_values,
    )
    printed = ["<nil>" if value is None else _value(value) for value in values]
    return f"{{{' '.join((*printed, *(_list(each or ()) for each in lists)))}}}"


def _consumption(consumption: DeviceCounterConsumption, fields: DeviceFields) -> str:
    counters = {name: str(counter.value) for name, counter in consumption.counters.items()}
    groups = ""
    if fields.has_groups:
        groups = f"CompatibilityGroups:{_list(consumption.compatibility_groups)},"
    return (
        f"DeviceCounterConsumption{{CounterSet:{consumption.counter_set},"
        f"Counters:{_map('string', 'Counter', counters)},{groups}}}"
    )


def _taint(taint: DeviceTaint) -> str:
    if taint.value:
        return f"{taint.key}={taint.value}:{taint.effect}"
    return f"{taint.key}:{taint.effect}" if taint.effect else taint.key


def _map(key_type: str, value_type: str, entries: Mapping[str, str]) -> str:
    listed = "".join(f"{name}: {entries[name]}," for name in sorted(entries))
    return f"map[{key_type}]{value_type}{{{listed}}}"


def _pointer(value: str | bool | None) -> str:
    return "nil" if value is None else f"*{_value(value)}"


def _list(values: Iterable[object]) -> str:
    return f"[{' '.join(map(_value, values))}]"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
