"""ManyShapes: 200 different pods in random order on unequal nodes (spec 10 §7).

No result for the previous pod can be reused unchanged for the next one. The random numbers are
fixed to the bit, so that every measurement uses the same cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.workload import Service
from kubestow.simulator.bench.templates import HOSTNAME, ZONE, placed

SHAPE_COUNT: Final = 200
PODS_PER_NODE: Final = 110
_MASK: Final = 2**64 - 1
_CPU_MILLI: Final = (50, 100, 200, 250, 500, 750, 1000, 1500, 2000, 4000)
_MEMORY_MI: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
_TOLERATIONS: Final = [
    {
        "key": f"node.kubernetes.io/{what}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for what in ("not-ready", "unreachable")
]


class SplitMix64:
    """The random generator of the workload's definition."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, bound: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
        return (z ^ (z >> 31)) % bound


class NodeDraw(msgspec.Struct, frozen=True):
    name: str
    cores: int
    memory_gi: int
    disk: str
    arch: str
    pool: str
    taint: str  # key=value:effect, or empty
    is_unschedulable: bool
    images: tuple[int, ...]

    def line(self) -> str:
        return "|".join(
            (
                self.name,
                str(self.cores),
                str(self.memory_gi),
                self.disk,
                self.arch,
                self.pool,
                self.taint,
                str(int(self.is_unschedulable)),
                ",".join(map(str, self.images)),
            )
        )


class ShapeDraw(msgspec.Struct, frozen=True):
    number: int
    cpu_milli: int
    memory_mi: int
    tier: int
    image: int
    selector: str  # key=value, or empty
    node_affinity: str  # in, notin, or empty
    pool: int
    prefers_zone: bool
    zone: int
    zone_weight: int
    toleration: str  # team, dedicated, soft, or empty
    team: int
    spread: str  # zone-hard, zone-soft, both-soft, or empty
    max_skew: int
    pod_affinity: str
    affinity_tier: int
    affinity_weight: int
    has_host_port: bool

    @property
    def namespace(self) -> str:
        return f"ns-{self.number % 10}"

    def line(self) -> str:
        values = (
            self.number,
            self.namespace,
            self.cpu_milli,
            self.memory_mi,
            self.tier,
            self.image,
            self.selector,
            self.node_affinity,
            self.pool,
            int(self.prefers_zone),
            self.zone,
            self.zone_weight,
            self.toleration,
            self.team,
            self.spread,
            self.max_skew,
            self.pod_affinity,
            self.affinity_tier,
            self.affinity_weight,
            int(self.has_host_port),
        )
        return "|".join(map(str, values))


@dataclass(frozen=True, kw_only=True)
class ManyShapes:
    nodes: Sequence[Node]
    running: Sequence[Pod]
    measured: Sequence[Pod]
    services: Sequence[Service]


def many_shapes(node_count: int, init_count: int, measured_count: int) -> ManyShapes:
    nodes = draw_nodes(node_count)
    shapes = draw_shapes()
    pods = [_pod(shape) for shape in shapes]
    running = [
        placed(_named(pods[shape], f"init-{number}"), nodes[row].name)
        for number, (shape, row) in enumerate(draw_init_pods(nodes, shapes, init_count))
    ]
    measured = [
        _named(pods[shape], f"pod-{number}")
        for number, shape in enumerate(draw_measured_pods(measured_count))
    ]
    services = [_service(shape) for shape in shapes if shape.number % 4 == 0]
    made = [_node(number, draw) for number, draw in enumerate(nodes)]
    return ManyShapes(nodes=made, running=running, measured=measured, services=services)


# --- drawing: every draw is made, in this order, even where its result is not used ---


def draw_nodes(count: int) -> list[NodeDraw]:
    random = SplitMix64(1001)
    return [_draw_node(random, number) for number in range(count)]


def _draw_node(random: SplitMix64, number: int) -> NodeDraw:
    cores = _pick(random.below(100), ((30, 4), (60, 8), (80, 16), (95, 32)), 64)
    memory_gi = cores * 4 * (1 + random.below(2))
    disk = "ssd" if random.below(100) < 30 else "hdd"
    arch = "arm64" if random.below(100) < 20 else "amd64"
    pool = f"pool-{random.below(10)}"
    kind, team = random.below(100), random.below(4)
    taint = ""
    if kind < 10:
        taint = f"dedicated=team-{team}:NoSchedule"
    elif kind < 20:
        taint = "soft=yes:PreferNoSchedule"
    is_unschedulable = random.below(100) < 1
    images = tuple(dict.fromkeys(random.below(40) for _ in range(6)))
    return NodeDraw(
        f"node-{number:05d}", cores, memory_gi, disk, arch, pool, taint, is_unschedulable, images
    )


def draw_shapes() -> list[ShapeDraw]:
    random = SplitMix64(1002)
    return [_draw_shape(random, number) for number in range(SHAPE_COUNT)]


def _draw_shape(random: SplitMix64, number: int) -> ShapeDraw:
    return ShapeDraw(
        number=number,
        cpu_milli=_CPU_MILLI[random.below(10)],
        memory_mi=_MEMORY_MI[random.below(8)],
        tier=random.below(4),
        image=random.below(40),
        selector=_pick(
            random.below(100), ((10, "disk=ssd"), (20, "arch=amd64"), (25, "arch=arm64")), ""
        ),
        node_affinity=_pick(random.below(100), ((10, "in"), (20, "notin")), ""),
        pool=random.below(10),
        prefers_zone=random.below(100) < 15,
        zone=random.below(8),
        zone_weight=1 + random.below(100),
        toleration=_pick(random.below(100), ((15, "team"), (25, "dedicated"), (30, "soft")), ""),
        team=random.below(4),
        spread=_pick(
            random.below(100), ((10, "zone-hard"), (20, "zone-soft"), (30, "both-soft")), ""
        ),
        max_skew=1 + random.below(5),
        pod_affinity=_pick(
            random.below(100),
            (
                (5, "anti-required"),
                (10, "anti-preferred"),
                (15, "affinity-preferred"),
                (18, "affinity-required"),
            ),
            "",
        ),
        affinity_tier=random.below(4),
        affinity_weight=1 + random.below(100),
        has_host_port=random.below(100) < 3,
    )


def draw_init_pods(
    nodes: Sequence[NodeDraw], shapes: Sequence[ShapeDraw], count: int
) -> list[tuple[int, int]]:
    """Shape and node of each pod that runs before; one that fits on no node is left out."""
    random = SplitMix64(1003)
    free_cpu = [node.cores * 1000 for node in nodes]
    free_memory = [node.memory_gi * 1024 for node in nodes]
    free_pods = [
        0 if node.is_unschedulable or node.taint.endswith(":NoSchedule") else PODS_PER_NODE
        for node in nodes
    ]
    result: list[tuple[int, int]] = []
    for _ in range(count):
        number, start = random.below(SHAPE_COUNT), random.below(len(nodes))
        shape = shapes[number]
        for step in range(len(nodes)):
            row = (start + step) % len(nodes)
            if (
                free_pods[row]
                and free_cpu[row] >= shape.cpu_milli
                and free_memory[row] >= shape.memory_mi
            ):
                free_pods[row] -= 1
                free_cpu[row] -= shape.cpu_milli
                free_memory[row] -= shape.memory_mi
                result.append((number, row))
                break
    return result


def draw_measured_pods(count: int) -> list[int]:
    random = SplitMix64(1004)
    return [random.below(SHAPE_COUNT) for _ in range(count)]


def _pick(draw: int, limits: Sequence[tuple[int, Any]], otherwise: Any) -> Any:
    return next((value for limit, value in limits if draw < limit), otherwise)


# --- objects ---


def _node(number: int, draw: NodeDraw) -> Node:
    amounts = {
        "cpu": str(draw.cores),
        "memory": f"{draw.memory_gi}Gi",
        "pods": str(PODS_PER_NODE),
    }
    spec: JsonObject = {"unschedulable": draw.is_unschedulable}
    if draw.taint:
        pair, _, effect = draw.taint.partition(":")
        key, _, value = pair.partition("=")
        spec["taints"] = [{"key": key, "value": value, "effect": effect}]
    return convert(
        Node,
        {
            "metadata": {
                "name": draw.name,
                "uid": draw.name,
                "labels": {
                    HOSTNAME: draw.name,
                    ZONE: f"zone-{number % 8}",
                    "topology.kubernetes.io/region": f"region-{number % 8 // 4}",
                    "disk": draw.disk,
                    "arch": draw.arch,
                    "pool": draw.pool,
                },
            },
            "spec": spec,
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "images": [
                    {"names": [_image(image)], "sizeBytes": (image + 1) * 20 * 1024 * 1024}
                    for image in draw.images
                ],
            },
        },
    )


def _pod(shape: ShapeDraw) -> Pod:
    port: JsonObject = {"containerPort": 80}
    if shape.has_host_port:
        port = {"containerPort": 10000 + shape.number, "hostPort": 10000 + shape.number}
    requests = {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_mi}Mi"}
    spec: JsonObject = {
        "containers": [
            {
                "name": "main",
                "image": _image(shape.image),
                "ports": [{**port, "protocol": "TCP"}],
                "resources": {"requests": requests},
            }
        ],
        "priority": 0,
        "schedulerName": "default-scheduler",
        "tolerations": [*_TOLERATIONS, *_tolerations(shape)],
        "topologySpreadConstraints": _spread(shape),
    }
    if shape.selector:
        key, _, value = shape.selector.partition("=")
        spec["nodeSelector"] = {key: value}
    affinity = _affinity(shape)
    if affinity:
        spec["affinity"] = affinity
    labels = {"app": f"app-{shape.number}", "tier": f"tier-{shape.tier}"}
    return convert(
        Pod,
        {
            "metadata": {"namespace": shape.namespace, "labels": labels},
            "spec": spec,
            "status": {"phase": "Pending"},
        },
    )


def _tolerations(shape: ShapeDraw) -> list[JsonObject]:
    match shape.toleration:
        case "team":
            return [
                {
                    "key": "dedicated",
                    "operator": "Equal",
                    "value": f"team-{shape.team}",
                    "effect": "NoSchedule",
                }
            ]
        case "dedicated":
            return [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]
        case "soft":
            return [{"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"}]
        case _:
            return []


def _spread(shape: ShapeDraw) -> list[JsonObject]:
    selector = {"matchLabels": {"app": f"app-{shape.number}"}}

    def constraint(key: str, skew: int, when: str) -> JsonObject:
        return {
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": when,
            "labelSelector": selector,
        }

    match shape.spread:
        case "zone-hard":
            return [constraint(ZONE, shape.max_skew, "DoNotSchedule")]
        case "zone-soft":
            return [constraint(ZONE, shape.max_skew, "ScheduleAnyway")]
        case "both-soft":
            return [
                constraint(HOSTNAME, 1, "ScheduleAnyway"),
                constraint(ZONE, shape.max_skew, "ScheduleAnyway"),
            ]
        case _:
            return []


def _affinity(shape: ShapeDraw) -> JsonObject:
    affinity: JsonObject = {}
    node_affinity: JsonObject = {}
    if shape.node_affinity:
        pools = [shape.pool]
        if shape.node_affinity == "in":
            pools = [(shape.pool + step) % 10 for step in (0, 3, 6)]
        expression = {
            "key": "pool",
            "operator": "In" if shape.node_affinity == "in" else "NotIn",
            "values": [f"pool-{pool}" for pool in pools],
        }
        node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [{"matchExpressions": [expression]}]
        }
    if shape.prefers_zone:
        zone = {"key": ZONE, "operator": "In", "values": [f"zone-{shape.zone}"]}
        node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": shape.zone_weight, "preference": {"matchExpressions": [zone]}}
        ]
    if node_affinity:
        affinity["nodeAffinity"] = node_affinity
    return affinity | _pod_affinity(shape)


def _pod_affinity(shape: ShapeDraw) -> JsonObject:
    own = {"matchLabels": {"app": f"app-{shape.number}"}}
    tier = {"matchLabels": {"tier": f"tier-{shape.affinity_tier}"}}
    required, preferred = (
        f"{rule}DuringSchedulingIgnoredDuringExecution" for rule in ("required", "preferred")
    )

    def weighted(selector: JsonObject, key: str) -> list[JsonObject]:
        term = {"labelSelector": selector, "topologyKey": key}
        return [{"weight": shape.affinity_weight, "podAffinityTerm": term}]

    match shape.pod_affinity:
        case "anti-required":
            term = {"labelSelector": own, "topologyKey": HOSTNAME}
            return {"podAntiAffinity": {required: [term]}}
        case "anti-preferred":
            return {"podAntiAffinity": {preferred: weighted(own, HOSTNAME)}}
        case "affinity-preferred":
            return {"podAffinity": {preferred: weighted(tier, ZONE)}}
        case "affinity-required":
            term = {"labelSelector": own, "topologyKey": ZONE}
            return {"podAffinity": {required: [term]}}
        case _:
            return {}


def _service(shape: ShapeDraw) -> Service:
    return convert(
        Service,
        {
            "metadata": {"name": f"app-{shape.number}", "namespace": shape.namespace},
            "spec": {"selector": {"app": f"app-{shape.number}"}},
        },
    )


def _named(pod: Pod, name: str) -> Pod:
    metadata = ObjectMeta(
        name=name,
        namespace=pod.metadata.namespace,
        uid=f"{pod.metadata.namespace}/{name}",
        labels=pod.metadata.labels,
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def _image(number: int) -> str:
    return f"registry.example/app-{number}:v1"
