"""ManyApps: a cluster of applications that all differ, each with few replicas, in random order.

Each application has a label, requests and an image of its own. In the full form it is also spread
over zones and hosts by its own label, every seventh keeps its replicas on different hosts, every
third of the others prefers that, and some have tolerations or a node selector.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.simulator.bench.many_shapes import SplitMix64
from kubestow.simulator.bench.templates import HOSTNAME, ZONE, node

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_ZONES: Final = 3
_NODE_SHAPES: Final = (("4", "16Gi"), ("8", "32Gi"), ("16", "64Gi"), ("32", "128Gi"))
_CPU_MILLI: Final = (10, 25, 50, 100, 150, 200, 250, 300, 500, 750, 1000)
_ORDER_SEED: Final = 7
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class ManyApps(NamedTuple):
    nodes: Sequence[Node]
    measured: Sequence[Pod]


def many_apps(node_count: int, pod_count: int, *, replicas: int, is_full: bool) -> ManyApps:
    specs = [_spec(app, is_full=is_full) for app in range(-(-pod_count // replicas))]
    return ManyApps(
        nodes=[_node(number) for number in range(node_count)],
        measured=[
            _pod(number, number // replicas, specs, replicas) for number in _shuffled(pod_count)
        ],
    )


def _shuffled(count: int) -> list[int]:
    random, numbers = SplitMix64(_ORDER_SEED), list(range(count))
    for last in range(count - 1, 0, -1):
        other = random.below(last + 1)
        numbers[last], numbers[other] = numbers[other], numbers[last]
    return numbers


def _node(number: int) -> Node:
    cpu, memory = _NODE_SHAPES[number % len(_NODE_SHAPES)]
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    return node(
        f"node-{number}",
        labels={ZONE: f"zone{number % _ZONES}", INSTANCE_TYPE: f"m{cpu}"},
        capacity={"cpu": cpu, "memory": memory},
        taints=[taint] if number % 10 == 9 else None,
    )


def _pod(number: int, app: int, specs: Sequence[JsonObject], replicas: int) -> Pod:
    name = f"pod-{number}"
    labels = {
        "app": f"app-{app}",
        "pod-template-hash": f"{SplitMix64(app).below(1 << 30):x}",
        "apps.kubernetes.io/pod-index": str(number % replicas),
    }
    metadata = {"name": name, "namespace": "measured", "uid": f"measured/{name}", "labels": labels}
    status = {"phase": "Pending"}
    return convert(Pod, {"metadata": metadata, "spec": specs[app], "status": status})


def _spec(app: int, *, is_full: bool) -> JsonObject:
    random = SplitMix64(app)
    cpu_milli, memory_mi = _CPU_MILLI[random.below(len(_CPU_MILLI))], 32 + random.below(992)
    zone_rule = ("ScheduleAnyway", "DoNotSchedule")[random.below(2)]
    instance_type = ("m8", "m16")[random.below(2)]
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mi}Mi"}
    container = {
        "name": "c",
        "image": f"registry.example/app-{app}:1",
        "resources": {"requests": requests},
    }
    spec: JsonObject = {
        "containers": [container],
        "priority": 0,
        "schedulerName": "default-scheduler",
    }
    if not is_full:
        return spec
    own = {"matchLabels": {"app": f"app-{app}"}}
    spec["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": rule, "labelSelector": own}
        for key, rule in ((ZONE, zone_rule), (HOSTNAME, "ScheduleAnyway"))
    ]
    term = {"topologyKey": HOSTNAME, "labelSelector": own}
    if app % 7 == 0:
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [term]}}
    elif app % 3 == 0:
        weighted = {"weight": 100, "podAffinityTerm": term}
        spec["affinity"] = {"podAntiAffinity": {_PREFERRED: [weighted]}}
    if app % 11 == 0:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if app % 13 == 0:
        spec["nodeSelector"] = {INSTANCE_TYPE: instance_type}
    return spec
