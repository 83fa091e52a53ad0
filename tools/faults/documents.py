"""The objects of a plan as manifests."""

from kubestow.api.meta import JsonObject
from kubestow.editions import edition_named
from kubestow.editions.edition import Version
from tools.faults.planned import PlannedGroup, PlannedNode, PlannedPod
from tools.faults.plugin import HOLD_ANNOTATION, PREPARE_ANNOTATION

ZONE = "topology.kubernetes.io/zone"


def node_document(name: str, shape: PlannedNode) -> JsonObject:
    amounts = {"cpu": f"{shape.cpu_milli}m", "memory": "64Gi", "pods": str(shape.pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: shape.zone, "kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def class_document(name: str, binding_mode: str) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/disks",
        "volumeBindingMode": binding_mode,
    }


def claim_document(name: str, class_name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def group_document(name: str, shape: PlannedGroup, edition: Version) -> JsonObject:
    is_oldest = edition_named(edition).pod_group_version == "v1alpha2"
    policy: JsonObject = (
        {"basic": {}} if shape.min_count is None else {"gang": {"minCount": shape.min_count}}
    )
    spec: JsonObject = {"schedulingPolicy": policy, "priority": shape.priority}
    if shape.priority:
        spec["priorityClassName"] = priority_class_name(shape.priority)
    if shape.topology_key:
        spec["schedulingConstraints"] = {"topology": [{"key": shape.topology_key}]}
    if shape.is_evicted_whole:
        spec["disruptionMode"] = "PodGroup" if is_oldest else {"all": {}}
    return {
        "apiVersion": f"scheduling.k8s.io/{edition_named(edition).pod_group_version}",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def priority_class_document(priority: int) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class_name(priority)},
        "value": priority,
    }


def priority_class_name(priority: int) -> str:
    return f"priority-{priority}"


def pod_document(name: str, shape: PlannedPod) -> JsonObject:
    selector: JsonObject = {"matchLabels": {"app": shape.app}}
    requests = {"cpu": f"{shape.cpu_milli}m", "memory": "64Mi"}
    spec: JsonObject = {
        "containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}],
        "priority": shape.priority,
        "terminationGracePeriodSeconds": shape.grace_s,
    }
    if shape.zone:
        spec["nodeSelector"] = {ZONE: shape.zone}
    if shape.is_apart:
        term: JsonObject = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        anti: JsonObject = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": anti}
    if shape.is_spread:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 2,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    if shape.is_gated:
        spec["schedulingGates"] = [{"name": "example.com/hold"}]
    if shape.group:
        spec["schedulingGroup"] = {"podGroupName": shape.group}
    if shape.volume_class:
        claim: JsonObject = {"claimName": name}
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": shape.app},
            "annotations": {
                HOLD_ANNOTATION: str(shape.hold_s),
                PREPARE_ANNOTATION: str(shape.prepare_s),
            },
        },
        "spec": spec,
    }
