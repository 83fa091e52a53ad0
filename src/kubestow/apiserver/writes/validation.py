"""The validation rules of an API server, as far as the scheduler relies on them.

Each error names the field and the value in the words of an API server, so that users recognise it.
Checked is what would otherwise place pods wrongly or break a plugin; an image that does not exist
passes.

Not here: names (`names`), types of fields (`api.decode`), which fields of a pod may change
(`pod_updates`), files written by hand before they reach a server (`api.check`).
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from kubestow.api.labels import (
    SelectorError,
    invalid_value,
    label_value_errors,
    labels_errors,
    parse_label_selector,
    qualified_name_errors,
)
from kubestow.api.meta import ApiObject, LabelSelector, ObjectMeta, ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import (
    Container,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from kubestow.api.quantity import ZERO, Quantity, parse_quantity
from kubestow.api.requests import pod_requests
from kubestow.api.resources import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    is_extended,
    is_hugepage,
    is_native,
)
from kubestow.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from kubestow.api.workload import PodDisruptionBudget, ReplicaSet, StatefulSet

Errors = Iterator[str]
# The errors of the name of a resource at a path.
NameRule = Callable[[str, str], Errors]

PORT_MAX: Final = 65_535
WEIGHT_MAX: Final = 100

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_POSITIVE: Final = "must be greater than zero"
_PORT_RULE: Final = "must be between {low} and 65535, inclusive"
_WEIGHT_RULE: Final = "must be in the range 1-100"
_OPERATOR_RULE: Final = "not a valid selector operator"

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_COMPUTE: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
# Names that are known to quotas, but that no container can request.
_COUNTED: Final = frozenset(
    (
        "requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage",
        "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas",
        "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
        "storage", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
_INTEGERS: Final = frozenset(
    (
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
_QUOTA: Final = "requests."
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def field_errors(obj: ApiObject) -> Errors:
    """The errors of an object, one text per field; none for one that may be stored."""
    yield from metadata_errors("metadata", obj.metadata)
    match obj:
        case Pod():
            yield from _pod_errors(obj)
        case Node():
            yield from _node_errors(obj)
        case PersistentVolume():
            yield from _amounts_errors("spec.capacity", obj.spec.capacity)
            affinity = obj.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                terms = affinity.required.node_selector_terms
                yield from _terms_errors("spec.nodeAffinity.required", terms)
        case PersistentVolumeClaim():
            for field, quantities in (
                ("limits", obj.spec.resources.limits),
                ("requests", obj.spec.resources.requests),
            ):
                yield from _amounts_errors(f"spec.resources.{field}", quantities)
            yield from _selector_errors("spec.selector", obj.spec.selector)
        case PodDisruptionBudget() | ReplicaSet() | StatefulSet():
            yield from _selector_errors("spec.selector", obj.spec.selector)
        case CSIStorageCapacity():
            yield from _selector_errors("nodeTopology", obj.node_topology)
        case _:
            pass


def metadata_errors(path: str, metadata: ObjectMeta) -> Errors:
    """The errors of labels, and of the keys of annotations."""
    yield from labels_errors(metadata.labels, f"{path}.labels")
    keys = {key.lower(): "" for key in metadata.annotations}
    yield from labels_errors(keys, f"{path}.annotations")


def template_errors(metadata: ObjectMeta, spec: PodSpec) -> Errors:
    """The errors of a template of pods, at `spec.template` of its object."""
    yield from metadata_errors("spec.template", metadata)
    for error in _pod_errors(Pod(spec=spec)):
        yield f"spec.template.{error}"


# --- Texts ------------------------------------------------------------------------------------


def _required(path: str, detail: str = "") -> str:
    return f"{path}: Required value: {detail}" if detail else f"{path}: Required value"


def _wrong(path: str, value: object, detail: str) -> str:
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {detail}"


def _duplicate(path: str, value: str) -> str:
    return f"{path}: Duplicate value: {json.dumps(value, ensure_ascii=False)}"


def _forbidden(path: str, detail: str) -> str:
    return f"{path}: Forbidden: {detail}"


def _choice_errors(path: str, value: str, allowed: tuple[str, ...]) -> Errors:
    if value not in allowed:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        shown = json.dumps(value, ensure_ascii=False)
        yield f"{path}: Unsupported value: {shown}: supported values: {choices}"


def _duplicate_errors(path: str, field: str, names: Iterable[str]) -> Errors:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield _duplicate(f"{path}[{index}].{field}", name)
        seen.add(name)


# --- All kinds --------------------------------------------------------------------------------


def _key_errors(path: str, key: str) -> Errors:
    """The errors of the key of a label; what is missing is reported on its own."""
    if key:
        yield from (invalid_value(path, key, error) for error in qualified_name_errors(key))


def _amounts_errors(path: str, quantities: ResourceList | None) -> Errors:
    for name, quantity in (quantities or {}).items():
        yield from _amount_errors(f"{path}[{name}]", name, quantity)


def _amount_errors(path: str, name: str, quantity: Quantity) -> Errors:
    """The errors of an amount: it is not negative, and of many resources a whole number."""
    if quantity < ZERO:
        yield invalid_value(path, str(quantity), _NOT_NEGATIVE)
    if (name in _INTEGERS or is_extended(name)) and quantity.milli_value() % 1000:
        yield invalid_value(path, str(quantity), "must be an integer")


def _container_resource_errors(path: str, name: str) -> Errors:
    """The errors of what containers name as a resource: every node has it, or it has a domain."""
    yield from _resource_name_errors(path, name)
    if "/" not in name:
        if name not in _COMPUTE and not is_hugepage(name):
            yield invalid_value(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid_value(path, name, "doesn't follow extended resource name standard")


def _pod_resource_errors(path: str, name: str) -> Errors:
    """The errors of what a pod as a whole names as a resource."""
    if errors := list(_resource_name_errors(path, name)):
        yield from errors
    elif not is_hugepage(name):
        yield from _choice_errors(path, name, (CPU, HUGEPAGES_PREFIX, MEMORY))


def _resource_name_errors(path: str, name: str) -> Errors:
    if errors := qualified_name_errors(name):
        yield from (invalid_value(path, name, error) for error in errors)
    elif "/" not in name and not _is_standard(name):
        yield invalid_value(path, name, "must be a standard resource type or fully qualified")


def _is_standard(name: str) -> bool:
    return name in _COMPUTE or name in _COUNTED or is_hugepage(name.removeprefix(_QUOTA))


def _resource_errors(path: str, resources: ResourceRequirements, name_errors: NameRule) -> Errors:
    """The errors of what a container or a pod requests, and of its limits."""
    limits, requests = resources.limits or {}, resources.requests or {}
    for field, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            where = f"{path}.{field}[{name}]"
            yield from name_errors(where, name)
            yield from _amount_errors(where, name, quantity)
            if is_hugepage(name) and not _is_whole_pages(name, quantity):
                detail = f"{quantity} is not positive integer multiple of {name}"
                yield invalid_value(where, str(quantity), detail)
    for name, request in requests.items():
        # More of these can never be promised than there is.
        is_exact = is_hugepage(name) or not is_native(name)
        limit = limits.get(name)
        if limit is None:
            if is_exact:
                detail = "Limit must be set for non overcommitable resources"
                yield _required(f"{path}.limits", detail)
        elif is_exact and request != limit:
            detail = f"must be equal to {name} limit of {limit}"
            yield invalid_value(f"{path}.requests", str(request), detail)
        elif request > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid_value(f"{path}.requests", str(request), detail)
    names = limits.keys() | requests.keys()
    if any(map(is_hugepage, names)) and names.isdisjoint((CPU, MEMORY)):
        yield _forbidden(path, "HugePages require cpu or memory")


def _is_whole_pages(name: str, quantity: Quantity) -> bool:
    try:
        page = parse_quantity(name.removeprefix(HUGEPAGES_PREFIX))
    except ValueError:
        return False
    if page <= ZERO or page.milli_value() % 1000:
        return False
    return quantity.value() % page.value() == 0


def _selector_errors(path: str, selector: LabelSelector | None) -> Errors:
    if selector is None:
        return
    for index, requirement in enumerate(selector.match_expressions):
        if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            where = f"{path}.matchExpressions[{index}].operator"
            yield invalid_value(where, requirement.operator, _OPERATOR_RULE)
            return
    try:
        parse_label_selector(selector)
    except SelectorError as error:
        yield from (f"{path}.{text}" for text in error.errors)


def _terms_errors(path: str, terms: tuple[NodeSelectorTerm, ...]) -> Errors:
    if not terms:
        detail = "must have at least one node selector term"
        yield _required(f"{path}.nodeSelectorTerms", detail)
    for index, term in enumerate(terms):
        yield from _term_errors(f"{path}.nodeSelectorTerms[{index}]", term)


def _term_errors(path: str, term: NodeSelectorTerm) -> Errors:
    for index, requirement in enumerate(term.match_expressions):
        yield from _expression_errors(f"{path}.matchExpressions[{index}]", requirement)
    for index, requirement in enumerate(term.match_fields):
        yield from _field_match_errors(f"{path}.matchFields[{index}]", requirement)


def _expression_errors(path: str, requirement: NodeSelectorRequirement) -> Errors:
    values = requirement.values or ()
    if not requirement.key:
        yield _required(f"{path}.key")
    yield from _key_errors(f"{path}.key", requirement.key)
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield _required(f"{path}.values", detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield _forbidden(f"{path}.values", detail)
        case "Gt" | "Lt":
            # Whether the value is a number is not checked: the scheduler handles it (spec 01 §8).
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield _required(f"{path}.values", detail)
        case operator:
            yield invalid_value(f"{path}.operator", operator, _OPERATOR_RULE)


def _field_match_errors(path: str, requirement: NodeSelectorRequirement) -> Errors:
    if requirement.operator not in ("In", "NotIn"):
        yield invalid_value(f"{path}.operator", requirement.operator, _OPERATOR_RULE)
    elif len(requirement.values or ()) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield _required(f"{path}.values", detail)
    if requirement.key != "metadata.name":
        yield invalid_value(f"{path}.key", requirement.key, "not a valid field selector key")


# --- Pods -------------------------------------------------------------------------------------


def _pod_errors(pod: Pod) -> Errors:
    spec = pod.spec
    yield from _container_list_errors(spec)
    if spec.resources is not None:
        yield from _resource_errors("spec.resources", spec.resources, _pod_resource_errors)
        yield from _total_errors("spec.resources", pod)
    # A server writes the path like this.
    overhead = ResourceRequirements(limits=spec.overhead)
    yield from _resource_errors("spec.overhead", overhead, _container_resource_errors)
    yield from labels_errors(spec.node_selector or {}, "spec.nodeSelector")
    yield from _host_port_errors(spec)
    yield from _duplicate_errors("spec.volumes", "name", (volume.name for volume in spec.volumes))
    yield from _toleration_errors(spec)
    yield from _affinity_errors(spec)
    yield from _spread_errors(spec.topology_spread_constraints)
    yield from _gate_errors(spec)
    if spec.preemption_policy is not None:
        policy = spec.preemption_policy
        yield from _choice_errors("spec.preemptionPolicy", policy, _PREEMPTION_POLICIES)


def _total_errors(path: str, pod: Pod) -> Errors:
    """What the containers request together must be within what the pod requests."""
    spec, resources = pod.spec, pod.spec.resources or ResourceRequirements()
    alone = msgspec.structs.replace(spec, resources=None, overhead=None)
    totals = pod_requests(Pod(spec=alone), use_status=False, use_pod_level=False)
    for name, request in (resources.requests or {}).items():
        total = totals.get(name, ZERO)
        if total > request:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid_value(f"{path}.requests[{name}]", str(request), detail)
    for name, limit in (resources.limits or {}).items():
        for index, container in enumerate(spec.containers):
            own = (container.resources.limits or {}).get(name, ZERO)
            if own > limit:
                where = f"{path}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limit}"
                yield invalid_value(where, str(own), detail)


def _container_list_errors(spec: PodSpec) -> Errors:
    if not spec.containers:
        yield _required("spec.containers")
    names: set[str] = set()
    for field, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for index, container in enumerate(containers):
            path = f"spec.{field}[{index}]"
            if not container.name:
                yield _required(f"{path}.name")
            elif container.name in names:
                yield _duplicate(f"{path}.name", container.name)
            names.add(container.name)
            yield from _container_errors(path, container)


def _container_errors(path: str, container: Container) -> Errors:
    yield from _resource_errors(
        f"{path}.resources", container.resources, _container_resource_errors
    )
    for index, port in enumerate(container.ports):
        where = f"{path}.ports[{index}]"
        if not 1 <= port.container_port <= PORT_MAX:
            detail = _PORT_RULE.format(low=1)
            yield _wrong(f"{where}.containerPort", port.container_port, detail)
        if not 0 <= port.host_port <= PORT_MAX:
            yield _wrong(f"{where}.hostPort", port.host_port, _PORT_RULE.format(low=1))
        yield from _choice_errors(f"{where}.protocol", port.protocol, _PROTOCOLS)


def _host_port_errors(spec: PodSpec) -> Errors:
    seen: set[tuple[str, str, int]] = set()
    for container_index, container in enumerate(spec.containers):
        for index, port in enumerate(container.ports):
            if not port.host_port:
                continue
            host_port = (port.host_ip, port.protocol, port.host_port)
            if host_port in seen:
                path = f"spec.containers[{container_index}].ports[{index}].hostPort"
                yield _duplicate(path, "/".join((port.protocol, port.host_ip, str(port.host_port))))
            seen.add(host_port)


def _toleration_errors(spec: PodSpec) -> Errors:
    for index, toleration in enumerate(spec.tolerations):
        path = f"spec.tolerations[{index}]"
        if toleration.effect:
            yield from _choice_errors(f"{path}.effect", toleration.effect, _EFFECTS)
        yield from _key_errors(f"{path}.key", toleration.key)
        operator = toleration.operator
        if operator in ("", "Equal") and (errors := label_value_errors(toleration.value)):
            yield invalid_value(f"{path}.operator", toleration.value, ";".join(errors))
        if operator:
            yield from _choice_errors(f"{path}.operator", operator, _TOLERATION_OPERATORS)
        if not toleration.key and operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values"'
            yield invalid_value(f"{path}.operator", operator, detail)
        if operator == "Exists" and toleration.value:
            detail = "value must be empty when `operator` is 'Exists'"
            yield invalid_value(f"{path}.value", toleration.value, detail)


def _affinity_errors(spec: PodSpec) -> Errors:
    affinity = spec.affinity
    if affinity is None:
        return
    node_affinity = affinity.node_affinity
    if node_affinity is not None:
        path = "spec.affinity.nodeAffinity"
        if node_affinity.required is not None:
            terms = node_affinity.required.node_selector_terms
            yield from _terms_errors(f"{path}.{_REQUIRED}", terms)
        for index, preferred in enumerate(node_affinity.preferred or ()):
            where = f"{path}.{_PREFERRED}[{index}]"
            yield from _weight_errors(where, preferred.weight)
            yield from _term_errors(f"{where}.preference", preferred.preference)
    yield from _pod_affinity_errors("spec.affinity.podAffinity", affinity.pod_affinity)
    yield from _pod_affinity_errors("spec.affinity.podAntiAffinity", affinity.pod_anti_affinity)


def _pod_affinity_errors(path: str, affinity: PodAffinity | None) -> Errors:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required):
        yield from _pod_term_errors(f"{path}.{_REQUIRED}[{index}]", term)
    for index, weighted in enumerate(affinity.preferred):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(where, weighted.weight)
        yield from _pod_term_errors(f"{where}.podAffinityTerm", weighted.pod_affinity_term)


def _pod_term_errors(path: str, term: PodAffinityTerm) -> Errors:
    if not term.topology_key:
        yield _required(f"{path}.topologyKey", "can not be empty")
    yield from _key_errors(f"{path}.topologyKey", term.topology_key)
    yield from _selector_errors(f"{path}.labelSelector", term.label_selector)
    yield from _selector_errors(f"{path}.namespaceSelector", term.namespace_selector)


def _weight_errors(path: str, weight: int) -> Errors:
    if not 1 <= weight <= WEIGHT_MAX:
        yield _wrong(f"{path}.weight", weight, _WEIGHT_RULE)


def _spread_errors(constraints: tuple[TopologySpreadConstraint, ...]) -> Errors:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        if constraint.max_skew <= 0:
            yield _wrong(f"{path}.maxSkew", constraint.max_skew, _POSITIVE)
        if not constraint.topology_key:
            yield _required(f"{path}.topologyKey", "can not be empty")
        yield from _key_errors(f"{path}.topologyKey", constraint.topology_key)
        action = constraint.when_unsatisfiable
        yield from _choice_errors(f"{path}.whenUnsatisfiable", action, _ACTIONS)
        if (constraint.topology_key, action) in seen:
            duplicate = f"{{{constraint.topology_key}, {action}}}"
            yield _duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", duplicate)
        seen.add((constraint.topology_key, action))
        yield from _spread_option_errors(path, constraint)
        yield from _selector_errors(f"{path}.labelSelector", constraint.label_selector)


def _spread_option_errors(path: str, constraint: TopologySpreadConstraint) -> Errors:
    min_domains = constraint.min_domains
    if min_domains is not None and min_domains <= 0:
        yield _wrong(f"{path}.minDomains", min_domains, _POSITIVE)
    elif min_domains is not None and constraint.when_unsatisfiable != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
        detail += constraint.when_unsatisfiable
        yield _wrong(f"{path}.minDomains", min_domains, detail)
    for field, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy is not None:
            yield from _choice_errors(f"{path}.{field}", policy, _POLICIES)


def _gate_errors(spec: PodSpec) -> Errors:
    names = [gate.name for gate in spec.scheduling_gates]
    yield from _duplicate_errors("spec.schedulingGates", "name", names)
    if names and spec.node_name:
        detail = "cannot be set until all schedulingGates have been cleared"
        yield _forbidden("spec.nodeName", detail)


# --- Nodes ------------------------------------------------------------------------------------


def _node_errors(node: Node) -> Errors:
    for field, quantities in (
        ("capacity", node.status.capacity),
        ("allocatable", node.status.allocatable),
    ):
        for name, quantity in (quantities or {}).items():
            yield from _amount_errors(f"status.{field}.{name}", name, quantity)
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node.spec.taints):
        path = f"spec.taints[{index}]"
        if not taint.key:
            yield _required(f"{path}.key")
        yield from _key_errors(f"{path}.key", taint.key)
        if errors := label_value_errors(taint.value):
            yield invalid_value(f"{path}.value", taint.value, ";".join(errors))
        yield from _choice_errors(f"{path}.effect", taint.effect, _EFFECTS)
        if (taint.key, taint.effect) in seen:
            yield f"{path}: Duplicate value: taints must be unique by key and effect pair"
        seen.add((taint.key, taint.effect))
