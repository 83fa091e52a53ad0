"""The columns of kinds that configure a cluster: roles, quotas, autoscalers, webhooks."""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.ages import UNKNOWN, duration
from kubestow.apiserver.http.cells import (
    AGE,
    NAME,
    NAME_AND_CREATION,
    NONE,
    UNSET,
    WIDE,
    count,
    integer,
    size,
    text,
)
from kubestow.apiserver.http.table import CellOf, Column, TableColumns
from kubestow.cluster.documents import as_object, objects_in, value_at

_METRICS_MAX: Final = 2  # shown of one autoscaler


def _role(binding: JsonObject, _now_ns: int) -> str:
    role = as_object(binding.get("roleRef"))
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> CellOf:
    def cell(binding: JsonObject, _now_ns: int) -> str:
        found = [one for one in objects_in(binding.get("subjects")) if one.get("kind") == kind]
        return ", ".join(
            f"{one.get('namespace', '')}/{one.get('name', '')}"
            if kind == "ServiceAccount"
            else one.get("name", "")
            for one in found
        )

    return cell


_BINDING: Final[TableColumns] = (
    NAME,
    Column("Role", _role),
    AGE,
    Column("Users", _subjects("User"), priority=WIDE),
    Column("Groups", _subjects("Group"), priority=WIDE),
    Column("ServiceAccounts", _subjects("ServiceAccount"), priority=WIDE),
)


def _quota(*, is_limit: bool) -> CellOf:
    def cell(quota: JsonObject, _now_ns: int) -> str:
        hard = as_object(value_at(quota, "status", "hard"))
        used = as_object(value_at(quota, "status", "used"))
        return ", ".join(
            f"{name}: {used.get(name, 0)}/{hard[name]}"
            for name in sorted(hard)
            if name.startswith("limits.") == is_limit
        )

    return cell


def _reference(autoscaler: JsonObject, _now_ns: int) -> str:
    target = as_object(value_at(autoscaler, "spec", "scaleTargetRef"))
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: JsonObject, _now_ns: int) -> str:
    metrics = objects_in(value_at(autoscaler, "spec", "metrics"))
    statuses = objects_in(value_at(autoscaler, "status", "currentMetrics"))
    statuses += [{}] * (len(metrics) - len(statuses))
    if (percent := value_at(autoscaler, "spec", "targetCPUUtilizationPercentage")) is not None:
        current = value_at(autoscaler, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{percent}%"
    shown = [_metric(spec, status) for spec, status in zip(metrics, statuses, strict=False)]
    if not shown:
        return NONE
    more = len(shown) - _METRICS_MAX
    joined = ", ".join(shown[:_METRICS_MAX])
    return f"{joined} + {more} more..." if more > 0 else joined


def _metric(spec: JsonObject, status: JsonObject) -> str:
    """One metric: the current value and the one that the autoscaler aims at."""
    kind: str = spec.get("type") or ""
    part = kind[:1].lower() + kind[1:]
    target = as_object(value_at(spec, part, "target"))
    current = as_object(value_at(status, part, "current"))
    name = value_at(spec, part, "name")
    prefix = f"{name}: " if part in ("resource", "containerResource") else ""
    if (average := target.get("averageValue")) is not None:
        note = "" if prefix or part == "pods" else " (avg)"
        return f"{prefix}{current.get('averageValue') or UNKNOWN}/{average}{note}"
    if prefix:
        wanted, found = target.get("averageUtilization"), current.get("averageUtilization")
        shown = "<auto>" if wanted is None else f"{wanted}%"
        return f"{prefix}{UNKNOWN if found is None else f'{found}%'}/{shown}"
    return f"{current.get('value') or UNKNOWN}/{target.get('value', '')}"


def _request_state(request: JsonObject, _now_ns: int) -> str:
    conditions = objects_in(value_at(request, "status", "conditions"))
    types = {condition.get("type") for condition in conditions}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    words += ["Failed"] if "Failed" in types else []
    words += ["Issued"] if value_at(request, "status", "certificate") else []
    return ",".join(words)


def _requested_duration(request: JsonObject, _now_ns: int) -> str:
    seconds = value_at(request, "spec", "expirationSeconds")
    return duration(seconds) if isinstance(seconds, int) else NONE


def _param_kind(policy: JsonObject, _now_ns: int) -> str:
    kind = as_object(value_at(policy, "spec", "paramKind"))
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_ref(binding: JsonObject, _now_ns: int) -> str:
    ref = as_object(value_at(binding, "spec", "paramRef"))
    return f"{ref.get('namespace') or '*'}/{ref['name']}" if ref.get("name") else UNSET


def _dangling(flow: JsonObject, _now_ns: int) -> str:
    conditions = objects_in(value_at(flow, "status", "conditions"))
    found = (one.get("status", "?") for one in conditions if one.get("type") == "Dangling")
    return next(found, "?")


def _controller(revision: JsonObject, _now_ns: int) -> str:
    for owner in objects_in(value_at(revision, "metadata", "ownerReferences")):
        if owner.get("controller"):
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            kind = str(owner.get("kind", "")).lower()
            return f"{kind}{f'.{group}' if group else ''}/{owner.get('name', '')}"
    return NONE


def _service_of(api_service: JsonObject, _now_ns: int) -> str:
    service = as_object(value_at(api_service, "spec", "service"))
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _available(api_service: JsonObject, _now_ns: int) -> str:
    conditions = objects_in(value_at(api_service, "status", "conditions"))
    for condition in conditions:
        if condition.get("type") == "Available":
            status, reason = condition.get("status", ""), condition.get("reason", "")
            return status if status == "True" else f"{status} ({reason})"
    return "Unknown"


_QUEUING: Final = ("spec", "limited", "limitResponse", "queuing")
_POLICY_BINDING: Final[TableColumns] = (
    NAME,
    Column("PolicyName", text("spec", "policyName")),
    Column("ParamRef", _param_ref),
    AGE,
)
_WEBHOOKS: Final[TableColumns] = (NAME, integer(size("webhooks"), "Webhooks"), AGE)

POLICY_COLUMNS: Final[dict[str, TableColumns]] = {
    "roles.rbac.authorization.k8s.io": NAME_AND_CREATION,
    "clusterroles.rbac.authorization.k8s.io": NAME_AND_CREATION,
    "customresourcedefinitions.apiextensions.k8s.io": NAME_AND_CREATION,
    "limitranges": NAME_AND_CREATION,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "resourcequotas": (
        NAME,
        Column("Request", _quota(is_limit=False)),
        Column("Limit", _quota(is_limit=True)),
        AGE,
    ),
    "horizontalpodautoscalers.autoscaling": (
        NAME,
        Column("Reference", _reference),
        Column("Targets", _targets),
        Column("MinPods", text("spec", "minReplicas", missing=UNSET)),
        Column("MaxPods", count("spec", "maxReplicas")),
        Column("Replicas", count("status", "currentReplicas")),
        AGE,
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        NAME,
        AGE,
        Column("SignerName", text("spec", "signerName", missing=NONE)),
        Column("Requestor", text("spec", "username")),
        Column("RequestedDuration", _requested_duration),
        Column("Condition", _request_state),
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        NAME,
        integer(size("spec", "validations"), "Validations"),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        NAME,
        integer(size("spec", "mutations"), "Mutations"),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "flowschemas.flowcontrol.apiserver.k8s.io": (
        NAME,
        Column("PriorityLevel", text("spec", "priorityLevelConfiguration", "name")),
        Column("MatchingPrecedence", count("spec", "matchingPrecedence")),
        Column("DistinguisherMethod", text("spec", "distinguisherMethod", "type", missing=NONE)),
        AGE,
        Column("MissingPL", _dangling),
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": (
        NAME,
        Column("Type", text("spec", "type")),
        Column(
            "NominalConcurrencyShares",
            text("spec", "limited", "nominalConcurrencyShares", missing=NONE),
        ),
        Column("Queues", text(*_QUEUING, "queues", missing=NONE)),
        Column("HandSize", text(*_QUEUING, "handSize", missing=NONE)),
        Column("QueueLengthLimit", text(*_QUEUING, "queueLengthLimit", missing=NONE)),
        AGE,
    ),
    "controllerrevisions.apps": (
        NAME,
        Column("Controller", _controller),
        Column("Revision", count("revision")),
        AGE,
    ),
    "apiservices.apiregistration.k8s.io": (
        NAME,
        Column("Service", _service_of),
        Column("Available", _available),
        AGE,
    ),
}
