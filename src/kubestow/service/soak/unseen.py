"""Pods whose values no object had before: what is kept by any of them has to be dropped again.

Each pod has new labels, images and amounts, and a few traits. A trait puts new values into one part
of the pod, or adds an object that only this pod uses. Nearly all pods can be placed in spite of it.
"""

from collections.abc import Callable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.service.soak.nodes import CHIP, DEVICE_CLASS, LATE_CLASS, SEAT, rack_key
from kubestow.service.soak.pod_draft import HOSTNAME, ZONE, PodDraft

TRAITS_PER_POD: Final = 2
HOPELESS_SHARE: Final = 0.05
# Priorities of pods that compete for seats.
PRIORITIES: Final = 1_000_000
_STORAGE: Final = {"resources": {"requests": {"storage": "1Gi"}}}


def fill_unseen(draft: PodDraft) -> None:
    _fill_basics(draft)
    for index in draft.rng.choice(len(TRAITS), TRAITS_PER_POD, replace=False).tolist():
        TRAITS[index](draft)
    if draft.rng.random() < HOPELESS_SHARE:
        draft.is_hopeless = True
        HINDRANCES[int(draft.rng.integers(len(HINDRANCES)))](draft)


def _fill_basics(draft: PodDraft) -> None:
    draft.labels |= {"word": draft.word, f"label-{draft.word}": draft.word}
    draft.container |= {"name": f"c-{draft.word}", "image": f"registry.example/{draft.word}:v1"}
    # Amounts that no other pod spells like this.
    draft.requests |= {
        "cpu": f"0.1{draft.number:08}",
        "memory": str((64 << 20) + draft.number),
        "ephemeral-storage": str((1 << 20) + draft.number),
    }


# --- Nodes: affinity, tolerations, amounts, ports ---


def _node_affinity(draft: PodDraft) -> None:
    word = draft.word
    draft.add_affinity(
        "nodeAffinity",
        "preferred",
        {
            "weight": draft.number % 100 + 1,
            "preference": {
                "matchExpressions": [{"key": f"want-{word}", "operator": "In", "values": [word]}]
            },
        },
    )
    term: JsonObject = {
        "matchExpressions": [_absent(draft)],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [word]}],
    }
    required = {"nodeSelectorTerms": [term]}
    affinity = draft.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required


def _node_selector(draft: PodDraft) -> None:
    draft.spec["nodeSelector"] = {HOSTNAME: draft.node}


def _tolerations(draft: PodDraft) -> None:
    draft.spec["tolerations"] = [
        {"key": f"taint-{draft.word}", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "soft", "operator": "Equal", "value": draft.word, "effect": "PreferNoSchedule"},
    ]


def _chip(draft: PodDraft) -> None:
    """A resource that one node has alone."""
    draft.requests[CHIP.format(draft.node)] = "1"


def _host_ports(draft: PodDraft) -> None:
    port = draft.number % 60_000 + 1024
    draft.container["ports"] = [{"containerPort": port, "hostPort": port}]


def _more_containers(draft: PodDraft) -> None:
    requests = {"cpu": f"0.05{draft.number:08}"}
    more = {"image": f"registry.example/init-{draft.word}", "resources": {"requests": requests}}
    draft.spec["initContainers"] = [
        {"name": f"i-{draft.word}", **more},
        {"name": f"s-{draft.word}", "restartPolicy": "Always", **more},
    ]


# --- Other pods: affinity and spreading ---


def _anti_affinity(draft: PodDraft) -> None:
    expression = {"key": f"other-{draft.word}", "operator": "In", "values": [draft.word, "y"]}
    draft.add_affinity(
        "podAntiAffinity",
        "required",
        {"labelSelector": draft.selector, "topologyKey": HOSTNAME},
        {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": ZONE},
    )


def _own_affinity(draft: PodDraft) -> None:
    """Required, and met by the pod itself, as for the first pod of an application."""
    draft.add_affinity(
        "podAffinity",
        "required",
        {
            "labelSelector": draft.selector,
            "topologyKey": ZONE,
            "matchLabelKeys": [f"label-{draft.word}"],
        },
    )


def _preferred_affinity(draft: PodDraft) -> None:
    rack = rack_key(draft.node)
    namespaces = {"matchLabels": {f"team-{draft.word}": "true"}}
    terms: list[JsonObject] = [
        {
            "labelSelector": {"matchLabels": {f"near-{draft.word}": "true"}},
            "topologyKey": rack,
            "namespaceSelector": namespaces,
        },
        {
            "labelSelector": draft.selector,
            "topologyKey": f"topology-{draft.word}",
            "namespaces": [f"namespace-{draft.word}"],
        },
    ]
    weighted = [{"weight": draft.number % 100 + 1, "podAffinityTerm": term} for term in terms]
    draft.add_affinity("podAffinity", "preferred", *weighted)
    draft.add_affinity("podAntiAffinity", "preferred", weighted[1])


def _hard_spread(draft: PodDraft) -> None:
    draft.spec["topologySpreadConstraints"] = [
        {
            "maxSkew": draft.number % 5 + 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": draft.selector,
            "matchLabelKeys": [f"label-{draft.word}"],
            "nodeTaintsPolicy": "Honor",
        }
    ]


def _soft_spread(draft: PodDraft) -> None:
    expression = {"key": f"spread-{draft.word}", "operator": "Exists"}
    keys = rack_key(draft.node), f"topology-{draft.word}"
    draft.spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [expression]},
        }
        for key in keys
    ]


# --- Volumes ---


def _add_volume_claim(draft: PodDraft, class_name: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": class_name, **_STORAGE}
    name = draft.add_companion("v1", "PersistentVolumeClaim", spec=spec)
    draft.add_volume(persistentVolumeClaim={"claimName": name})


def _late_claim(draft: PodDraft) -> None:
    """A volume is made when the pod has a node."""
    _add_volume_claim(draft, LATE_CLASS)


def _new_class(draft: PodDraft) -> None:
    """A class of its own, with what its driver can still provide."""
    driver = f"{draft.word}.csi.example"
    class_name = draft.add_companion(
        "storage.k8s.io/v1",
        "StorageClass",
        is_namespaced=False,
        provisioner=driver,
        volumeBindingMode="WaitForFirstConsumer",
    )
    draft.add_companion(
        "storage.k8s.io/v1",
        "CSIDriver",
        name=driver,
        is_namespaced=False,
        spec={"storageCapacity": True},
    )
    draft.add_companion(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        storageClassName=class_name,
        nodeTopology={"matchExpressions": [_absent(draft)]},
        capacity="10Gi",
    )
    _add_volume_claim(draft, class_name)


def _static_volume(draft: PodDraft) -> None:
    """A volume that waits for a claim of its class."""
    class_name = draft.add_companion(
        "storage.k8s.io/v1",
        "StorageClass",
        is_namespaced=False,
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    )
    terms = [{"matchExpressions": [_absent(draft)]}]
    draft.add_companion(
        "v1",
        "PersistentVolume",
        is_namespaced=False,
        spec={
            "capacity": {"storage": str((1 << 30) + draft.number)},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "local": {"path": f"/disks/{draft.word}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        status={"phase": "Available"},
    )
    _add_volume_claim(draft, class_name)


def _absent(draft: PodDraft) -> JsonObject:
    """A requirement that all nodes meet."""
    return {"key": f"absent-{draft.word}", "operator": "DoesNotExist"}


def _ephemeral_claim(draft: PodDraft) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": LATE_CLASS, **_STORAGE}
    draft.add_volume(ephemeral={"volumeClaimTemplate": {"spec": spec}})


def _disks(draft: PodDraft) -> None:
    draft.add_volume(gcePersistentDisk={"pdName": f"disk-{draft.word}"})
    draft.add_volume(csi={"driver": f"{draft.word}.csi.example"})
    draft.add_volume(configMap={"name": f"settings-{draft.word}"})


# --- Devices ---


def _own_devices(draft: PodDraft) -> JsonObject:
    """An expression of its own, which all devices match."""
    return {"cel": {"expression": f'device.driver != "{draft.word}.example"'}}


def _device_request(draft: PodDraft) -> JsonObject:
    exactly = {"deviceClassName": DEVICE_CLASS, "selectors": [_own_devices(draft)]}
    return {"devices": {"requests": [{"name": f"request-{draft.word}", "exactly": exactly}]}}


def _device_claim(draft: PodDraft) -> None:
    name = draft.add_companion("resource.k8s.io/v1", "ResourceClaim", spec=_device_request(draft))
    draft.add_claim(resourceClaimName=name)


def _device_template(draft: PodDraft) -> None:
    template = {"spec": _device_request(draft)}
    name = draft.add_companion("resource.k8s.io/v1", "ResourceClaimTemplate", spec=template)
    draft.add_claim(resourceClaimTemplateName=name)


def _device_resource(draft: PodDraft) -> None:
    """Devices of a class of its own, requested as a resource."""
    resource = f"{draft.word}.example.com/device"
    spec = {"selectors": [_own_devices(draft)], "extendedResourceName": resource}
    draft.add_companion("resource.k8s.io/v1", "DeviceClass", is_namespaced=False, spec=spec)
    draft.requests[resource] = "1"


# --- Owners, services, budgets, priorities ---


def _owner(draft: PodDraft) -> None:
    container = {"name": "main", "image": draft.word}
    template = {"metadata": {"labels": draft.labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": draft.selector, "template": template}
    name = draft.add_companion("apps/v1", "ReplicaSet", spec=spec)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    draft.owners.append({**owner, "name": name, "uid": f"uid-{draft.word}"})


def _service(draft: PodDraft) -> None:
    spec = {"selector": {"word": draft.word}, "ports": [{"port": 80}]}
    draft.add_companion("v1", "Service", spec=spec)


def _budget(draft: PodDraft) -> None:
    spec = {"minAvailable": 1, "selector": draft.selector}
    draft.add_companion("policy/v1", "PodDisruptionBudget", spec=spec)


def _seat(draft: PodDraft) -> None:
    """There are fewer seats than pods for them: the more important one evicts another."""
    draft.requests[SEAT] = "1"
    draft.spec["priority"] = int(draft.rng.integers(PRIORITIES))


TRAITS: Final[tuple[Callable[[PodDraft], None], ...]] = (
    _node_affinity,
    _node_selector,
    _tolerations,
    _chip,
    _host_ports,
    _more_containers,
    _anti_affinity,
    _own_affinity,
    _preferred_affinity,
    _hard_spread,
    _soft_spread,
    _late_claim,
    _new_class,
    _static_volume,
    _ephemeral_claim,
    _disks,
    _device_claim,
    _device_template,
    _device_resource,
    _owner,
    _service,
    _budget,
    _seat,
)


# --- What no pod can be placed with ---


def _missing_label(draft: PodDraft) -> None:
    draft.spec["nodeSelector"] = {f"missing-{draft.word}": "true"}


def _missing_resource(draft: PodDraft) -> None:
    draft.requests[f"{draft.word}.example.com/missing"] = "1"


def _missing_claim(draft: PodDraft) -> None:
    draft.add_volume(persistentVolumeClaim={"claimName": f"missing-{draft.word}"})


def _missing_device(draft: PodDraft) -> None:
    draft.add_claim(resourceClaimName=f"missing-{draft.word}")


def _missing_neighbour(draft: PodDraft) -> None:
    selector = {"matchLabels": {f"missing-{draft.word}": "true"}}
    term = {"labelSelector": selector, "topologyKey": ZONE}
    draft.add_affinity("podAffinity", "required", term)


def _gate(draft: PodDraft) -> None:
    draft.spec["schedulingGates"] = [{"name": f"{draft.word}.example.com/gate"}]


def _other_scheduler(draft: PodDraft) -> None:
    draft.spec["schedulerName"] = f"scheduler-{draft.word}"


HINDRANCES: Final[tuple[Callable[[PodDraft], None], ...]] = (
    _missing_label,
    _missing_resource,
    _missing_claim,
    _missing_device,
    _missing_neighbour,
    _gate,
    _other_scheduler,
)
