"""Admission: changes an API server makes to an object at creation (spec 01 §0.1, 5 and 6).

Priority classes become numbers, every pod tolerates a lost node for five minutes, label keys become
requirements, the first status is written. Each is a pure function on documents and a `Lookup` for
other objects. Objects recorded from a cluster have been through this: `MemoryCluster` can leave it
out.

One exception: a pod may have `spec.priority` or `spec.preemptionPolicy` without a class. A real
server would compute its own; workloads written for simulations give the number.
Not here: defaults of single fields (`defaults`), rules for objects (`validation`).
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.api.qos import qos_class
from kubestow.api.workload import PriorityClass
from kubestow.apiserver.custom.rules import definition_change_errors, definition_errors
from kubestow.apiserver.refusals import forbidden, invalid, qualified_kind
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes.defaults import (
    POD_LEVEL_GATE,
    apply_defaults,
    complete_pod_level_resources,
    round_resource_list,
)
from kubestow.apiserver.writes.dropped_fields import drop_disabled
from kubestow.apiserver.writes.groups import (
    POLICIES,
    PREEMPTION,
    default_disruption_mode,
    group_change_errors,
    group_errors,
    protect_group,
    refuse_job_change,
    refused,
    require_workload,
    with_preemption_policy,
    with_priority,
)
from kubestow.apiserver.writes.names import name_errors
from kubestow.apiserver.writes.pod_updates import pod_update_errors
from kubestow.apiserver.writes.service_addresses import with_cluster_address
from kubestow.apiserver.writes.validation import (
    field_errors,
    metadata_errors,
    template_errors,
)
from kubestow.apiserver.writes.workloads import (
    WITH_TEMPLATE,
    generate_job_selector,
    workload_change_errors,
    workload_errors,
)
from kubestow.cluster.documents import (
    as_list,
    as_object,
    filled_at,
    is_object,
    objects_in,
    replaced_at,
    value_at,
)
from kubestow.cluster.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SERVICES,
    STORAGE_CLASSES,
    ApiResource,
)
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import DecodeError, InvalidError

SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
NODE_LOST_TOLERATION_S: Final = 300
_NODE_LOST_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_GATED_CONDITION: Final[JsonObject] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_DEFAULT_CLASS_ANNOTATION: Final = "storageclass.kubernetes.io/is-default-class"


class Lookup(Protocol):
    """What admission reads from the cluster."""

    @property
    def gates(self) -> FeatureGates: ...

    def find(self, resource: ApiResource, namespace: str, name: str) -> StoredObject | None: ...

    def objects_of(self, resource: ApiResource) -> Iterable[StoredObject]: ...


class Admitted(NamedTuple):
    """A document that may be stored, and the typed struct of it."""

    document: JsonObject
    typed: ApiObject


def admit_new(resource: ApiResource, document: JsonObject, lookup: Lookup) -> Admitted:
    """What is stored for a new document; InvalidError or Forbidden if it is not accepted."""
    if not resource.is_custom:
        document = drop_disabled(document, None, lookup.gates)
        document = apply_defaults(document)
        if document["kind"] == "Pod" and lookup.gates.has(POD_LEVEL_GATE):
            document = complete_pod_level_resources(document)
        for plugin in _PLUGINS.get(resource.kind, ()):
            document = plugin(document, lookup)
    typed = validated(resource, document)
    if isinstance(typed, Pod) and not typed.status.qos_class:
        return _with_qos_class(document, typed)
    return Admitted(document, typed)


def decoded(resource: ApiResource, document: JsonObject) -> ApiObject:
    """The typed struct of a document; InvalidError if a field has the wrong type."""
    try:
        return convert(resource.cls, document)
    except DecodeError as error:
        raise InvalidError(str(error)) from error


def validated(resource: ApiResource, document: JsonObject) -> ApiObject:
    """The typed struct of a document; InvalidError if it violates a rule of its kind."""
    typed = decoded(resource, document)
    errors = name_errors(resource, typed.metadata.name)
    if resource.is_custom:
        errors += metadata_errors("metadata", typed.metadata)
    else:
        errors += [*field_errors(typed), *workload_errors(document), *group_errors(typed)]
        errors += _template_errors(document)
    if resource is CUSTOM_RESOURCE_DEFINITIONS:
        errors += definition_errors(document)
    if errors:
        raise invalid(qualified_kind(resource), typed.metadata.name, errors)
    return typed


def admit_change(
    old: StoredObject, new: StoredObject, lookup: Lookup, *, is_part: bool = False
) -> None:
    """InvalidError or Forbidden if an update violates a rule of its kind.

    With `is_part` it comes from a subresource that writes what others may not.
    """
    if new.resource.is_custom:
        return  # its schema is checked where requests are read
    if detail := refuse_job_change(old, new, lookup):
        raise forbidden(new.resource, new.name, detail)
    errors = list(field_errors(new.typed))
    if new.resource is PODS and not is_part:
        errors += pod_update_errors(old.document, new.document)
    errors += [*workload_errors(new.document), *_template_errors(new.document)]
    errors += workload_change_errors(old.document, new.document)
    errors += group_errors(new.typed)
    errors += group_change_errors(old, new)
    if new.resource is CUSTOM_RESOURCE_DEFINITIONS:
        errors += definition_errors(new.document)
        errors += definition_change_errors(old.document, new.document)
    if errors:
        raise invalid(qualified_kind(new.resource), new.name, errors)


def _template_errors(document: JsonObject) -> list[str]:
    """What is wrong with the pods that a workload makes."""
    template = as_object(value_at(document, "spec", "template"))
    if document.get("kind") not in WITH_TEMPLATE or not value_at(template, "spec", "containers"):
        return []
    pod: JsonObject = {**template, "kind": "Pod"}
    try:
        typed = convert(Pod, apply_defaults(pod))
    except DecodeError as error:
        return [f"spec.template: Invalid value: {error}"]
    return list(template_errors(typed.metadata, typed.spec))


def admit_pod_update(old: JsonObject, new: JsonObject, lookup: Lookup) -> JsonObject:
    """The update of a pod with what admission fills in again."""
    for field in ("priority", "preemptionPolicy"):
        known = value_at(old, "spec", field)
        if known is not None:
            new = filled_at(new, ("spec", field), known)
    return tolerate_lost_nodes(new, lookup)


def _with_qos_class(document: JsonObject, pod: Pod) -> Admitted:
    found = qos_class(pod)
    status = msgspec.structs.replace(pod.status, qos_class=found)
    return Admitted(
        replaced_at(document, ("status", "qosClass"), found),
        msgspec.structs.replace(pod, status=status),
    )


# --- Pods -------------------------------------------------------------------------------------


def apply_runtime_class(document: JsonObject, lookup: Lookup) -> JsonObject:
    """Overhead, node selector and tolerations of the pod's runtime class."""
    class_name = value_at(document, "spec", "runtimeClassName")
    if not class_name:
        return document
    found = lookup.find(RUNTIME_CLASSES, "", class_name)
    if found is None:
        raise _refused(document, f'pod rejected: RuntimeClass "{class_name}" not found')
    overhead = round_resource_list(as_object(value_at(found.document, "overhead", "podFixed")))
    if overhead:
        document = replaced_at(document, ("spec", "overhead"), overhead)
    scheduling = as_object(found.document.get("scheduling"))
    if selector := as_object(scheduling.get("nodeSelector")):
        own = as_object(value_at(document, "spec", "nodeSelector"))
        document = replaced_at(document, ("spec", "nodeSelector"), {**selector, **own})
    if more := as_list(scheduling.get("tolerations")):
        own_list = as_list(value_at(document, "spec", "tolerations"))
        added = [toleration for toleration in more if toleration not in own_list]
        document = replaced_at(document, ("spec", "tolerations"), [*own_list, *added])
    return document


def apply_priority_class(document: JsonObject, lookup: Lookup) -> JsonObject:
    """`spec.priority` and `spec.preemptionPolicy` from the class named, or from the default one."""
    spec = as_object(document.get("spec"))
    class_name: str = spec.get("priorityClassName") or ""
    priority: int | None = spec.get("priority")
    policy: str | None = spec.get("preemptionPolicy")
    filled: JsonObject = {}
    if class_name:
        chosen = _named_priority(document, class_name, lookup)
        class_policy = chosen.preemption_policy or PREEMPT_LOWER_PRIORITY
        if priority not in (None, chosen.value):
            computed = _computed_by_class(chosen.value)
            raise _refused(document, f"the integer value of priority ({priority}) {computed}")
        if policy not in (None, class_policy):
            computed = _computed_by_class(class_policy)
            raise _refused(document, f"the string value of PreemptionPolicy ({policy}) {computed}")
    else:
        chosen = _default_priority(lookup)
        class_policy = chosen.preemption_policy or PREEMPT_LOWER_PRIORITY
        if priority is None and chosen.metadata.name:
            filled["priorityClassName"] = chosen.metadata.name
    filled["priority"] = chosen.value if priority is None else priority
    filled["preemptionPolicy"] = policy or class_policy
    return {**document, "spec": {**spec, **filled}}


def _computed_by_class(value: int | str) -> str:
    return (
        "must not be provided in pod spec; priority admission controller computed"
        f" {value} from the given PriorityClass name"
    )


def _named_priority(document: JsonObject, name: str, lookup: Lookup) -> PriorityClass:
    found = find_priority(name, lookup)
    if found is None:
        raise _refused(document, f"no PriorityClass with name {name} was found")
    return found


def find_priority(name: str, lookup: Lookup) -> PriorityClass | None:
    found = lookup.find(PRIORITY_CLASSES, "", name)
    if found is not None:
        assert isinstance(found.typed, PriorityClass)
        return found.typed
    return PriorityClass(value=SYSTEM_PRIORITIES[name]) if name in SYSTEM_PRIORITIES else None


def _default_priority(lookup: Lookup) -> PriorityClass:
    """The global default; of several the lowest, and without any a class of priority 0."""
    defaults = [
        stored.typed
        for stored in lookup.objects_of(PRIORITY_CLASSES)
        if isinstance(stored.typed, PriorityClass) and stored.typed.global_default
    ]
    return min(defaults, key=lambda found: found.value, default=PriorityClass())


def apply_group_priority(document: JsonObject, lookup: Lookup) -> JsonObject:
    """`spec.priority` of a group from the class named, or from the default one (spec 11 §2.4)."""
    if not lookup.gates.enabled(PREEMPTION):
        return document
    class_name: str = value_at(document, "spec", "priorityClassName") or ""
    found = find_priority(class_name, lookup) if class_name else _default_priority(lookup)
    if found is None:
        raise refused(document, f"no PriorityClass with name {class_name} was found")
    document = with_priority(document, found.value)
    if lookup.gates.has(POLICIES):
        policy = found.preemption_policy or "PreemptLowerPriority"
        document = with_preemption_policy(document, policy)
    return document


def tolerate_lost_nodes(document: JsonObject, _lookup: Lookup) -> JsonObject:
    """Stay five minutes on a node that is lost, unless the pod has such a toleration."""
    tolerations = objects_in(value_at(document, "spec", "tolerations"))
    added: list[JsonObject] = [
        {
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": NODE_LOST_TOLERATION_S,
        }
        for taint in _NODE_LOST_TAINTS
        if not any(_covers(toleration, taint) for toleration in tolerations)
    ]
    if not added:
        return document
    return replaced_at(document, ("spec", "tolerations"), [*tolerations, *added])


def _covers(toleration: JsonObject, taint: str) -> bool:
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    return key in ("", taint) and effect in ("", "NoExecute")


def merge_label_keys(document: JsonObject, _lookup: Lookup) -> JsonObject:
    """Label keys of affinity terms and spread constraints become requirements (spec 01 §12.4)."""
    spec = as_object(document.get("spec"))
    if not spec.get("affinity") and not spec.get("topologySpreadConstraints"):
        return document
    labels = as_object(value_at(document, "metadata", "labels"))
    for kind in ("podAffinity", "podAntiAffinity"):
        if not value_at(spec, "affinity", kind):
            continue
        required = ("affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = ("affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution")
        spec = _map_list(spec, required, lambda term: _narrowed(term, labels))
        spec = _map_list(spec, preferred, lambda term: _narrowed_weighted(term, labels))
    spec = _map_list(spec, ("topologySpreadConstraints",), lambda term: _narrowed(term, labels))
    return document if spec is document.get("spec") else {**document, "spec": spec}


def _map_list(
    spec: JsonObject, path: tuple[str, ...], change: Callable[[JsonObject], JsonObject]
) -> JsonObject:
    terms = objects_in(value_at(spec, *path))
    changed = [change(term) for term in terms]
    if all(new is old for new, old in zip(changed, terms, strict=True)):
        return spec
    return replaced_at(spec, path, changed)


def _narrowed_weighted(weighted: JsonObject, labels: JsonObject) -> JsonObject:
    term = as_object(weighted.get("podAffinityTerm"))
    narrowed = _narrowed(term, labels)
    return weighted if narrowed is term else {**weighted, "podAffinityTerm": narrowed}


def _narrowed(term: JsonObject, labels: JsonObject) -> JsonObject:
    """A term whose selector also requires the pod's own labels of the keys it names."""
    if not is_object(term.get("labelSelector")):
        return term
    expressions = as_list(value_at(term, "labelSelector", "matchExpressions"))
    wanted: list[JsonObject] = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in as_list(term.get(field))
        if key in labels
    ]
    # A pod copied from another cluster has these expressions already.
    added = [expression for expression in wanted if expression not in expressions]
    if not added:
        return term
    return replaced_at(term, ("labelSelector", "matchExpressions"), [*expressions, *added])


def write_first_status(document: JsonObject, _lookup: Lookup) -> JsonObject:
    """A new pod is pending; one with scheduling gates has the condition for it."""
    document = filled_at(document, ("status", "phase"), "Pending")
    conditions = objects_in(value_at(document, "status", "conditions"))
    is_known = any(condition.get("type") == "PodScheduled" for condition in conditions)
    if is_known or not value_at(document, "spec", "schedulingGates"):
        return document
    return replaced_at(document, ("status", "conditions"), [*conditions, _GATED_CONDITION])


def _refused(document: JsonObject, detail: str) -> Exception:
    return forbidden(PODS, value_at(document, "metadata", "name") or "", detail)


# --- Claims -----------------------------------------------------------------------------------


def choose_storage_class(document: JsonObject, lookup: Lookup) -> JsonObject:
    """A claim that names no class gets the default one; of several the newest, then by name."""
    if value_at(document, "spec", "storageClassName") is not None:
        return document
    defaults = [
        (value_at(stored.document, "metadata", "creationTimestamp") or "", stored.name)
        for stored in lookup.objects_of(STORAGE_CLASSES)
        if as_object(stored.metadata.get("annotations")).get(_DEFAULT_CLASS_ANNOTATION) == "true"
    ]
    if not defaults:
        return document
    newest = max(created for created, _ in defaults)
    name = min(name for created, name in defaults if created == newest)
    return replaced_at(document, ("spec", "storageClassName"), name)


# --- Jobs and services ------------------------------------------------------------------------


def select_own_pods(document: JsonObject, _lookup: Lookup) -> JsonObject:
    return generate_job_selector(document)


def choose_cluster_address(document: JsonObject, lookup: Lookup) -> JsonObject:
    services = (stored.document for stored in lookup.objects_of(SERVICES))
    return with_cluster_address(document, services)


_Plugin = Callable[[JsonObject, Lookup], JsonObject]

_PLUGINS: Final[dict[str, tuple[_Plugin, ...]]] = {
    "Pod": (
        apply_runtime_class,
        apply_priority_class,
        tolerate_lost_nodes,
        merge_label_keys,
        write_first_status,
    ),
    "PodGroup": (
        default_disruption_mode,
        protect_group,
        require_workload,
        apply_group_priority,
    ),
    "CompositePodGroup": (default_disruption_mode, apply_group_priority),
    "PersistentVolumeClaim": (choose_storage_class,),
    "Job": (select_own_pods,),
    "Service": (choose_cluster_address,),
}
