"""Clusters with a pod that fits nowhere, one family for each kind of reason, made from a seed.

Documents are written as people write manifests: without anything that a server fills in.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.cache.dice import Dice

from kubestow.api.meta import JsonObject

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
POD = "waiting"
DRIVER = "disk.example.com"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "20",
    zone: str = "",
    labels: JsonObject | None = None,
    taints: list[JsonObject] | None = None,
    cordoned: bool = False,
    **more: str,
) -> JsonObject:
    all_labels = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    spec: JsonObject = {}
    if taints:
        spec["taints"] = taints
    if cordoned:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels},
        **({"spec": spec} if spec else {}),
        "status": {"capacity": {"cpu": cpu, "memory": memory, "pods": pods, **more}},
    }


def pod(
    name: str,
    *,
    on: str = "",
    requests: JsonObject | None = None,
    labels: JsonObject | None = None,
    priority: int | None = None,
    containers: list[JsonObject] | None = None,
    **spec: Any,
) -> JsonObject:
    if containers is None:
        containers = [container("main", requests or {})]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "spec": {
            "containers": containers,
            **({"nodeName": on} if on else {}),
            **({} if priority is None else {"priority": priority}),
            **spec,
        },
    }


def container(name: str, requests: JsonObject, **fields: Any) -> JsonObject:
    resources = {"resources": {"requests": requests}} if requests else {}
    return {"name": name, "image": "web", **resources, **fields}


def _names(dice: Dice) -> list[str]:
    return [f"n{number}" for number in range(dice.between(1, 4))]


def requests(dice: Dice) -> list[JsonObject]:
    """More than is free; in one or two containers, an init container, or with overhead."""
    names = _names(dice)
    nodes = [node(name, cpu=f"{dice.between(2, 5)}", memory="8Gi") for name in names]
    running = [
        pod(
            f"r{number}",
            on=dice.choice(names),
            requests={"cpu": f"{dice.between(1, 9) * 100}m", "memory": "100Mi"},
            priority=dice.choice((0, 0, 5)),
        )
        for number in range(dice.between(0, 5))
    ]
    resource, amounts = dice.choice(
        (("cpu", ("6", "7500m", "9")), ("memory", ("9Gi", "12Gi", "8500Mi")))
    )
    wanted = {resource: dice.choice(amounts)}
    match dice.between(0, 3):
        case 0:
            waiting = pod(POD, requests=wanted)
        case 1:
            second = container("side", {"cpu": "300m", "memory": "64Mi"})
            waiting = pod(POD, containers=[container("main", wanted), second])
        case 2:
            first = container("setup", wanted)
            waiting = pod(POD, requests={"cpu": "100m"}, initContainers=[first])
        case _:
            limited = {"name": "main", "image": "web", "resources": {"limits": wanted}}
            waiting = pod(POD, containers=[limited])
    return [*nodes, *running, waiting]


def extended(dice: Dice) -> list[JsonObject]:
    """Devices counted as a resource, of which limits must equal requests."""
    name = "example.com/gpu"
    nodes = [node(each, **{name: f"{dice.between(0, 3)}"}) for each in _names(dice)]
    wanted = {name: f"{dice.between(4, 8)}"}
    resources = {"limits": wanted, **({"requests": wanted} if dice.between(0, 1) else {})}
    waiting = pod(POD, containers=[{"name": "main", "image": "web", "resources": resources}])
    return [*nodes, pod("r", on="n0", requests={"cpu": "1"}), waiting]


def full(dice: Dice) -> list[JsonObject]:
    """Room only where pods are deleted, some of them under a budget."""
    names = _names(dice)
    documents: list[JsonObject] = []
    for name in names:
        documents.append(node(name, cpu="4"))
        documents += [
            pod(
                f"{name}-{number}",
                on=name,
                requests={"cpu": f"{dice.choice((1000, 1200, 900))}m"},
                labels={"app": dice.choice(("a", "b"))},
                priority=dice.choice((0, 0, 10)),
            )
            for number in range(dice.between(2, 4))
        ]
    if dice.between(0, 1):
        documents.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "budget"},
                "spec": {"selector": {"matchLabels": {"app": "a"}}},
                "status": {"disruptionsAllowed": dice.between(0, 1)},
            }
        )
    waiting = pod(POD, requests={"cpu": "3500m"}, priority=0, preemptionPolicy="Never")
    return [*documents, waiting]


def pod_limit(dice: Dice) -> list[JsonObject]:
    names = _names(dice)
    running = [pod(f"r{number}", on=name) for name in names for number in range(2)]
    for each, name in zip(running, [name for name in names for _ in range(2)], strict=True):
        each["metadata"]["name"] = f"{each['metadata']['name']}-{name}"
    return [*(node(name, pods="2") for name in names), *running, pod(POD)]


def taints(dice: Dice) -> list[JsonObject]:
    documents: list[JsonObject] = []
    for name in _names(dice):
        some = [
            {"key": key, **({"value": value} if value else {}), "effect": effect}
            for key, value, effect in (
                ("dedicated", "gpu", "NoSchedule"),
                ("dedicated", "gpu", "NoExecute"),
                ("maintenance", "", "NoSchedule"),
                ("node.kubernetes.io/not-ready", "", "NoSchedule"),
            )
            if dice.between(0, 2) == 0
        ]
        some = some or [{"key": "team", "value": name, "effect": "NoSchedule"}]
        documents.append(node(name, taints=some))
    tolerations = [{"key": "maintenance", "operator": "Exists"}] if dice.between(0, 2) == 0 else []
    return [*documents, pod(POD, **({"tolerations": tolerations} if tolerations else {}))]


def cordoned(dice: Dice) -> list[JsonObject]:
    mark = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return [
        *(
            node(name, cordoned=True, taints=[mark] if dice.between(0, 1) else None)
            for name in _names(dice)
        ),
        pod(POD),
    ]


def selector(dice: Dice) -> list[JsonObject]:
    nodes = [
        node(
            name,
            labels={
                key: dice.choice(("a", "b"))
                for key in ("disk", "pool", "example.com/kind")
                if dice.between(0, 3)
            },
        )
        for name in _names(dice)
    ]
    wanted = {
        key: dice.choice(("a", "b", "c"))
        for key in ("disk", "pool", "example.com/kind")
        if dice.between(0, 1)
    }
    return [*nodes, pod(POD, nodeSelector=wanted or {"disk": "c"})]


def node_affinity(dice: Dice) -> list[JsonObject]:
    nodes = [
        node(
            name,
            labels={key: dice.choice(("1", "2", "3")) for key in ("a", "b") if dice.between(0, 4)},
        )
        for name in _names(dice)
    ]
    terms = [
        {
            "matchExpressions": [
                dice.choice(
                    (
                        {"key": "a", "operator": "In", "values": ["9"]},
                        {"key": "b", "operator": "NotIn", "values": ["1", "2", "3"]},
                        {"key": "b", "operator": "Gt", "values": ["5"]},
                        {"key": "gpu", "operator": "Exists"},
                        {"key": "a", "operator": "In", "values": ["1", "2"]},
                    )
                )
                for _ in range(dice.between(1, 2))
            ]
        }
        for _ in range(dice.between(1, 2))
    ]
    required = {"nodeSelectorTerms": terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return [*nodes, pod(POD, affinity=affinity)]


def pod_affinity(dice: Dice) -> list[JsonObject]:
    return [*_in_zones(dice), pod(POD, affinity={"podAffinity": _terms(dice, "missing")})]


def anti_affinity(dice: Dice) -> list[JsonObject]:
    return [*_in_zones(dice), pod(POD, affinity={"podAntiAffinity": _terms(dice, "web")})]


def others_anti_affinity(dice: Dice) -> list[JsonObject]:
    """Other pods reject the pod."""
    names = _names(dice)
    affinity = {"podAntiAffinity": _terms(dice, "web", count=1)}
    running = [pod(f"r-{name}", on=name, affinity=affinity) for name in names]
    return [*(node(name, zone="z") for name in names), *running, pod(POD, labels={"app": "web"})]


def _in_zones(dice: Dice) -> list[JsonObject]:
    names = _names(dice)
    nodes = [node(name, zone=dice.choice(("z1", "z2"))) for name in names]
    return [*nodes, *(pod(f"r-{name}", on=name, labels={"app": "web"}) for name in names)]


def _terms(dice: Dice, app: str, count: int = 0) -> JsonObject:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": dice.choice((HOSTNAME, ZONE)),
                "labelSelector": {"matchLabels": {"app": app}},
            }
            for _ in range(count or dice.between(1, 2))
        ]
    }


def spread(dice: Dice) -> list[JsonObject]:
    """One domain has more pods than the others, which are cordoned or lack the label."""
    nodes = [
        node("n0", zone="z0"),
        node("n1", zone="z1", cordoned=True),
        *([node("n2")] if dice.between(0, 1) else []),
    ]
    running = [
        pod(f"r{number}", on="n0", labels={"app": "web"}) for number in range(dice.between(1, 4))
    ]
    if len(nodes) == 3:
        running.append(pod("port", on="n2", labels={"app": "web"}))
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        for key in ((ZONE, HOSTNAME) if dice.between(0, 1) else (ZONE,))
    ]
    return [
        *nodes,
        *running,
        pod(POD, labels={"app": "web"}, topologySpreadConstraints=constraints),
    ]


def ports(dice: Dice) -> list[JsonObject]:
    names = _names(dice)
    port = {"containerPort": 80, "hostPort": 8080}
    running = [
        pod(f"r-{name}", on=name, containers=[container("main", {}, ports=[port])])
        for name in names
    ]
    wanted = [port, {"containerPort": 81, "hostPort": 8081}] if dice.between(0, 1) else [port]
    host = {"hostNetwork": True} if dice.between(0, 2) == 0 else {}
    if host:
        wanted = [{**each, "containerPort": each["hostPort"]} for each in wanted]
    waiting = pod(POD, containers=[container("main", {}, ports=wanted)], **host)
    return [*map(node, names), *running, waiting]


def storage_class(
    name: str, mode: str, zones: list[str] | None = None, made: bool = True
) -> JsonObject:
    expressions = [{"key": ZONE, "values": zones}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVER if made else "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
        **({"allowedTopologies": [{"matchLabelExpressions": expressions}]} if zones else {}),
    }


def claim(name: str, class_name: str, *, size: str = "10Gi", volume: str = "") -> JsonObject:
    annotations = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
            **({"volumeName": volume} if volume else {}),
        },
        **({"status": {"phase": "Bound"}} if volume else {}),
    }


def volume(
    name: str, class_name: str, zone: str, *, size: str, of: str = "", csi: bool = True
) -> JsonObject:
    match = {"key": ZONE, "operator": "In", "values": [zone]}
    source: JsonObject = (
        {"csi": {"driver": DRIVER, "volumeHandle": name}} if csi else {"hostPath": {"path": "/d"}}
    )
    reference = {"claimRef": {"namespace": "default", "name": of}} if of else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}},
            **source,
            **reference,
        },
    }


def mount(*claims: str) -> JsonObject:
    return {
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    }


def bound_volume(dice: Dice) -> list[JsonObject]:
    """The volume is in a zone where no node is, or where nodes are cordoned."""
    nodes = [node(name, zone="z1") for name in _names(dice)]
    if dice.between(0, 1):
        nodes.append(node("far", zone="z9", cordoned=True))
    return [
        *nodes,
        storage_class("slow", "Immediate"),
        *([storage_class("fast", "WaitForFirstConsumer")] if dice.between(0, 1) else []),
        volume("pv", "slow", "z9", size="10Gi", of="data"),
        claim("data", "slow", volume="pv"),
        pod(POD, **mount("data")),
    ]


def unbound_claim(dice: Dice) -> list[JsonObject]:
    """No volume can be made or found where nodes are."""
    nodes = [node(name, zone="z1") for name in _names(dice)]
    fast = storage_class("fast", "WaitForFirstConsumer")
    match dice.between(0, 2):
        case 0:
            far = storage_class("far", "WaitForFirstConsumer", ["z9"])
            return [*nodes, far, fast, claim("data", "far"), pod(POD, **mount("data"))]
        case 1:
            manual = storage_class("manual", "WaitForFirstConsumer", made=False)
            free = [
                volume(f"pv{number}", "manual", "z1", size=f"{dice.between(1, 9)}Gi", csi=False)
                for number in range(2)
            ]
            return [*nodes, manual, *free, claim("data", "manual"), pod(POD, **mount("data"))]
        case _:
            slow = storage_class("slow", "Immediate", made=False)
            return [*nodes, slow, fast, claim("data", "slow"), pod(POD, **mount("data"))]


def volume_limits(dice: Dice) -> list[JsonObject]:
    """The driver attaches no more volumes to any node."""
    documents: list[JsonObject] = [storage_class("slow", "Immediate")]
    for name in _names(dice):
        documents += [node(name, zone="z1"), csi_node(name, 1)]
        documents += [
            volume(f"pv-{name}", "slow", "z1", size="10Gi", of=f"c-{name}"),
            claim(f"c-{name}", "slow", volume=f"pv-{name}"),
            pod(f"r-{name}", on=name, **mount(f"c-{name}")),
        ]
    count = dice.between(1, 2)
    for number in range(count):
        documents += [
            volume(f"pv{number}", "slow", "z1", size="10Gi", of=f"data{number}"),
            claim(f"data{number}", "slow", volume=f"pv{number}"),
        ]
    return [*documents, pod(POD, **mount(*(f"data{number}" for number in range(count))))]


def csi_node(name: str, limit: int) -> JsonObject:
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{**driver, "allocatable": {"count": limit}}]},
    }


def devices(dice: Dice) -> list[JsonObject]:
    """More devices than any node has, or devices that no node has."""
    names = _names(dice)
    request: JsonObject = {"deviceClassName": "gpu", "count": dice.between(3, 5)}
    if dice.between(0, 1):
        request["count"] = 1
        wrong = 'device.attributes["gpu.example.com"].model == "z9"'
        request["selectors"] = [{"cel": {"expression": wrong}}]
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    from_template = dice.between(0, 1)
    kind = "ResourceClaimTemplate" if from_template else "ResourceClaim"
    source = "resourceClaimTemplateName" if from_template else "resourceClaimName"
    return [
        *map(node, names),
        device_class(),
        *(resource_slice(name, ["a1"] * dice.between(1, 2)) for name in names),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "gpus", "namespace": "default"},
            "spec": {"spec": spec} if from_template else spec,
        },
        pod(
            POD,
            containers=[
                {
                    "name": "main",
                    "image": "web",
                    "resources": {"claims": [{"name": "gpus"}]},
                }
            ],
            resourceClaims=[{"name": "gpus", source: "gpus"}],
        ),
    ]


def device_class() -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    }


def resource_slice(name: str, models: Sequence[str]) -> JsonObject:
    """The devices of a node, by their models."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}}
                for number, model in enumerate(models)
            ],
        },
    }


def gates(dice: Dice) -> list[JsonObject]:
    """Held back; without the gates it fits, or is too large as well."""
    wanted = {"cpu": dice.choice(("1", "9"))}
    names = [{"name": f"example.com/gate-{number}"} for number in range(dice.between(1, 2))]
    return [node("n0"), pod(POD, requests=wanted, schedulingGates=names)]


def provisioned(dice: Dice) -> list[JsonObject]:
    """The volume was made where no node is; it and the binding are not in the manifests."""
    return [
        *(node(name, zone="z1") for name in _names(dice)),
        storage_class("far", "Immediate", ["z9"]),
        storage_class("fast", "WaitForFirstConsumer"),
        claim("data", "far"),
        pod(POD, **mount("data")),
    ]


def mixed(dice: Dice) -> list[JsonObject]:
    """Two reasons at once, so that often no single change helps."""
    some = dice.choice((taints, cordoned, selector))(dice)
    *nodes, waiting = some
    wanted = {"cpu": dice.choice(("1", "9")), "memory": dice.choice(("1Gi", "20Gi"))}
    waiting["spec"]["containers"] = [container("main", wanted)]
    return [*nodes, waiting]


FAMILIES: dict[str, Callable[[Dice], list[JsonObject]]] = {
    family.__name__: family
    for family in (
        requests,
        extended,
        full,
        pod_limit,
        taints,
        cordoned,
        selector,
        node_affinity,
        pod_affinity,
        anti_affinity,
        others_anti_affinity,
        spread,
        ports,
        bound_volume,
        unbound_claim,
        provisioned,
        volume_limits,
        devices,
        gates,
        mixed,
    )
}
