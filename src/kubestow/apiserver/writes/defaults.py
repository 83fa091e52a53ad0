"""Defaults that an API server fills in on every write (spec 01 §0.1, 1 to 4).

Each step is a pure function from document to document that does not change given values, so that
applying all of them twice is the same as applying them once. A document that lacks nothing is
returned as the same dict. Invalid values are kept: decoding reports them.

Not here: changes made only at creation (`admission`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from kubestow.api.device import EXACT_COUNT
from kubestow.api.meta import JsonObject, ResourceList
from kubestow.api.pod import DEFAULT_SCHEDULER_NAME
from kubestow.api.quantity import ZERO, parse_quantity
from kubestow.api.requests import is_pod_level_name
from kubestow.api.resources import CPU, MEMORY, is_hugepage
from kubestow.apiserver.custom.rules import default_definition
from kubestow.apiserver.writes.object_defaults import OBJECT_DEFAULTS
from kubestow.apiserver.writes.workloads import (
    default_daemon_set,
    default_deployment,
    default_job,
    default_service,
    default_stateful_set,
)
from kubestow.cluster.documents import (
    Path,
    as_object,
    filled_at,
    is_object,
    objects_in,
    replaced_at,
    value_at,
)

_Step = Callable[[JsonObject], JsonObject]

GRACE_PERIOD_S: Final = 30
POD_LEVEL_GATE: Final = "PodLevelResourcesFixDefaulting"


def apply_defaults(document: JsonObject) -> JsonObject:
    """The document with the defaults of its kind."""
    for step in _STEPS.get(document.get("kind", ""), ()):
        document = step(document)
    return document


# --- Quantities -------------------------------------------------------------------------------


def round_resource_list(quantities: JsonObject) -> JsonObject:
    """Each quantity rounded up to a multiple of one thousandth, and written as text (step 1)."""
    rounded = {name: _rounded(quantity) for name, quantity in quantities.items()}
    return quantities if rounded == quantities else rounded


def _rounded(quantity: Any) -> Any:  # text or number; anything else is left to the decoder
    if isinstance(quantity, str):
        return _rounded_text(quantity)
    if isinstance(quantity, int | float) and not isinstance(quantity, bool):
        return str(parse_quantity(quantity).rounded_up_to_milli())
    return quantity


@lru_cache(4096)  # clusters use few distinct quantities
def _rounded_text(text: str) -> str:
    try:
        exact = parse_quantity(text.strip())
    except ValueError:
        return text
    rounded = exact.rounded_up_to_milli()
    return text if rounded is exact else str(rounded)


def _round_at(*path: str) -> _Step:
    def step(document: JsonObject) -> JsonObject:
        quantities = as_object(value_at(document, *path))
        if not quantities:
            return document
        rounded = round_resource_list(quantities)
        return document if rounded is quantities else replaced_at(document, path, rounded)

    return step


_round_requests: Final = _round_at("resources", "requests")
_round_limits: Final = _round_at("resources", "limits")


# --- Pods -------------------------------------------------------------------------------------


def default_containers(document: JsonObject) -> JsonObject:
    """Steps 1, 2 and 4 for every container and init container."""
    on_host = bool(value_at(document, "spec", "hostNetwork"))
    for field in ("containers", "initContainers"):
        containers = objects_in(value_at(document, "spec", field))
        changed = [_defaulted_container(container, on_host=on_host) for container in containers]
        if any(new is not old for new, old in zip(changed, containers, strict=True)):
            document = replaced_at(document, ("spec", field), changed)
    return document


def _defaulted_container(container: JsonObject, *, on_host: bool) -> JsonObject:
    if container.get("resources"):
        container = request_the_limits(round_container_quantities(container))
    return default_ports(container, on_host=on_host) if container.get("ports") else container


def round_container_quantities(container: JsonObject) -> JsonObject:
    return _round_limits(_round_requests(container))


def request_the_limits(container: JsonObject) -> JsonObject:
    """A limit without a request is a request too (step 2)."""
    limits = as_object(value_at(container, "resources", "limits"))
    if not limits:
        return container
    requests = as_object(value_at(container, "resources", "requests"))
    missing = {name: limit for name, limit in limits.items() if name not in requests}
    if not missing:
        return container
    return replaced_at(container, ("resources", "requests"), {**requests, **missing})


def default_ports(container: JsonObject, *, on_host: bool) -> JsonObject:
    """On the host's network a container port is a host port; the protocol is TCP (step 4)."""
    ports = objects_in(container.get("ports"))
    changed = [_defaulted_port(port, on_host=on_host) for port in ports]
    return container if changed == ports else {**container, "ports": changed}


def _defaulted_port(port: JsonObject, *, on_host: bool) -> JsonObject:
    if not port.get("protocol"):
        port = {**port, "protocol": "TCP"}
    if on_host and not port.get("hostPort") and port.get("containerPort"):
        port = {**port, "hostPort": port["containerPort"]}
    return port


def default_pod_level_resources(document: JsonObject) -> JsonObject:
    """Pod-level resources that default from the containers (step 3)."""
    spec = as_object(document.get("spec"))
    resources = as_object(spec.get("resources"))
    requests, limits = as_object(resources.get("requests")), as_object(resources.get("limits"))
    if not requests and not limits:
        return document
    new_limits = limits | {
        name: str(total)
        for name, total in _aggregated(spec, "limits").items()
        if is_hugepage(name) and name not in limits and name not in requests
    }
    new_requests = _pod_level_requests(spec, requests, new_limits) if new_limits else requests
    if new_requests != requests:
        document = replaced_at(document, ("spec", "resources", "requests"), new_requests)
    if new_limits != limits:
        document = replaced_at(document, ("spec", "resources", "limits"), new_limits)
    return document


def complete_pod_level_resources(document: JsonObject) -> JsonObject:
    """Pod-level requests and limits as v1.37 completes them (spec 12 §20.2).

    Requests of cpu and memory come from the containers also without a pod limit; a limit that is
    missing, where every container has one.
    """
    spec = as_object(document.get("spec"))
    resources = as_object(spec.get("resources"))
    requests, limits = as_object(resources.get("requests")), as_object(resources.get("limits"))
    if not requests and not limits:
        return document
    requests = _pod_level_requests(spec, requests, limits)
    containers = [*objects_in(spec.get("containers")), *objects_in(spec.get("initContainers"))]
    totals = _aggregated(spec, "limits")
    new_limits = dict(limits)
    for name, text in requests.items():
        is_limited = all(
            name in as_object(value_at(one, "resources", "limits")) for one in containers
        )
        if name in limits or not is_limited or name not in totals or not is_pod_level_name(name):
            continue
        new_limits[name] = str(max(totals[name], parse_quantity(text)))
    document = replaced_at(document, ("spec", "resources", "requests"), requests)
    if new_limits != limits:
        document = replaced_at(document, ("spec", "resources", "limits"), new_limits)
    return document


def _pod_level_requests(spec: JsonObject, requests: JsonObject, limits: JsonObject) -> JsonObject:
    from_containers = {
        name: str(total)
        for name, total in _aggregated(spec, "requests").items()
        if name in (CPU, MEMORY)
    }
    from_limits = {
        name: limit for name, limit in limits.items() if name in (CPU, MEMORY) or is_hugepage(name)
    }
    return from_limits | from_containers | requests


def _aggregated(spec: JsonObject, field: str) -> ResourceList:
    """The containers' totals (spec 01 §3.1, steps 1 to 3) of their requests or limits."""
    total: ResourceList = {}
    for container in objects_in(spec.get("containers")):
        total = _sum(total, _quantities(container, field))
    sidecars: ResourceList = {}
    highest: ResourceList = {}
    for container in objects_in(spec.get("initContainers")):
        own = _quantities(container, field)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum(total, own), _sum(sidecars, own)
            highest = _maximum(highest, sidecars)
        else:
            highest = _maximum(highest, _sum(own, sidecars))
    return _maximum(total, highest)


def _quantities(container: JsonObject, field: str) -> ResourceList:
    found: ResourceList = {}
    for name, text in as_object(value_at(container, "resources", field)).items():
        try:
            found[name] = parse_quantity(text.strip() if isinstance(text, str) else text)
        except ValueError:
            continue  # decoding reports it, with the field's name
    return found


def _sum(left: ResourceList, right: ResourceList) -> ResourceList:
    return left | {name: left.get(name, ZERO) + quantity for name, quantity in right.items()}


def _maximum(left: ResourceList, right: ResourceList) -> ResourceList:
    return left | {name: max(left.get(name, ZERO), quantity) for name, quantity in right.items()}


def default_pod_fields(document: JsonObject) -> JsonObject:
    spec = as_object(document.get("spec"))
    missing: JsonObject = {}
    if not spec.get("schedulerName"):
        missing["schedulerName"] = DEFAULT_SCHEDULER_NAME
    if not spec.get("restartPolicy"):
        missing["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        missing["terminationGracePeriodSeconds"] = GRACE_PERIOD_S
    if spec.get("securityContext") is None:
        missing["securityContext"] = {}  # `kubectl debug` reads it without looking
    return {**document, "spec": {**spec, **missing}} if missing else document


# --- Nodes and the rest -----------------------------------------------------------------------


def default_allocatable(document: JsonObject) -> JsonObject:
    """A node without `allocatable` offers its whole capacity."""
    capacity = value_at(document, "status", "capacity")
    return document if not capacity else filled_at(document, ("status", "allocatable"), capacity)


def label_namespace(document: JsonObject) -> JsonObject:
    """Every namespace has its name as a label, so that selectors can name namespaces."""
    name = value_at(document, "metadata", "name")
    path = ("metadata", "labels", "kubernetes.io/metadata.name")
    return document if not name else filled_at(document, path, name)


def _fill(*path: str, value: object) -> _Step:
    def step(document: JsonObject) -> JsonObject:
        return filled_at(document, path, value)

    return step


def _fill_empty(*path: str, value: str) -> _Step:
    """Like `_fill`, for fields where the empty text means "not given"."""

    def step(document: JsonObject) -> JsonObject:
        return document if value_at(document, *path) else replaced_at(document, path, value)

    return step


def _rounded_parts(*paths: Path) -> tuple[_Step, ...]:
    return tuple(_round_at(*path) for path in paths)


# --- resource claims and their templates (spec 08 B2) ---


def default_claim(document: JsonObject) -> JsonObject:
    return _with_requests(document, "spec", "devices", "requests")


def default_claim_template(document: JsonObject) -> JsonObject:
    return _with_requests(document, "spec", "spec", "devices", "requests")


def _with_requests(document: JsonObject, *path: str) -> JsonObject:
    requests = objects_in(value_at(document, *path))
    changed = [_defaulted_request(request) for request in requests]
    return document if changed == requests else replaced_at(document, path, changed)


def _defaulted_request(request: JsonObject) -> JsonObject:
    if is_object(request.get("exactly")):
        request = {**request, "exactly": _defaulted_details(as_object(request["exactly"]))}
    if request.get("firstAvailable"):
        alternatives = [_defaulted_details(each) for each in objects_in(request["firstAvailable"])]
        request = {**request, "firstAvailable": alternatives}
    return request


def _defaulted_details(details: JsonObject) -> JsonObject:
    if not details.get("allocationMode"):
        details = {**details, "allocationMode": EXACT_COUNT}
    if details["allocationMode"] == EXACT_COUNT and not details.get("count"):
        details = {**details, "count": 1}
    if details.get("tolerations"):
        tolerations = [
            each if each.get("operator") else {**each, "operator": "Equal"}
            for each in objects_in(details["tolerations"])
        ]
        details = {**details, "tolerations": tolerations}
    return details


_STEPS: Final[dict[str, tuple[_Step, ...]]] = {
    "Pod": (
        *_rounded_parts(
            ("spec", "overhead"),
            ("spec", "resources", "requests"),
            ("spec", "resources", "limits"),
        ),
        default_containers,
        default_pod_level_resources,
        default_pod_fields,
    ),
    "Node": (
        *_rounded_parts(("status", "capacity"), ("status", "allocatable")),
        default_allocatable,
    ),
    "Namespace": (label_namespace, _fill_empty("status", "phase", value="Active")),
    "PersistentVolume": (
        *_rounded_parts(("spec", "capacity")),
        _fill_empty("spec", "persistentVolumeReclaimPolicy", value="Retain"),
        _fill("spec", "volumeMode", value="Filesystem"),
        _fill_empty("status", "phase", value="Pending"),
    ),
    "PersistentVolumeClaim": (
        *_rounded_parts(("spec", "resources", "requests"), ("status", "capacity")),
        _fill("spec", "volumeMode", value="Filesystem"),
        _fill_empty("status", "phase", value="Pending"),
    ),
    "StorageClass": (
        _fill("reclaimPolicy", value="Delete"),
        _fill("volumeBindingMode", value="Immediate"),
    ),
    "CSIDriver": (
        _fill("spec", "attachRequired", value=True),
        _fill("spec", "storageCapacity", value=False),
    ),
    "PriorityClass": (_fill("preemptionPolicy", value="PreemptLowerPriority"),),
    "ReplicaSet": (_fill("spec", "replicas", value=1),),
    "StatefulSet": (default_stateful_set,),
    "DaemonSet": (default_daemon_set,),
    "ReplicationController": (_fill("spec", "replicas", value=1),),
    "Deployment": (default_deployment,),
    "Job": (default_job,),
    "Service": (default_service,),
    "ResourceClaim": (default_claim,),
    "ResourceClaimTemplate": (default_claim_template,),
    "CustomResourceDefinition": (default_definition,),
    **OBJECT_DEFAULTS,
}
