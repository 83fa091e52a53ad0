"""Pod groups and workloads in an API server: defaults, admission, rules (spec 11 §2)."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from kubestow.api.decode import convert
from kubestow.api.gang_dialects import SpecV1Beta1
from kubestow.api.group import group_key_of
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.pod_group import (
    CompositePodGroup,
    DisruptionMode,
    PodGroup,
    PodGroupSpec,
    PodGroupTemplate,
    PodGroupV1Beta1,
    SchedulingConstraints,
    SchedulingPolicy,
    Workload,
    WorkloadReference,
)
from kubestow.apiserver.refusals import forbidden
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes.names import LABEL_LENGTH_MAX, label_problem, subdomain_problem
from kubestow.cluster.documents import as_list, as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import (
    COMPOSITE_POD_GROUPS,
    POD_GROUPS,
    WORKLOADS,
    ApiResource,
)
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import DecodeError

FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
PRIORITY_LIMIT: Final = 1_000_000_000
CLAIMS_LIMIT: Final = 4
TEMPLATES_LIMIT: Final = 8
TOPOLOGY_LIMIT: Final = 1

GENERIC: Final = "GenericWorkload"
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
PREEMPTION: Final = "WorkloadAwarePreemption"
CLAIMS: Final = "DRAWorkloadResourceClaims"
POLICIES: Final = "PodGroupPreemptionPolicy"
_Rules = PodGroupSpec | PodGroupTemplate | SpecV1Beta1
_OLDEST: Final = POD_GROUPS.api_version
_IMMUTABLE: Final = "Invalid value: null: field is immutable"
_MODES: Final = ("Pod", "PodGroup")
_LABEL_KEY: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


class GatedLookup(Protocol):
    """What the rules for groups read from the cluster."""

    @property
    def gates(self) -> FeatureGates: ...

    def find(self, resource: ApiResource, namespace: str, name: str) -> StoredObject | None: ...


# --- Admission --------------------------------------------------------------------------------


def default_disruption_mode(document: JsonObject, lookup: GatedLookup) -> JsonObject:
    if not lookup.gates.enabled(PREEMPTION) or value_at(document, "spec", "disruptionMode"):
        return document
    later: JsonObject = {"single": {}}
    mode = "Pod" if document.get("apiVersion") == _OLDEST else later
    return replaced_at(document, ("spec", "disruptionMode"), mode)


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
            f"priority set in the {_noun(document)} ({given}) must match the priority computed "
            f"({value}) based on the priority class set in the spec",
        )
    return replaced_at(document, ("spec", "priority"), value)


def with_preemption_policy(document: JsonObject, policy: str) -> JsonObject:
    """The group with the preemption policy of its class; Forbidden if it has another one."""
    given = value_at(document, "spec", "preemptionPolicy")
    if given not in (None, policy):
        raise refused(
            document,
            f"the string value of PreemptionPolicy ({given}) must not be provided in "
            f"{_noun(document)} spec; priority admission controller computed {policy} from the "
            "given PriorityClass name",
        )
    return replaced_at(document, ("spec", "preemptionPolicy"), policy)


def _noun(document: JsonObject) -> str:
    is_composite = document.get("kind") == COMPOSITE_POD_GROUPS.kind
    return "composite pod group" if is_composite else "pod group"


def refused(document: JsonObject, detail: str) -> Exception:
    is_composite = document.get("kind") == COMPOSITE_POD_GROUPS.kind
    resource = COMPOSITE_POD_GROUPS if is_composite else POD_GROUPS
    return forbidden(resource, value_at(document, "metadata", "name") or "", detail)


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
        case PodGroupV1Beta1():
            yield from _group_errors_v1beta1(obj)
        case CompositePodGroup():
            yield from _composite_errors(obj)
        case Workload():
            yield from _workload_errors(obj)
        case _:
            pass


def group_change_errors(old: StoredObject, new: StoredObject) -> Iterator[str]:
    if new.resource.kind not in ("PodGroup", "CompositePodGroup", "Workload"):
        return
    before, after = as_object(old.document.get("spec")), as_object(new.document.get("spec"))
    if isinstance(new.typed, PodGroupV1Beta1):
        before, after = _without_min_count(before), _without_min_count(after)
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


def _without_min_count(spec: JsonObject) -> JsonObject:
    """The spec without what can be changed: how many members a gang needs."""
    gang = value_at(spec, "schedulingPolicy", "gang")
    return spec if gang is None else replaced_at(spec, ("schedulingPolicy", "gang"), {})


def _group_errors_v1beta1(group: PodGroupV1Beta1) -> Iterator[str]:
    try:
        spec = convert(SpecV1Beta1, group.spec)
    except DecodeError as error:
        yield f"spec: Invalid value: {error}"
        return
    parent = group.spec.get("parentCompositePodGroupName")
    yield from _reference_errors("spec.workloadRef", spec.workload_ref, is_required=bool(parent))
    yield from _mode_errors("spec.disruptionMode", spec.disruption_mode)
    yield from _template_errors("spec", spec)


def _composite_errors(group: CompositePodGroup) -> Iterator[str]:
    spec = group.spec
    yield from _reference_errors("spec.workloadRef", spec.workload_ref, is_required=True)
    policy, path = spec.scheduling_policy, "spec.schedulingPolicy"
    yield from _choice_errors(path, basic=policy.basic, gang=policy.gang)
    if policy.gang is not None:
        count = policy.gang.min_group_count
        yield from _minimum_errors(f"{path}.gang.minGroupCount", count)
    yield from _constraint_errors("spec", spec.scheduling_constraints)
    yield from _mode_errors("spec.disruptionMode", spec.disruption_mode)
    yield from _priority_errors("spec", spec.priority_class_name, spec.priority)


def _reference_errors(
    path: str, reference: WorkloadReference | None, *, is_required: bool
) -> Iterator[str]:
    if reference is None:
        if is_required:
            yield f"{path}: Required value"
        return
    yield from _subdomain_errors(f"{path}.workloadName", reference.workload_name)
    yield from _label_errors(f"{path}.templateName", reference.template_name)


def _mode_errors(path: str, mode: DisruptionMode | None) -> Iterator[str]:
    if mode is not None:
        yield from _choice_errors(path, single=mode.single, all=mode.all)


def _workload_errors(workload: Workload) -> Iterator[str]:
    templates, path = workload.spec.pod_group_templates, "spec.podGroupTemplates"
    if not templates and not workload.spec.composite_pod_group_templates:
        yield f"{path}: Required value"
    yield from _too_many(path, len(templates), TEMPLATES_LIMIT)
    yield from _duplicates(path, [template.name for template in templates])
    for index, template in enumerate(templates):
        yield from _label_errors(f"{path}[{index}].name", template.name)
        yield from _template_errors(f"{path}[{index}]", template)


def _template_errors(path: str, rules: _Rules) -> Iterator[str]:
    yield from _policy_errors(f"{path}.schedulingPolicy", rules.scheduling_policy)
    yield from _constraint_errors(path, rules.scheduling_constraints)
    yield from _claim_errors(f"{path}.resourceClaims", rules)
    mode = rules.disruption_mode
    if isinstance(mode, str) and mode not in _MODES:
        choices = ", ".join(f'"{mode}"' for mode in _MODES)
        yield (f'{path}.disruptionMode: Unsupported value: "{mode}": supported values: {choices}')
    yield from _priority_errors(path, rules.priority_class_name, rules.priority)


def _constraint_errors(path: str, constraints: SchedulingConstraints | None) -> Iterator[str]:
    if constraints is not None:
        topology = f"{path}.schedulingConstraints.topology"
        yield from _too_many(topology, len(constraints.topology), TOPOLOGY_LIMIT)
        for index, constraint in enumerate(constraints.topology):
            yield from _label_key_errors(f"{topology}[{index}].key", constraint.key)


def _priority_errors(path: str, class_name: str, priority: int | None) -> Iterator[str]:
    if class_name:
        yield from _subdomain_errors(f"{path}.priorityClassName", class_name)
    if priority is not None and priority > PRIORITY_LIMIT:
        limit = f"must be less than or equal to {PRIORITY_LIMIT}"
        yield f"{path}.priority: Invalid value: {priority}: {limit}"


def _policy_errors(path: str, policy: SchedulingPolicy) -> Iterator[str]:
    yield from _choice_errors(path, basic=policy.basic, gang=policy.gang)
    if policy.gang is not None:
        yield from _minimum_errors(f"{path}.gang.minCount", policy.gang.min_count)


def _choice_errors(path: str, **members: object) -> Iterator[str]:
    """Exactly one member of a union must be set."""
    names = ", ".join(f"`{name}`" for name in members)
    given = [name for name, value in members.items() if value is not None]
    if not given:
        yield f'{path}: Invalid value: "": must specify one of: {names}'
    elif len(given) > 1:
        detail = f"must specify exactly one of: {names}"
        yield f'{path}: Invalid value: "{{{", ".join(given)}}}": {detail}'


def _minimum_errors(path: str, count: int) -> Iterator[str]:
    if count == 0:
        yield f"{path}: Required value"
    elif count < 0:
        limit = "must be greater than or equal to 1"
        yield f"{path}: Invalid value: {count}: {limit}"


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
