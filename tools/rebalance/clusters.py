"""Small random clusters: a few nodes, workloads whose pods are on any node they fit on."""

from typing import Any, Final

import numpy as np

from kubestow.api.files import Document

Raw = dict[str, Any]
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
GPU: Final = "example.com/gpu"
GOALS: Final = (
    "spread",
    "balance",
    "empty-nodes",
    "defragment=cpu:2",
    "violations",
    "spread + 0.1 * balance",
)


class RandomCluster:
    """The documents of a seed. The pods are running, and all of their controllers are there."""

    def __init__(
        self,
        seed: int,
        *,
        nodes_max: int = 5,
        pods_max: int = 9,
        has_gangs: bool = False,
        has_deployments: bool = False,
    ) -> None:
        """`has_gangs`: some workloads are groups of pods, and gates are needed for these.

        `has_deployments`: some ReplicaSets are of Deployments.
        """
        self._has_gangs = has_gangs
        self._has_deployments = has_deployments
        self._rng = np.random.default_rng(seed)
        self._free: dict[str, list[float]] = {}
        self._documents: list[Raw] = []
        node_count = self._between(2, nodes_max)
        for index in range(node_count):
            self._add_node(f"n{index}", f"z{index % self._between(1, 3)}")
        left = self._between(2, pods_max)
        for index in range(self._between(1, 3)):
            count = min(self._between(1, 4), left)
            if count:
                self._add_workload(f"w{index}", count)
                left -= count
        if self._chance(0.3):
            self._add_daemons()

    @property
    def documents(self) -> list[Document]:
        return [Document(raw, f"cluster#{index}") for index, raw in enumerate(self._documents)]

    # --- Parts --------------------------------------------------------------------------------

    def _add_node(self, name: str, zone: str) -> None:
        cpu, memory = self._between(2, 4), self._between(4, 8)
        amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "20"}
        spec: Raw = {}
        if self._chance(0.1):
            spec["taints"] = [{"key": "only", "value": "x", "effect": "NoSchedule"}]
        if self._chance(0.05):
            spec["unschedulable"] = True
        labels = {HOSTNAME: name, ZONE: zone, "disk": str(self._choice("ssd", "hdd"))}
        self._free[name] = [cpu, memory]
        self._add("v1", "Node", name, "", labels=labels, spec=spec, status=_ready_node(amounts))

    def _add_workload(self, name: str, count: int) -> None:
        kind = self._choice("ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet")
        labels = {"app": name}
        spec = self._pod_spec(name)
        if self._has_deployments:
            # Pods that are marked must have what an API server adds.
            spec["restartPolicy"] = "Always"
        is_gang = self._has_gangs and self._chance(0.6)
        if is_gang:
            spec["schedulingGroup"] = {"podGroupName": name}
            spec["terminationGracePeriodSeconds"] = self._choice(0, 30, 30, 30)
        template = {"metadata": {"labels": labels}, "spec": spec}
        owner_spec: Raw = {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": template,
        }
        if kind == "StatefulSet":
            # Without it pods of no known revision would be replaced.
            owner_spec |= {"serviceName": name, "updateStrategy": {"type": "OnDelete"}}
        self._add("apps/v1", kind, name, "default", spec=owner_spec)
        owner = {
            "apiVersion": "apps/v1",
            "kind": kind,
            "name": name,
            "uid": _uid(kind, name),
            "controller": True,
        }
        for _ in range(count):
            # Without gaps in the numbers, as a StatefulSet has them.
            index = owner_spec["replicas"]
            owner_spec["replicas"] += self._add_pod(f"{name}-{index}", labels, spec, owner)
        count = owner_spec["replicas"]
        if kind == "ReplicaSet" and self._has_deployments and self._chance(0.5):
            self._add_deployment(name, labels, owner_spec)
        if is_gang:
            policy = {"gang": {"minCount": max(count, 1)}}
            self._add(
                "scheduling.k8s.io/v1alpha2",
                "PodGroup",
                name,
                "default",
                spec={"schedulingPolicy": policy},
            )
        if count and self._chance(0.4):
            limit = self._choice(
                {"minAvailable": count - 1}, {"maxUnavailable": 1}, {"minAvailable": count}
            )
            budget = {"selector": {"matchLabels": labels}, **limit}
            self._add("policy/v1", "PodDisruptionBudget", name, "default", spec=budget)

    def _add_deployment(self, name: str, labels: Raw, owner_spec: Raw) -> None:
        """Above the ReplicaSet that was added last, with its template."""
        spec = {key: owner_spec[key] for key in ("replicas", "selector", "template")}
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
        replica_set = next(
            one
            for one in self._documents
            if one["kind"] == "ReplicaSet" and one["metadata"]["name"] == name
        )
        replica_set["metadata"]["labels"] = labels
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        replica_set["metadata"]["ownerReferences"] = [
            {**reference, "uid": _uid("Deployment", name), "controller": True}
        ]
        self._add("apps/v1", "Deployment", name, "default", spec=spec)

    def _add_pod(self, name: str, labels: Raw, spec: Raw, owner: Raw) -> bool:
        """Whether there was a node for it."""
        requests = spec["containers"][0]["resources"]["requests"]
        cpu, memory = int(requests["cpu"][:-1]) / 1000, float(requests["memory"][:-2])
        fitting = [
            node for node, free in self._free.items() if free[0] >= cpu and free[1] >= memory
        ]
        if not fitting:
            return False
        node = str(self._choice(*fitting))
        self._free[node][0] -= cpu
        self._free[node][1] -= memory
        if owner["kind"] == "StatefulSet":
            labels = {
                **labels,
                "apps.kubernetes.io/pod-index": name.rpartition("-")[2],
                "statefulset.kubernetes.io/pod-name": name,
            }
        self._add(
            "v1",
            "Pod",
            name,
            "default",
            labels=labels,
            owners=[owner],
            spec={"nodeName": node, **spec},
            status=_running(),
        )
        return True

    def _pod_spec(self, name: str) -> Raw:
        spec: Raw = {
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": self._choice(0, 5, 30),
            "containers": [
                {
                    "name": "main",
                    "image": "x",
                    "resources": {
                        "requests": {
                            "cpu": f"{self._choice(250, 500, 1000, 1500)}m",
                            "memory": f"{self._choice(0.5, 1, 2)}Gi",
                        }
                    },
                }
            ],
        }
        selector = {"matchLabels": {"app": name}}
        if self._chance(0.5):
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": self._choice(HOSTNAME, ZONE),
                    "whenUnsatisfiable": self._choice("DoNotSchedule", "ScheduleAnyway"),
                    "labelSelector": selector,
                }
            ]
        affinity: Raw = {}
        if self._chance(0.2):
            term = {"labelSelector": selector, "topologyKey": HOSTNAME}
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if self._chance(0.2):
            affinity["nodeAffinity"] = {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
                    ]
                }
            }
        if affinity:
            spec["affinity"] = affinity
        if self._chance(0.2):
            spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
        return spec

    def _add_daemons(self) -> None:
        spec = {
            "schedulerName": "default-scheduler",
            "containers": [
                {"name": "main", "image": "x", "resources": {"requests": {"cpu": "50m"}}}
            ],
            "tolerations": [{"operator": "Exists"}],
        }
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": "daemon",
            "uid": _uid("DaemonSet", "daemon"),
            "controller": True,
        }
        labels = {"app": "daemon"}
        template = {"metadata": {"labels": labels}, "spec": spec}
        owner_spec = {
            "selector": {"matchLabels": labels},
            "template": template,
            # Without it pods of no known revision would be replaced.
            "updateStrategy": {"type": "OnDelete"},
        }
        self._add("apps/v1", "DaemonSet", "daemon", "default", spec=owner_spec)
        for node in self._free:
            self._add(
                "v1",
                "Pod",
                f"daemon-{node}",
                "default",
                labels=labels,
                owners=[owner],
                spec={"nodeName": node, **spec},
                status=_running(),
            )

    # --- Documents and randomness -------------------------------------------------------------

    def _add(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str,
        *,
        labels: Raw | None = None,
        owners: list[Raw] | None = None,
        **rest: Any,
    ) -> None:
        metadata: Raw = {"name": name, "uid": _uid(kind, name)}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        if namespace:
            metadata["namespace"] = namespace
        if labels:
            metadata["labels"] = labels
        if owners:
            metadata["ownerReferences"] = owners
        self._documents.append(
            {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
        )

    def _between(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _choice(self, *options: Any) -> Any:
        return options[int(self._rng.integers(len(options)))]


def _uid(kind: str, name: str) -> str:
    return f"{kind}-{name}".lower()


def _running() -> Raw:
    time = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": time}
        for kind in ("PodScheduled", "Ready")
    ]
    return {"phase": "Running", "startTime": time, "conditions": conditions}


def _ready_node(amounts: Raw) -> Raw:
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
