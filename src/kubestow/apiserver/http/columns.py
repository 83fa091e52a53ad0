"""The columns of each kind, as `kubectl get` shows them.

Every kind begins with its name, and kinds without columns of their own show name and age. A cell is
a small function of the document; a missing value shows as `<none>`, `<unset>` or empty, as in any
cluster.
"""

from collections.abc import Iterable
from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http import pod_cells
from kubestow.apiserver.http.ages import UNKNOWN, age, duration
from kubestow.apiserver.http.table import CellOf, Column, TableColumns
from kubestow.clock import NANOSECONDS
from kubestow.cluster.documents import as_list, as_object, objects_in, seconds_of, value_at
from kubestow.cluster.resources import ApiResource

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_WIDE: Final = 1
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def columns_of(resource: ApiResource) -> TableColumns:
    """The columns in which objects of a resource are shown."""
    own = _COLUMNS.get(resource.qualified_name)
    return _NAME_AND_AGE if own is None else own


# --- Cells of many kinds ----------------------------------------------------------------------


def _name(document: JsonObject, _now_ns: int) -> str:
    return value_at(document, "metadata", "name") or ""


def _age(document: JsonObject, now_ns: int) -> str:
    return age(value_at(document, "metadata", "creationTimestamp"), now_ns)


_NAME: Final = Column("Name", _name, format="name")
_AGE: Final = Column("Age", _age)
_NAME_AND_AGE: Final[TableColumns] = (_NAME, _AGE)


def _text(*path: str, missing: str = "") -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> str:
        value = value_at(document, *path)
        return missing if value in (None, "") else str(value)

    return cell


def _flag(*path: str) -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> bool:
        return bool(value_at(document, *path))

    return cell


def _count(*path: str) -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> int:
        value = value_at(document, *path)
        return value if isinstance(value, int) else 0

    return cell


def _size(*path: str) -> CellOf:
    """How many entries a map or list has."""

    def cell(document: JsonObject, _now_ns: int) -> int:
        return len(value_at(document, *path) or ())

    return cell


def _number(name: str, *path: str) -> Column:
    return Column(name, _count(*path), type="integer")


def _joined(texts: Iterable[Any], missing: str = NONE) -> str:
    return ",".join(str(text) for text in texts) or missing


def _template(field: str) -> CellOf:
    """Names or images of the containers in a workload's template."""

    def cell(document: JsonObject, _now_ns: int) -> str:
        containers = objects_in(value_at(document, "spec", "template", "spec", "containers"))
        return _joined((container.get(field, "") for container in containers), "")

    return cell


def selector_text(selector: object) -> str:
    """A label selector as written in a query."""
    found = as_object(selector)
    if "matchLabels" not in found and "matchExpressions" not in found:
        parts = [f"{key}={value}" for key, value in sorted(found.items())]
        return _joined(parts)
    parts = [f"{key}={value}" for key, value in sorted(as_object(found.get("matchLabels")).items())]
    parts += [_expression_text(part) for part in objects_in(found.get("matchExpressions"))]
    return _joined(parts)


def _expression_text(expression: JsonObject) -> str:
    key, values = expression.get("key", ""), ",".join(as_list(expression.get("values")))
    match expression.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key


def _selector(document: JsonObject, _now_ns: int) -> str:
    return selector_text(value_at(document, "spec", "selector"))


_WORKLOAD_WIDE: Final[TableColumns] = (
    Column("Containers", _template("name"), priority=_WIDE),
    Column("Images", _template("image"), priority=_WIDE),
)
_SELECTOR_WIDE: Final = Column("Selector", _selector, priority=_WIDE)


# --- Nodes and namespaces ---------------------------------------------------------------------


def _node_status(node: JsonObject, _now_ns: int) -> str:
    conditions = objects_in(value_at(node, "status", "conditions"))
    ready = next((one for one in conditions if one.get("type") == "Ready"), None)
    words = [
        "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    ]
    if value_at(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: JsonObject, _now_ns: int) -> str:
    labels = as_object(value_at(node, "metadata", "labels"))
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if role := labels.get("kubernetes.io/role"):
        roles.add(role)
    return _joined(sorted(filter(None, roles)))


def _node_address(type: str) -> CellOf:
    def cell(node: JsonObject, _now_ns: int) -> str:
        for address in objects_in(value_at(node, "status", "addresses")):
            if address.get("type") == type:
                return address.get("address", NONE)
        return NONE

    return cell


def _node_info(field: str) -> CellOf:
    return _text("status", "nodeInfo", field, missing=UNKNOWN)


# --- Workloads --------------------------------------------------------------------------------


def _ready_of(ready_field: str) -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> str:
        ready = value_at(document, "status", ready_field) or 0
        return f"{ready}/{value_at(document, 'spec', 'replicas') or 0}"

    return cell


def _job_status(job: JsonObject, _now_ns: int) -> str:
    conditions = objects_in(value_at(job, "status", "conditions"))
    met = {one.get("type") for one in conditions if one.get("status") == "True"}
    if "Complete" in met:
        return "Complete"
    if "Failed" in met:
        return "Failed"
    if "deletionTimestamp" in as_object(job.get("metadata")):
        return "Terminating"
    for type in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if type in met:
            return type
    return "Running"


def _job_completions(job: JsonObject, _now_ns: int) -> str:
    succeeded = value_at(job, "status", "succeeded") or 0
    completions = value_at(job, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism: int = value_at(job, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: JsonObject, now_ns: int) -> str:
    started = seconds_of(value_at(job, "status", "startTime"))
    if started is None:
        return ""
    ended = seconds_of(value_at(job, "status", "completionTime"))
    return duration(int((now_ns / NANOSECONDS if ended is None else ended) - started))


def _template_node_selector(daemon_set: JsonObject, _now_ns: int) -> str:
    return selector_text(value_at(daemon_set, "spec", "template", "spec", "nodeSelector"))


def _is_suspended(cron_job: JsonObject, _now_ns: int) -> str:
    return str(bool(value_at(cron_job, "spec", "suspend")))


def _last_schedule(cron_job: JsonObject, now_ns: int) -> str:
    time = value_at(cron_job, "status", "lastScheduleTime")
    return age(time, now_ns) if time else NONE


# --- Services, budgets ------------------------------------------------------------------------


def _external_addresses(service: JsonObject, _now_ns: int) -> str:
    spec = as_object(service.get("spec"))
    match spec.get("type"):
        case "LoadBalancer":
            ingress = objects_in(value_at(service, "status", "loadBalancer", "ingress"))
            found = (entry.get("ip") or entry.get("hostname") for entry in ingress)
            return _joined(filter(None, found), "<pending>")
        case "ExternalName":
            return spec.get("externalName", NONE)
        case _:
            return _joined(as_list(spec.get("externalIPs")))


def _service_ports(service: JsonObject, _now_ns: int) -> str:
    ports = objects_in(value_at(service, "spec", "ports"))
    return _joined(
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}"
        f"/{port.get('protocol', 'TCP')}"
        for port in ports
    )


# --- Volumes ----------------------------------------------------------------------------------

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(*path: str) -> CellOf:
    def cell(document: JsonObject, _now_ns: int) -> str:
        modes = as_list(value_at(document, *path))
        return _joined((short for mode, short in _ACCESS_MODES.items() if mode in modes), "")

    return cell


def _claim(volume: JsonObject, _now_ns: int) -> str:
    ref = as_object(value_at(volume, "spec", "claimRef"))
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def _storage_class_name(storage_class: JsonObject, now_ns: int) -> str:
    annotations = as_object(value_at(storage_class, "metadata", "annotations"))
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return _name(storage_class, now_ns) + (" (default)" if is_default else "")


def _phase(document: JsonObject, _now_ns: int) -> str:
    if "deletionTimestamp" in as_object(document.get("metadata")):
        return "Terminating"
    return value_at(document, "status", "phase") or ""


# --- Events, devices, leases ------------------------------------------------------------------


def _last_seen(event: JsonObject, now_ns: int) -> str:
    for path in (
        ("series", "lastObservedTime"),
        ("lastTimestamp",),
        ("deprecatedLastTimestamp",),
        ("eventTime",),
        ("firstTimestamp",),
    ):
        if time := value_at(event, *path):
            return age(time, now_ns)
    return UNKNOWN


def _first_seen(event: JsonObject, now_ns: int) -> str:
    for field in ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime"):
        if event.get(field):
            return age(event[field], now_ns)
    return UNKNOWN


def _event_object(event: JsonObject, _now_ns: int) -> str:
    regarding = as_object(event.get("involvedObject") or event.get("regarding"))
    kind: str = regarding.get("kind") or ""
    return f"{kind.lower()}/{regarding.get('name', '')}"


def _event_subobject(event: JsonObject, _now_ns: int) -> str:
    regarding = as_object(event.get("involvedObject") or event.get("regarding"))
    return regarding.get("fieldPath") or ""


def _event_message(event: JsonObject, _now_ns: int) -> str:
    return (event.get("message") or event.get("note") or "").strip()


def _event_source(event: JsonObject, _now_ns: int) -> str:
    source = as_object(event.get("source") or event.get("deprecatedSource"))
    component = source.get("component") or event.get("reportingComponent")
    component = component or event.get("reportingController") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def _event_count(event: JsonObject, _now_ns: int) -> int:
    series = as_object(event.get("series"))
    return series.get("count") or event.get("count") or event.get("deprecatedCount") or 1


def _claim_state(claim: JsonObject, _now_ns: int) -> str:
    states = ["deleted"] if "deletionTimestamp" in as_object(claim.get("metadata")) else []
    is_allocated = value_at(claim, "status", "allocation") is not None
    states.append("allocated" if is_allocated else "pending")
    if value_at(claim, "status", "reservedFor"):
        states.append("reserved")
    return ",".join(states)


def _slice_node(slice: JsonObject, _now_ns: int) -> str:
    spec = as_object(slice.get("spec"))
    if node := spec.get("nodeName"):
        return node
    return "<all>" if spec.get("allNodes") else UNSET


def _minimum(field: str) -> CellOf:
    return _text("spec", field, missing="N/A")


def _integer(cell: CellOf, name: str) -> Column:
    return Column(name, cell, type="integer")


_REPLICAS: Final[TableColumns] = (
    _NAME,
    _number("Desired", "spec", "replicas"),
    _number("Current", "status", "replicas"),
    _number("Ready", "status", "readyReplicas"),
    _AGE,
    *_WORKLOAD_WIDE,
    _SELECTOR_WIDE,
)
_EVENTS: Final[TableColumns] = (
    Column("Last Seen", _last_seen),
    Column("Type", _text("type")),
    Column("Reason", _text("reason")),
    Column("Object", _event_object),
    Column("Subobject", _event_subobject, priority=_WIDE),
    Column("Source", _event_source, priority=_WIDE),
    Column("Message", _event_message),
    Column("First Seen", _first_seen, priority=_WIDE),
    Column("Count", _event_count, priority=_WIDE),
    Column("Name", _name, priority=_WIDE, format="name"),
)

_COLUMNS: Final[dict[str, TableColumns]] = {
    "pods": (
        _NAME,
        Column("Ready", pod_cells.ready),
        Column("Status", pod_cells.status),
        Column("Restarts", pod_cells.restarts),
        _AGE,
        Column("IP", _text("status", "podIP", missing=NONE), priority=_WIDE),
        Column("Node", _text("spec", "nodeName", missing=NONE), priority=_WIDE),
        Column(
            "Nominated Node", _text("status", "nominatedNodeName", missing=NONE), priority=_WIDE
        ),
        Column("Readiness Gates", pod_cells.readiness_gates, priority=_WIDE),
    ),
    "nodes": (
        _NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        _AGE,
        Column("Version", _text("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _node_address("InternalIP"), priority=_WIDE),
        Column("External-IP", _node_address("ExternalIP"), priority=_WIDE),
        Column("OS-Image", _node_info("osImage"), priority=_WIDE),
        Column("Kernel-Version", _node_info("kernelVersion"), priority=_WIDE),
        Column("Container-Runtime", _node_info("containerRuntimeVersion"), priority=_WIDE),
    ),
    "namespaces": (_NAME, Column("Status", _text("status", "phase")), _AGE),
    "deployments.apps": (
        _NAME,
        Column("Ready", _ready_of("readyReplicas")),
        _number("Up-to-date", "status", "updatedReplicas"),
        _number("Available", "status", "availableReplicas"),
        _AGE,
        *_WORKLOAD_WIDE,
        _SELECTOR_WIDE,
    ),
    "replicasets.apps": _REPLICAS,
    "replicationcontrollers": _REPLICAS,
    "statefulsets.apps": (
        _NAME,
        Column("Ready", _ready_of("readyReplicas")),
        _AGE,
        *_WORKLOAD_WIDE,
    ),
    "daemonsets.apps": (
        _NAME,
        _number("Desired", "status", "desiredNumberScheduled"),
        _number("Current", "status", "currentNumberScheduled"),
        _number("Ready", "status", "numberReady"),
        _number("Up-to-date", "status", "updatedNumberScheduled"),
        _number("Available", "status", "numberAvailable"),
        Column("Node Selector", _template_node_selector),
        _AGE,
        *_WORKLOAD_WIDE,
        _SELECTOR_WIDE,
    ),
    "jobs.batch": (
        _NAME,
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        _AGE,
        *_WORKLOAD_WIDE,
        _SELECTOR_WIDE,
    ),
    "cronjobs.batch": (
        _NAME,
        Column("Schedule", _text("spec", "schedule")),
        Column("Timezone", _text("spec", "timeZone", missing=NONE)),
        Column("Suspend", _is_suspended),
        _integer(_size("status", "active"), "Active"),
        Column("Last Schedule", _last_schedule),
        _AGE,
    ),
    "services": (
        _NAME,
        Column("Type", _text("spec", "type")),
        Column("Cluster-IP", _text("spec", "clusterIP", missing=NONE)),
        Column("External-IP", _external_addresses),
        Column("Port(s)", _service_ports),
        _AGE,
        _SELECTOR_WIDE,
    ),
    "configmaps": (_NAME, _integer(_size("data"), "Data"), _AGE),
    "secrets": (_NAME, Column("Type", _text("type")), _integer(_size("data"), "Data"), _AGE),
    "persistentvolumes": (
        _NAME,
        Column("Capacity", _text("spec", "capacity", "storage")),
        Column("Access Modes", _access_modes("spec", "accessModes")),
        Column("Reclaim Policy", _text("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", _phase),
        Column("Claim", _claim),
        Column("StorageClass", _text("spec", "storageClassName")),
        Column("VolumeAttributesClass", _text("spec", "volumeAttributesClassName", missing=UNSET)),
        Column("Reason", _text("status", "reason")),
        _AGE,
        Column("VolumeMode", _text("spec", "volumeMode", missing=UNSET), priority=_WIDE),
    ),
    "persistentvolumeclaims": (
        _NAME,
        Column("Status", _phase),
        Column("Volume", _text("spec", "volumeName")),
        Column("Capacity", _text("status", "capacity", "storage")),
        Column("Access Modes", _access_modes("status", "accessModes")),
        Column("StorageClass", _text("spec", "storageClassName")),
        Column("VolumeAttributesClass", _text("spec", "volumeAttributesClassName", missing=UNSET)),
        _AGE,
        Column("VolumeMode", _text("spec", "volumeMode", missing=UNSET), priority=_WIDE),
    ),
    "storageclasses.storage.k8s.io": (
        Column("Name", _storage_class_name, format="name"),
        Column("Provisioner", _text("provisioner")),
        Column("ReclaimPolicy", _text("reclaimPolicy")),
        Column("VolumeBindingMode", _text("volumeBindingMode")),
        Column("AllowVolumeExpansion", _flag("allowVolumeExpansion"), type="boolean"),
        _AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        _NAME,
        _number("Value", "value"),
        Column("Global-Default", _flag("globalDefault"), type="boolean"),
        _AGE,
        Column("PreemptionPolicy", _text("preemptionPolicy"), priority=_WIDE),
    ),
    "poddisruptionbudgets.policy": (
        _NAME,
        Column("Min Available", _minimum("minAvailable")),
        Column("Max Unavailable", _minimum("maxUnavailable")),
        _number("Allowed Disruptions", "status", "disruptionsAllowed"),
        _AGE,
    ),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "leases.coordination.k8s.io": (
        _NAME,
        Column("Holder", _text("spec", "holderIdentity")),
        _AGE,
    ),
    "runtimeclasses.node.k8s.io": (_NAME, Column("Handler", _text("handler")), _AGE),
    "csinodes.storage.k8s.io": (_NAME, _integer(_size("spec", "drivers"), "Drivers"), _AGE),
    "volumeattachments.storage.k8s.io": (
        _NAME,
        Column("Attacher", _text("spec", "attacher")),
        Column("PV", _text("spec", "source", "persistentVolumeName")),
        Column("Node", _text("spec", "nodeName")),
        Column("Attached", _flag("status", "attached"), type="boolean"),
        _AGE,
    ),
    "resourceclaims.resource.k8s.io": (_NAME, Column("State", _claim_state), _AGE),
    "resourceslices.resource.k8s.io": (
        _NAME,
        Column("Node", _slice_node),
        Column("Driver", _text("spec", "driver")),
        Column("Pool", _text("spec", "pool", "name")),
        _AGE,
    ),
}
