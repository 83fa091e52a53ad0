"""Pod groups and workloads in an API server: gates, defaults, admission, rules (spec 11 §2).

Fields whose feature gate is off are dropped from new objects; an update keeps them only if the
stored object has them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from kubestow.api.group import group_key_of
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.pod_group import (
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    SchedulingPolicy,
    Workload,
)
from kubestow.apiserver.refusals import forbidden
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes.names import LABEL_LENGTH_MAX, label_problem, subdomain_problem
from kubestow.cluster.documents import as_list, as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import POD_GROUPS, WORKLOADS, ApiResource
from kubestow.config.feature_gates import FeatureGates

FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
PRIORITY_LIMIT: Final = 1_000_000_000
CLAIMS_LIMIT: Final = 4
TEMPLATES_LIMIT: Final = 8
TOPOLOGY_LIMIT: Final = 1

GENERIC: Final = "GenericWorkload"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
PREEMPTION: Final = "WorkloadAwarePreemption"
CLAIMS: Final = "DRAWorkloadResourceClaims"
_Rules = PodGroupSpec | PodGroupTemplate
# Field of a group or a template → the gate it needs.
_GATED_FIELDS: Final = {
    "schedulingConstraints": TOPOLOGY,
    "resourceClaims": CLAIMS,
    "disruptionMode": PREEMPTION,
    "priorityClassName": PREEMPTION,
    "priority": PREEMPTION,
}
_IMMUTABLE: Final = "Invalid value: null: field is immutable"
_MODES: Final = ("Pod", "PodGroup")
_LABEL_KEY: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


class GatedLookup(Protocol):
    """What the rules for groups read from the cluster."""

    @property
    def gates(self) -> FeatureGates: ...

    def find(self, resource: ApiResource, namespace: str, name: str) -> StoredObject | None: ...


# --- Gates ------------------------------------------------------------------------------------


def drop_disabled(document: JsonObject, old: JsonObject | None, gates: FeatureGates) -> JsonObject:
    """The document without fields whose gate is off, unless the stored object has them."""
    match document.get("kind"):
        case "Pod" if not gates.enabled(GENERIC):
            return _without(document, ("schedulingGroup",), old)
        case "PodGroup":
            fields = [field for field, gate in _GATED_FIELDS.items() if not gates.enabled(gate)]
            return _without(document, fields, old)
        case "Workload":
            return _without_in_templates(document, old, gates)
        case _:
            return document


def _without(document: JsonObject, fields: Iterable[str], old: JsonObject | None) -> JsonObject:
    spec = as_object(document.get("spec"))
    stored = {} if old is None else as_object(old.get("spec"))
    dropped = [field for field in fields if field in spec and field not in stored]
    if not dropped:
        return document
    return {**document, "spec": {key: spec[key] for key in spec if key not in dropped}}


def _without_in_templates(
    document: JsonObject, old: JsonObject | None, gates: FeatureGates
) -> JsonObject:
    if old is not None:
        return document  # Templates cannot change, so an update has those that are stored.
    off = {field for field, gate in _GATED_FIELDS.items() if not gates.enabled(gate)}
    templates = objects_in(value_at(document, "spec", "podGroupTemplates"))
    if not any(off & template.keys() for template in templates):
        return document
    kept = [{key: template[key] for key in template if key not in off} for template in templates]
    return replaced_at(document, ("spec", "podGroupTemplates"), kept)


# --- Admission --------------------------------------------------------------------------------


def default_disruption_mode(document: JsonObject, lookup: GatedLookup) -> JsonObject:
    if not lookup.gates.enabled(PREEMPTION) or value_at(document, "spec", "disruptionMode"):
        return document
    return replaced_at(document, ("spec", "disruptionMode"), "Pod")


def protect_group(document: JsonObject, lookup: GatedLookup) -> JsonObject:
    """A group stays until no pod that has not ended refers to it."""
    finalizers = as_list(value_at(document, "metadata", "finalizers"))
    if not lookup.gates.enabled(GENERIC) or FINALIZER in finalizers:
        return document
    return replaced_at(document, ("metadata", "finalizers"), [*finalizers, FINALIZER])


def require_workload(document: JsonObject, lookup: GatedLookup) -> JsonObject:
    """The template that a group refers to must exist."""
    reference = as_object(value_at(document, "spec", "podGroupTemplateRef", "workload"))
    if not reference or not lookup.gates.enabled(GENERIC):
        return document
    workload_name = reference.get("workloadName") or ""
    template_name = reference.get("podGroupTemplateName") or ""
    namespace: str = value_at(document, "metadata", "namespace") or ""
    found = lookup.find(WORKLOADS, namespace, workload_name)
    if found is None:
        raise refused(document, f'PodGroup rejected: Workload "{workload_name}" not found')
    if "deletionTimestamp" in found.metadata:
        raise refused(document, f'PodGroup rejected: Workload "{workload_name}" is being deleted')
    templates = objects_in(value_at(found.document, "spec", "podGroupTemplates"))
    if not any(template.get("name") == template_name for template in templates):
        raise refused(
            document,
            f'PodGroup rejected: PodGroupTemplate "{template_name}" not found in Workload '
            f'"{workload_name}"',
        )
    return document


def with_priority(document: JsonObject, value: int) -> JsonObject:
    """The group with the priority of its class; Forbidden if it has another one."""
    given = value_at(document, "spec", "priority")
    if given not in (None, value):
        raise refused(
            document,
            f"priority set in the pod group ({given}) must match the priority computed ({value}) "
            "based on the priority class set in the spec",
        )
    return replaced_at(document, ("spec", "priority"), value)


def refused(document: JsonObject, detail: str) -> Exception:
    return forbidden(POD_GROUPS, value_at(document, "metadata", "name") or "", detail)


def refuse_job_change(old: StoredObject, new: StoredObject, lookup: GatedLookup) -> str:
    """Why the parallelism of a Job may not change; empty if it may."""
    if new.resource.kind != "Job" or not lookup.gates.enabled(GENERIC):
        return ""
    if value_at(old.document, "spec", "parallelism") == value_at(
        new.document, "spec", "parallelism"
    ):
        return ""
    path = ("spec", "template", "spec", "schedulingGroup", "podGroupName")
    name = value_at(new.document, *path)
    found = lookup.find(POD_GROUPS, new.key[0], name) if name else None
    if found is None or value_at(found.document, "spec", "schedulingPolicy", "gang") is None:
        return ""
    return f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{name}"'


# --- Rules ------------------------------------------------------------------------------------


def group_errors(obj: object) -> Iterator[str]:
    """The errors of a pod's group, of a group, or of a workload."""
    match obj:
        case Pod():
            yield from _pod_errors(obj)
        case PodGroup():
            yield from _group_errors(obj)
        case Workload():
            yield from _workload_errors(obj)
        case _:
            pass


def group_change_errors(old: StoredObject, new: StoredObject) -> Iterator[str]:
    if new.resource.kind not in ("PodGroup", "Workload"):
        return
    before, after = as_object(old.document.get("spec")), as_object(new.document.get("spec"))
    for field in sorted(before.keys() | after.keys()):
        if before.get(field) != after.get(field):
            yield f"spec.{field}: {_IMMUTABLE}"


def _pod_errors(pod: Pod) -> Iterator[str]:
    group = pod.spec.scheduling_group
    if group is None:
        return
    key = group_key_of(pod)
    if key is None:
        yield 'spec.schedulingGroup: Invalid value: "": must specify one of: `podGroupName`'
    else:
        yield from _subdomain_errors("spec.schedulingGroup.podGroupName", key.name)


def _group_errors(group: PodGroup) -> Iterator[str]:
    spec = group.spec
    reference = spec.pod_group_template_ref
    if reference is not None:
        path = "spec.podGroupTemplateRef"
        if reference.workload is None:
            yield f'{path}: Invalid value: "": must specify one of: `workload`'
        else:
            workload = reference.workload
            yield from _subdomain_errors(f"{path}.workload.workloadName", workload.workload_name)
            yield from _label_errors(
                f"{path}.workload.podGroupTemplateName", workload.pod_group_template_name
            )
    yield from _template_errors("spec", spec)
    names = {claim.name for claim in spec.resource_claims}
    for index, status in enumerate(group.status.resource_claim_statuses):
        if status.name not in names:
            yield (
                f'status.resourceClaimStatuses[{index}].name: Invalid value: "{status.name}": '
                "must match the name of an entry in `spec.resourceClaims`"
            )


def _workload_errors(workload: Workload) -> Iterator[str]:
    templates, path = workload.spec.pod_group_templates, "spec.podGroupTemplates"
    if not templates:
        yield f"{path}: Required value"
    yield from _too_many(path, len(templates), TEMPLATES_LIMIT)
    yield from _duplicates(path, [template.name for template in templates])
    for index, template in enumerate(templates):
        yield from _label_errors(f"{path}[{index}].name", template.name)
        yield from _template_errors(f"{path}[{index}]", template)


def _template_errors(path: str, rules: _Rules) -> Iterator[str]:
    yield from _policy_errors(f"{path}.schedulingPolicy", rules.scheduling_policy)
    constraints = rules.scheduling_constraints
    if constraints is not None:
        topology = f"{path}.schedulingConstraints.topology"
        yield from _too_many(topology, len(constraints.topology), TOPOLOGY_LIMIT)
        for index, constraint in enumerate(constraints.topology):
            yield from _label_key_errors(f"{topology}[{index}].key", constraint.key)
    yield from _claim_errors(f"{path}.resourceClaims", rules)
    if rules.disruption_mode is not None and rules.disruption_mode not in _MODES:
        choices = ", ".join(f'"{mode}"' for mode in _MODES)
        yield (
            f'{path}.disruptionMode: Unsupported value: "{rules.disruption_mode}": '
            f"supported values: {choices}"
        )
    if rules.priority_class_name:
        yield from _subdomain_errors(f"{path}.priorityClassName", rules.priority_class_name)
    priority = rules.priority
    if priority is not None and priority > PRIORITY_LIMIT:
        limit = f"must be less than or equal to {PRIORITY_LIMIT}"
        yield f"{path}.priority: Invalid value: {priority}: {limit}"


def _policy_errors(path: str, policy: SchedulingPolicy) -> Iterator[str]:
    if policy.basic is None and policy.gang is None:
        yield f'{path}: Invalid value: "": must specify one of: `basic`, `gang`'
    elif policy.basic is not None and policy.gang is not None:
        detail = "must specify exactly one of: `basic`, `gang`"
        yield f'{path}: Invalid value: "{{basic, gang}}": {detail}'
    if policy.gang is not None:
        min_count = policy.gang.min_count
        if min_count == 0:
            yield f"{path}.gang.minCount: Required value"
        elif min_count < 0:
            limit = "must be greater than or equal to 1"
            yield f"{path}.gang.minCount: Invalid value: {min_count}: {limit}"


def _claim_errors(path: str, rules: _Rules) -> Iterator[str]:
    claims = rules.resource_claims
    yield from _too_many(path, len(claims), CLAIMS_LIMIT)
    yield from _duplicates(path, [claim.name for claim in claims])
    for index, claim in enumerate(claims):
        yield from _label_errors(f"{path}[{index}].name", claim.name)
        names = (claim.resource_claim_name, claim.resource_claim_template_name)
        choices = "`resourceClaimName`, `resourceClaimTemplateName`"
        if names == (None, None):
            yield f'{path}[{index}]: Invalid value: "": must specify one of: {choices}'
        elif None not in names:
            given = "{resourceClaimName, resourceClaimTemplateName}"
            detail = f"must specify exactly one of: {choices}"
            yield f'{path}[{index}]: Invalid value: "{given}": {detail}'


def _too_many(path: str, count: int, most: int) -> Iterator[str]:
    if count > most:
        items = "item" if most == 1 else "items"
        yield f"{path}: Too many: {count}: must have at most {most} {items}"


def _duplicates(path: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield f'{path}[{index}]: Duplicate value: {{"name":"{name}"}}'
        seen.add(name)


def _subdomain_errors(path: str, name: str) -> Iterator[str]:
    if not name:
        yield f"{path}: Required value"
    elif (problem := subdomain_problem(name)) is not None:
        yield f'{path}: Invalid value: "{name}": {problem}'


def _label_errors(path: str, name: str) -> Iterator[str]:
    if not name:
        yield f"{path}: Required value"
    elif (problem := label_problem(name)) is not None:
        yield f'{path}: Invalid value: "{name}": {problem}'


def _label_key_errors(path: str, key: str) -> Iterator[str]:
    if not key:
        yield f"{path}: Required value"
        return
    prefix, _, name = key.rpartition("/")
    is_valid = (
        len(name) <= LABEL_LENGTH_MAX
        and _LABEL_KEY.fullmatch(name) is not None
        and ("/" not in key or subdomain_problem(prefix) is None)
    )
    if not is_valid:
        yield f'{path}: Invalid value: "{key}": must be a label key'
