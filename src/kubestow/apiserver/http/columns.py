"""The columns of each kind, as `kubectl get` shows them.

Every kind begins with its name, and kinds without columns of their own show name and age. A cell is
a small function of the document; a missing value shows as `<none>`, `<unset>` or empty, as in any
cluster.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http import pod_cells
from kubestow.apiserver.http.ages import UNKNOWN, age, duration
from kubestow.apiserver.http.cells import (
    AGE,
    NAME,
    NAME_AND_AGE,
    NAME_AND_CREATION,
    NONE,
    SELECTOR_WIDE,
    UNSET,
    WIDE,
    WORKLOAD_WIDE,
    count,
    flag,
    integer,
    joined,
    name_of,
    number,
    selector_text,
    size,
    template,
    text,
)
from kubestow.apiserver.http.custom_columns import custom_columns
from kubestow.apiserver.http.network_columns import NETWORK_COLUMNS
from kubestow.apiserver.http.policy_columns import POLICY_COLUMNS
from kubestow.apiserver.http.table import CellOf, Column, TableColumns
from kubestow.apiserver.served import ServedResource
from kubestow.clock import NANOSECONDS
from kubestow.cluster.documents import as_list, as_object, objects_in, seconds_of, value_at

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def columns_of(served: ServedResource) -> TableColumns:
    """The columns in which objects of a resource are shown."""
    if served.resource.is_custom:
        return custom_columns(served.columns)
    return _ALL_COLUMNS.get(served.resource.qualified_name, NAME_AND_AGE)


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
    return joined(sorted(filter(None, roles)))


def _node_address(type: str) -> CellOf:
    def cell(node: JsonObject, _now_ns: int) -> str:
        for address in objects_in(value_at(node, "status", "addresses")):
            if address.get("type") == type:
                return address.get("address", NONE)
        return NONE

    return cell


def _node_info(field: str) -> CellOf:
    return text("status", "nodeInfo", field, missing=UNKNOWN)


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


_JOB_TEMPLATE: Final = ("spec", "jobTemplate")


def _job_selector(cron_job: JsonObject, _now_ns: int) -> str:
    return selector_text(value_at(cron_job, *_JOB_TEMPLATE, "spec", "selector"))


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
            return joined(filter(None, found), "<pending>")
        case "ExternalName":
            return spec.get("externalName", NONE)
        case _:
            return joined(as_list(spec.get("externalIPs")))


def _service_ports(service: JsonObject, _now_ns: int) -> str:
    ports = objects_in(value_at(service, "spec", "ports"))
    return joined(
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
        return joined((short for mode, short in _ACCESS_MODES.items() if mode in modes), "")

    return cell


def _claim(volume: JsonObject, _now_ns: int) -> str:
    ref = as_object(value_at(volume, "spec", "claimRef"))
    return f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""


def _storage_class_name(storage_class: JsonObject, now_ns: int) -> str:
    annotations = as_object(value_at(storage_class, "metadata", "annotations"))
    is_default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return name_of(storage_class, now_ns) + (" (default)" if is_default else "")


def _phase(document: JsonObject, _now_ns: int) -> str:
    if "deletionTimestamp" in as_object(document.get("metadata")):
        return "Terminating"
    return value_at(document, "status", "phase") or ""


def _audiences(driver: JsonObject, _now_ns: int) -> str:
    requests = objects_in(value_at(driver, "spec", "tokenRequests"))
    return joined((request.get("audience", "") for request in requests), UNSET)


def _modes(driver: JsonObject, _now_ns: int) -> str:
    return joined(as_list(value_at(driver, "spec", "volumeLifecycleModes")))


# --- Groups of pods ---------------------------------------------------------------------------


def _pod_labels(pod_template: JsonObject, _now_ns: int) -> str:
    labels = as_object(value_at(pod_template, "template", "metadata", "labels"))
    return joined(f"{key}={value}" for key, value in sorted(labels.items()))


def _group_policy(group: JsonObject, _now_ns: int) -> str:
    return "Basic" if value_at(group, "spec", "schedulingPolicy", "gang") is None else "Gang"


def _group_workload(group: JsonObject, _now_ns: int) -> str:
    path = ("spec", "podGroupTemplateRef", "workload", "workloadName")
    return value_at(group, *path) or value_at(group, "spec", "workloadRef", "workloadName") or NONE


def _group_status(group: JsonObject, _now_ns: int) -> str:
    found = objects_in(value_at(group, "status", "conditions"))
    by_type = {condition.get("type"): condition for condition in found}
    if "DisruptionTarget" in by_type:
        return by_type["DisruptionTarget"].get("reason") or ""
    # The second is its name as of v1.37.
    scheduled = by_type.get("PodGroupScheduled") or by_type.get("PodGroupInitiallyScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


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
    return text("spec", field, missing="N/A")


_REPLICAS: Final[TableColumns] = (
    NAME,
    number("Desired", "spec", "replicas"),
    number("Current", "status", "replicas"),
    number("Ready", "status", "readyReplicas"),
    AGE,
    *WORKLOAD_WIDE,
    SELECTOR_WIDE,
)
_EVENTS: Final[TableColumns] = (
    Column("Last Seen", _last_seen),
    Column("Type", text("type")),
    Column("Reason", text("reason")),
    Column("Object", _event_object),
    Column("Subobject", _event_subobject, priority=WIDE),
    Column("Source", _event_source, priority=WIDE),
    Column("Message", _event_message),
    Column("First Seen", _first_seen, priority=WIDE),
    Column("Count", _event_count, priority=WIDE),
    Column("Name", name_of, priority=WIDE, format="name"),
)

_COLUMNS: Final[dict[str, TableColumns]] = {
    "pods": (
        NAME,
        Column("Ready", pod_cells.ready),
        Column("Status", pod_cells.status),
        Column("Restarts", pod_cells.restarts),
        AGE,
        Column("IP", text("status", "podIP", missing=NONE), priority=WIDE),
        Column("Node", text("spec", "nodeName", missing=NONE), priority=WIDE),
        Column("Nominated Node", text("status", "nominatedNodeName", missing=NONE), priority=WIDE),
        Column("Readiness Gates", pod_cells.readiness_gates, priority=WIDE),
    ),
    "nodes": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", text("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _node_address("InternalIP"), priority=WIDE),
        Column("External-IP", _node_address("ExternalIP"), priority=WIDE),
        Column("OS-Image", _node_info("osImage"), priority=WIDE),
        Column("Kernel-Version", _node_info("kernelVersion"), priority=WIDE),
        Column("Container-Runtime", _node_info("containerRuntimeVersion"), priority=WIDE),
    ),
    "namespaces": (NAME, Column("Status", text("status", "phase")), AGE),
    "deployments.apps": (
        NAME,
        Column("Ready", _ready_of("readyReplicas")),
        Column("Up-to-date", count("status", "updatedReplicas")),
        Column("Available", count("status", "availableReplicas")),
        AGE,
        *WORKLOAD_WIDE,
        SELECTOR_WIDE,
    ),
    "replicasets.apps": _REPLICAS,
    "replicationcontrollers": _REPLICAS,
    "statefulsets.apps": (
        NAME,
        Column("Ready", _ready_of("readyReplicas")),
        AGE,
        *WORKLOAD_WIDE,
    ),
    "daemonsets.apps": (
        NAME,
        number("Desired", "status", "desiredNumberScheduled"),
        number("Current", "status", "currentNumberScheduled"),
        number("Ready", "status", "numberReady"),
        number("Up-to-date", "status", "updatedNumberScheduled"),
        number("Available", "status", "numberAvailable"),
        Column("Node Selector", _template_node_selector),
        AGE,
        *WORKLOAD_WIDE,
        SELECTOR_WIDE,
    ),
    "jobs.batch": (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        AGE,
        *WORKLOAD_WIDE,
        SELECTOR_WIDE,
    ),
    "cronjobs.batch": (
        NAME,
        Column("Schedule", text("spec", "schedule")),
        Column("Timezone", text("spec", "timeZone", missing=NONE)),
        Column("Suspend", _is_suspended, type="boolean"),
        integer(size("status", "active"), "Active"),
        Column("Last Schedule", _last_schedule),
        AGE,
        Column(
            "Containers", template("name", path=(*_JOB_TEMPLATE, "spec", "template")), priority=WIDE
        ),
        Column(
            "Images", template("image", path=(*_JOB_TEMPLATE, "spec", "template")), priority=WIDE
        ),
        Column("Selector", _job_selector, priority=WIDE),
    ),
    "services": (
        NAME,
        Column("Type", text("spec", "type")),
        Column("Cluster-IP", text("spec", "clusterIP", missing=NONE)),
        Column("External-IP", _external_addresses),
        Column("Port(s)", _service_ports),
        AGE,
        SELECTOR_WIDE,
    ),
    "configmaps": (NAME, Column("Data", size("data")), AGE),
    "secrets": (NAME, Column("Type", text("type")), Column("Data", size("data")), AGE),
    "persistentvolumes": (
        NAME,
        Column("Capacity", text("spec", "capacity", "storage")),
        Column("Access Modes", _access_modes("spec", "accessModes")),
        Column("Reclaim Policy", text("spec", "persistentVolumeReclaimPolicy")),
        Column("Status", _phase),
        Column("Claim", _claim),
        Column("StorageClass", text("spec", "storageClassName")),
        Column("VolumeAttributesClass", text("spec", "volumeAttributesClassName", missing=UNSET)),
        Column("Reason", text("status", "reason")),
        AGE,
        Column("VolumeMode", text("spec", "volumeMode", missing=UNSET), priority=WIDE),
    ),
    "persistentvolumeclaims": (
        NAME,
        Column("Status", _phase),
        Column("Volume", text("spec", "volumeName")),
        Column("Capacity", text("status", "capacity", "storage")),
        Column("Access Modes", _access_modes("status", "accessModes")),
        Column("StorageClass", text("spec", "storageClassName")),
        Column("VolumeAttributesClass", text("spec", "volumeAttributesClassName", missing=UNSET)),
        AGE,
        Column("VolumeMode", text("spec", "volumeMode", missing=UNSET), priority=WIDE),
    ),
    "storageclasses.storage.k8s.io": (
        Column("Name", _storage_class_name, format="name"),
        Column("Provisioner", text("provisioner")),
        Column("ReclaimPolicy", text("reclaimPolicy")),
        Column("VolumeBindingMode", text("volumeBindingMode")),
        Column("AllowVolumeExpansion", flag("allowVolumeExpansion")),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        number("Value", "value"),
        Column("Global-Default", flag("globalDefault"), type="boolean"),
        AGE,
        Column("PreemptionPolicy", text("preemptionPolicy")),
    ),
    "poddisruptionbudgets.policy": (
        NAME,
        Column("Min Available", _minimum("minAvailable")),
        Column("Max Unavailable", _minimum("maxUnavailable")),
        number("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "leases.coordination.k8s.io": (
        NAME,
        Column("Holder", text("spec", "holderIdentity")),
        AGE,
    ),
    "runtimeclasses.node.k8s.io": (NAME, Column("Handler", text("handler")), AGE),
    "csinodes.storage.k8s.io": (NAME, integer(size("spec", "drivers"), "Drivers"), AGE),
    "volumeattachments.storage.k8s.io": (
        NAME,
        Column("Attacher", text("spec", "attacher")),
        Column("PV", text("spec", "source", "persistentVolumeName")),
        Column("Node", text("spec", "nodeName")),
        Column("Attached", flag("status", "attached"), type="boolean"),
        AGE,
    ),
    "resourceclaims.resource.k8s.io": (NAME, Column("State", _claim_state), AGE),
    "resourceslices.resource.k8s.io": (
        NAME,
        Column("Node", _slice_node),
        Column("Driver", text("spec", "driver")),
        Column("Pool", text("spec", "pool", "name")),
        AGE,
    ),
    "volumeattributesclasses.storage.k8s.io": (NAME, Column("DriverName", text("driverName")), AGE),
    "csidrivers.storage.k8s.io": (
        NAME,
        Column("AttachRequired", flag("spec", "attachRequired"), type="boolean"),
        Column("PodInfoOnMount", flag("spec", "podInfoOnMount"), type="boolean"),
        Column("StorageCapacity", flag("spec", "storageCapacity"), type="boolean"),
        Column("TokenRequests", _audiences),
        Column("RequiresRepublish", flag("spec", "requiresRepublish"), type="boolean"),
        Column("Modes", _modes),
        AGE,
    ),
    "csistoragecapacities.storage.k8s.io": NAME_AND_CREATION,
    "podtemplates": (
        NAME,
        Column("Containers", template("name", path=("template",))),
        Column("Images", template("image", path=("template",))),
        Column("Pod Labels", _pod_labels),
    ),
    "podgroups.scheduling.k8s.io": (
        NAME,
        Column("Policy", _group_policy),
        Column("Workload", _group_workload),
        Column("Status", _group_status),
        AGE,
    ),
    "componentstatuses": (
        NAME,
        Column("Status", text("conditions", "status")),
        Column("Message", text("conditions", "message")),
        Column("Error", text("conditions", "error")),
    ),
}
_ALL_COLUMNS: Final = {**_COLUMNS, **NETWORK_COLUMNS, **POLICY_COLUMNS}
