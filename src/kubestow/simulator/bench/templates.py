"""Nodes and pods of the benchmark suite (spec 10 §3)."""

from typing import Any, Final

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod, assign
from kubestow.api.topology import HOSTNAME_LABEL as HOSTNAME
from kubestow.api.topology import ZONE_LABEL as ZONE

# The API server adds these to every pod.
_TOLERATIONS: Final = [
    {
        "key": f"node.kubernetes.io/{what}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for what in ("not-ready", "unreachable")
]
_STD: Final = {"cpu": "100m", "memory": "500Mi"}


def node(
    name: str,
    *,
    labels: JsonObject | None = None,
    capacity: JsonObject | None = None,
    taints: list[JsonObject] | None = None,
) -> Node:
    amounts = {"cpu": "4", "memory": "32Gi", "pods": "110", **(capacity or {})}
    return convert(
        Node,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {HOSTNAME: name, **(labels or {})}},
            "spec": {"taints": taints or []},
            "status": {"allocatable": amounts, "capacity": amounts},
        },
    )


class Template:
    """A template of many pods, which share everything but their names."""

    def __init__(
        self,
        requests: JsonObject | None = None,
        *,
        labels: JsonObject | None = None,
        spec: JsonObject | None = None,
    ) -> None:
        container = {
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10",
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"requests": requests or {}, "limits": requests or {}},
        }
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": labels or {}},
            "spec": {
                "containers": [container],
                "schedulerName": "default-scheduler",
                "tolerations": _TOLERATIONS,
                **(spec or {}),
            },
            "status": {"phase": "Pending"},
        }
        self._pod = convert(Pod, document)

    def make(self, name: str, namespace: str, *, volumes: tuple[Any, ...] = ()) -> Pod:
        metadata = ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"{namespace}/{name}",
            labels=self._pod.metadata.labels,
        )
        pod = msgspec.structs.replace(self._pod, metadata=metadata)
        if volumes:
            spec = msgspec.structs.replace(pod.spec, volumes=volumes)
            pod = msgspec.structs.replace(pod, spec=spec)
        return pod


def placed(pod: Pod, node_name: str) -> Pod:
    """The pod as it runs on a node."""
    running = msgspec.structs.replace(pod.status, phase="Running")
    return msgspec.structs.replace(assign(pod, node_name), status=running)


def _pod_affinity(
    kind: str, rule: str, color: str, key: str, *, by_selector: bool = False
) -> JsonObject:
    term: JsonObject = {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}
    if by_selector:
        term["namespaceSelector"] = {"matchLabels": {"team": "devops"}}
    else:
        term["namespaces"] = ["sched-0", "sched-1"]
    entry = {"weight": 1, "podAffinityTerm": term} if rule == "preferred" else term
    return {"affinity": {kind: {f"{rule}DuringSchedulingIgnoredDuringExecution": [entry]}}}


def _colored(color: str, spec: JsonObject) -> Template:
    return Template(_STD, labels={"color": color}, spec=spec)


def _spread(when: str) -> JsonObject:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    return {"topologySpreadConstraints": [constraint]}


def _node_affinity(**term: Any) -> JsonObject:
    required = {"nodeSelectorTerms": [term]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


P: Final = Template(_STD)
P_LABEL: Final = Template(labels={"app": "scheduler-perf"})
P_DS: Final = Template(
    spec=_node_affinity(
        matchFields=[{"key": "metadata.name", "operator": "In", "values": ["scheduler-perf-node"]}]
    )
)
P_LOW: Final = Template({"cpu": "900m", "memory": "500Mi"})
P_HIGH: Final = Template({"cpu": "3000m", "memory": "500Mi"}, spec={"priority": 10})
P_LARGE: Final = Template({"cpu": "9", "memory": "500Mi"}, spec={"priority": 10})
P_ANTI: Final = _colored("green", _pod_affinity("podAntiAffinity", "required", "green", HOSTNAME))
P_GREEN: Final = _colored("green", {})
P_AFF: Final = _colored("blue", _pod_affinity("podAffinity", "required", "blue", ZONE))
P_PREF_AFF: Final = _colored("red", _pod_affinity("podAffinity", "preferred", "red", HOSTNAME))
P_PREF_ANTI: Final = _colored(
    "yellow", _pod_affinity("podAntiAffinity", "preferred", "yellow", HOSTNAME)
)
P_NS_ANTI: Final = _colored(
    "green", _pod_affinity("podAntiAffinity", "required", "green", HOSTNAME, by_selector=True)
)
P_NS_PREF_ANTI: Final = _colored(
    "green", _pod_affinity("podAntiAffinity", "preferred", "green", HOSTNAME, by_selector=True)
)
P_NS_AFF: Final = _colored(
    "blue", _pod_affinity("podAffinity", "required", "blue", ZONE, by_selector=True)
)
P_NS_PREF_AFF: Final = _colored(
    "red", _pod_affinity("podAffinity", "preferred", "red", HOSTNAME, by_selector=True)
)
P_NODE_AFF: Final = Template(
    _STD,
    spec=_node_affinity(
        matchExpressions=[{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]
    ),
)
P_SPREAD: Final = _colored("blue", _spread("DoNotSchedule"))
P_PREF_SPREAD: Final = _colored("blue", _spread("ScheduleAnyway"))
P_INCLUSION: Final = Template(
    _STD,
    labels={"foo": "bar"},
    spec={
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"foo": "bar"}},
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Honor",
            }
        ]
    },
)
P_SECRET: Final = Template(
    _STD, spec={"volumes": [{"name": "secret", "secret": {"secretName": "secret"}}]}
)

P_CLAIM: Final = Template(
    spec={
        "resourceClaims": [
            {"name": "resource", "resourceClaimTemplateName": "test-claim-template"},
        ]
    }
)


def extended(index: int) -> Template:
    return Template({f"foo.com/bar-{index}": "1"})
