"""Which fields of a pod an update may change: few, because the rest has taken effect already.

    images of containers, activeDeadlineSeconds      may change
    tolerations                                      may be added
    schedulingGates                                  may be removed
    nodeSelector, affinity.nodeAffinity              may be narrowed while the pod has gates

A node is set by binding the pod, resources by the subresource `resize`.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.api.quantity import parse_quantity
from kubestow.cluster.documents import as_list, as_object, is_list, is_object, objects_in, value_at

_CONTAINERS: Final = ("containers", "initContainers")
_ALLOWED: Final = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
        "negative)",
    )
)
_REQUIRED: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_AFFINITY: Final = "spec.affinity.nodeAffinity"


def pod_update_errors(old: JsonObject, new: JsonObject) -> list[str]:
    """The errors of an update, in the words of an API server."""
    before, after = as_object(old.get("spec")), as_object(new.get("spec"))
    if before == after:
        return []
    return list(_errors(before, after))


def _errors(old: JsonObject, new: JsonObject) -> Iterator[str]:
    for field in _CONTAINERS:
        if len(as_list(old.get(field))) != len(as_list(new.get(field))):
            yield f"spec.{field}: Forbidden: pod updates may not add or remove containers"
            return
    yield from _toleration_errors(old, new)
    yield from _gate_errors(old, new)
    rest = {**new, **{key: old.get(key) for key in ("tolerations", "schedulingGates")}}
    rest["activeDeadlineSeconds"] = old.get("activeDeadlineSeconds")
    for field in _CONTAINERS:
        pairs = zip(objects_in(old.get(field)), objects_in(new.get(field)), strict=False)
        rest[field] = [{**after, "image": before.get("image")} for before, after in pairs]
    grace_s = old.get("terminationGracePeriodSeconds")
    if isinstance(grace_s, int) and grace_s < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = grace_s
    if old.get("schedulingGates"):
        yield from _narrowing_errors(old, new)
        rest["nodeSelector"] = old.get("nodeSelector")
        affinity = {**as_object(new.get("affinity")), "nodeAffinity": None}
        rest["affinity"] = {**affinity, "nodeAffinity": value_at(old, "affinity", "nodeAffinity")}
    if changed := _changed(_plain(old), _plain(rest)):
        yield f"spec: Forbidden: pod updates may not change fields other than {_ALLOWED}\n{changed}"


def _toleration_errors(old: JsonObject, new: JsonObject) -> Iterator[str]:
    kept = [_without_seconds(each) for each in objects_in(new.get("tolerations"))]
    if any(_without_seconds(each) not in kept for each in objects_in(old.get("tolerations"))):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield f"spec.tolerations: Forbidden: {detail}"


def _without_seconds(toleration: JsonObject) -> JsonObject:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_errors(old: JsonObject, new: JsonObject) -> Iterator[str]:
    known = [gate.get("name") for gate in objects_in(old.get("schedulingGates"))]
    for index, gate in enumerate(objects_in(new.get("schedulingGates"))):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield f"spec.schedulingGates[{index}].name: Forbidden: {detail}"


def _narrowing_errors(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """What is asked of nodes may grow while the pod has gates."""
    before, after = as_object(old.get("nodeSelector")), as_object(new.get("nodeSelector"))
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield f"spec.nodeSelector: Invalid value: {json.dumps(after)}: {detail}"
    path = ("affinity", "nodeAffinity", *_REQUIRED)
    old_terms, new_terms = objects_in(value_at(old, *path)), objects_in(value_at(new, *path))
    where = f"{_AFFINITY}.{'.'.join(_REQUIRED)}"
    if old_terms and len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield f"{where}: Invalid value: {json.dumps(new_terms)}: {detail}"
        return
    for index, (old_term, new_term) in enumerate(zip(old_terms, new_terms, strict=False)):
        if not _has_only_additions(old_term, new_term):
            detail = "only additions are allowed (no mutations or deletions)"
            yield f"{where}[{index}]: Invalid value: {json.dumps(new_term)}: {detail}"


def _has_only_additions(old: JsonObject, new: JsonObject) -> bool:
    lists = [
        (as_list(old.get(field)), as_list(new.get(field)))
        for field in ("matchExpressions", "matchFields")
    ]
    if not any(before for before, _ in lists):
        return not any(after for _, after in lists)
    return all(after[: len(before)] == before for before, after in lists)


def _plain(value: Any, path: tuple[str, ...] = ()) -> Any:
    """The value without what is empty, which is as good as absent; amounts as numbers."""
    if is_object(value):
        plain = {key: _plain(each, (*path, key)) for key, each in value.items()}
        return {key: each for key, each in plain.items() if each not in (None, "", [], {})}
    if is_list(value):
        return [_plain(each, path) for each in value]
    if path[-2:-1] and path[-2] in ("requests", "limits") and isinstance(value, str | int | float):
        try:
            return str(parse_quantity(value).rounded_up_to_milli())
        except ValueError:
            return value
    return value


def _changed(old: Any, new: Any, path: str = "spec") -> str:
    """The first place where two values differ, with both; empty if they are equal."""
    if old == new:
        return ""
    if is_object(old) and is_object(new):
        for key in sorted(old.keys() | new.keys()):
            if found := _changed(old.get(key), new.get(key), f"{path}.{key}"):
                return found
    if is_list(old) and is_list(new) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            if found := _changed(before, after, f"{path}[{index}]"):
                return found
    return f"{path}: {json.dumps(old)} to {json.dumps(new)}"


_CLAIM_STATUSES: Final = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)


def with_claim_statuses(status: JsonObject, old: JsonObject) -> JsonObject:
    """A new status of a pod with the claim statuses that it leaves out; an empty list removes them
    (v1.37, spec 12 §20.2)."""
    before = as_object(old.get("status"))
    kept = {
        name: before[name]
        for name in _CLAIM_STATUSES
        if name in before and status.get(name) is None
    }
    return {**status, **kept} if kept else status
