"""Checks for objects that decode but that an API server would not accept.

Objects written by hand have not passed an API server's validation. The scheduler itself never
matches an unknown operator or effect (spec 01 §7, §8); in a file that is a typing error, which
loading should report. Checked is what would otherwise silently place pods wrongly: names, values
from a closed list, negative amounts.

Not here: types (`decode`), full API validation.
"""

from collections.abc import Iterator
from typing import Final

from kubestow.api.decode import is_map, quoted
from kubestow.api.meta import ApiObject, JsonObject, LabelSelector, ResourceList, object_ref
from kubestow.api.node import Node
from kubestow.api.pod import NodeSelectorTerm, Pod, PodAffinity, PodSpec
from kubestow.api.quantity import ZERO
from kubestow.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from kubestow.api.workload import PodDisruptionBudget, ReplicaSet, StatefulSet
from kubestow.errors import DecodeError

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_TOLERATION_OPERATORS: Final = ("", "Equal", "Exists", "Lt", "Gt")
_TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

# More pods of one owner than any cluster has: a typing error, on which a simulation would hang.
REPLICAS_MAX: Final = 1_000_000
OWNERS_OF_PODS: Final = (
    "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"
)  # fmt: skip
_COUNT_FIELDS: Final = ("replicas", "parallelism", "completions")

# The path of a field, its value, the values allowed there.
_Choice = tuple[str, str, tuple[str, ...]]


def check_object(obj: ApiObject) -> None:
    """Raise DecodeError for an object that an API server would not accept.

    For objects written by hand: what comes from an API server has been validated.
    """
    if not obj.metadata.name and not obj.metadata.generate_name:
        place = f' in namespace "{obj.metadata.namespace}"' if obj.metadata.namespace else ""
        raise DecodeError(f"{_label_of(obj)}{place} has no metadata.name: give it one")
    for path, found, allowed in _choices(obj):
        if found not in allowed:
            expected = ", ".join(choice for choice in allowed if choice)
            raise DecodeError(
                f"{_label_of(obj)}: {path} is {quoted(found)}, expected one of {expected}"
            )
    for path, resource_list in _resource_lists(obj):
        for name, quantity in (resource_list or {}).items():
            if quantity < ZERO:
                raise DecodeError(
                    f'{_label_of(obj)}: {path}["{name}"] is "{quantity}", expected 0 or more'
                )


def check_counts(document: JsonObject) -> None:
    """Raise DecodeError for an owner of pods with a number of them that no cluster has."""
    spec = document.get("spec")
    if not is_map(spec):
        return
    for field in _COUNT_FIELDS:
        count = spec.get(field)
        # What is no number at all, decoding reports.
        if isinstance(count, int) and not 0 <= count <= REPLICAS_MAX:
            meta = document.get("metadata")
            name = meta.get("name") if is_map(meta) else None
            raise DecodeError(
                f"{document.get('kind')} {quoted(name)}: spec.{field} is {quoted(count)}, expected "
                f"a whole number from 0 to {REPLICAS_MAX}"
            )


def _label_of(obj: ApiObject) -> str:
    kind = type(obj).__name__
    return f'{kind} "{object_ref(obj.metadata)}"' if obj.metadata.name else kind


def _choices(obj: ApiObject) -> Iterator[_Choice]:
    match obj:
        case Pod():
            yield from _pod_choices(obj.spec)
        case Node():
            for index, taint in enumerate(obj.spec.taints):
                yield f"spec.taints[{index}].effect", taint.effect, _TAINT_EFFECTS
        case PersistentVolume():
            affinity = obj.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                terms = affinity.required.node_selector_terms
                for index, term in enumerate(terms):
                    path = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
                    yield from _term_choices(path, term)
        case PersistentVolumeClaim() | PodDisruptionBudget() | ReplicaSet() | StatefulSet():
            yield from _selector_choices("spec.selector", obj.spec.selector)
        case CSIStorageCapacity():
            yield from _selector_choices("nodeTopology", obj.node_topology)
        case _:
            pass


def _pod_choices(spec: PodSpec) -> Iterator[_Choice]:
    for index, toleration in enumerate(spec.tolerations):
        path = f"spec.tolerations[{index}]"
        yield f"{path}.operator", toleration.operator, _TOLERATION_OPERATORS
        yield f"{path}.effect", toleration.effect, ("", *_TAINT_EFFECTS)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        action = constraint.when_unsatisfiable
        yield f"{path}.whenUnsatisfiable", action, _UNSATISFIABLE_ACTIONS
        yield from _selector_choices(f"{path}.labelSelector", constraint.label_selector)
    if spec.affinity is None:
        return
    yield from _node_affinity_choices(spec)
    yield from _pod_affinity_choices("spec.affinity.podAffinity", spec.affinity.pod_affinity)
    yield from _pod_affinity_choices(
        "spec.affinity.podAntiAffinity", spec.affinity.pod_anti_affinity
    )


def _node_affinity_choices(spec: PodSpec) -> Iterator[_Choice]:
    affinity = spec.affinity and spec.affinity.node_affinity
    if affinity is None:
        return
    prefix = "spec.affinity.nodeAffinity"
    if affinity.required is not None:
        for index, term in enumerate(affinity.required.node_selector_terms):
            yield from _term_choices(f"{prefix}.{_REQUIRED}.nodeSelectorTerms[{index}]", term)
    for index, preferred in enumerate(affinity.preferred or ()):
        path = f"{prefix}.{_PREFERRED}[{index}].preference"
        yield from _term_choices(path, preferred.preference)


def _pod_affinity_choices(prefix: str, affinity: PodAffinity | None) -> Iterator[_Choice]:
    if affinity is None:
        return
    terms = [
        (f"{prefix}.{_REQUIRED}[{index}]", term) for index, term in enumerate(affinity.required)
    ]
    terms += [
        (f"{prefix}.{_PREFERRED}[{index}].podAffinityTerm", weighted.pod_affinity_term)
        for index, weighted in enumerate(affinity.preferred)
    ]
    for path, term in terms:
        yield from _selector_choices(f"{path}.labelSelector", term.label_selector)
        yield from _selector_choices(f"{path}.namespaceSelector", term.namespace_selector)


def _selector_choices(path: str, selector: LabelSelector | None) -> Iterator[_Choice]:
    if selector is None:
        return
    for index, requirement in enumerate(selector.match_expressions):
        yield f"{path}.matchExpressions[{index}].operator", requirement.operator, _LABEL_OPERATORS


def _term_choices(path: str, term: NodeSelectorTerm) -> Iterator[_Choice]:
    for index, requirement in enumerate(term.match_expressions):
        yield f"{path}.matchExpressions[{index}].operator", requirement.operator, _NODE_OPERATORS
    for index, requirement in enumerate(term.match_fields):
        yield f"{path}.matchFields[{index}].operator", requirement.operator, _FIELD_OPERATORS


def _resource_lists(obj: ApiObject) -> Iterator[tuple[str, ResourceList | None]]:
    match obj:
        case Pod():
            for field, containers in (
                ("containers", obj.spec.containers),
                ("initContainers", obj.spec.init_containers),
            ):
                for index, container in enumerate(containers):
                    path = f"spec.{field}[{index}].resources.requests"
                    yield path, container.resources.requests
            yield "spec.overhead", obj.spec.overhead
            if obj.spec.resources is not None:
                yield "spec.resources.requests", obj.spec.resources.requests
        case Node():
            yield "status.allocatable", obj.status.allocatable
            yield "status.capacity", obj.status.capacity
        case _:
            pass
