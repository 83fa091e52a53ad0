"""Deciding halves with and without reuse, and the pods and nodes that they are tried with."""

from collections.abc import Sequence
from typing import Any

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.api.meta import ApiObject, LabelSelector, ObjectMeta, OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import ReplicaSet, ReplicaSetSpec, Service, ServiceSpec
from kubestow.cache.cache import Cache
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import build_profiles
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_handle, make_node, make_node_affinity, make_pod, make_term


class NoNominations:
    def nominated_nodes(self) -> Sequence[str]:
        return ()

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        return ()

    def add(self, pod: Pod, *, override: str | None = None) -> None: ...

    def delete(self, pod: Pod) -> None: ...


class Side:
    """A scheduler's deciding half on its own snapshot of a shared cache."""

    def __init__(
        self,
        *,
        reuses_answers: bool,
        extra: Sequence[type] = (),
        objects: ClusterObjects | None = None,
    ) -> None:
        self.snapshot = Snapshot()

        def handle(name: str) -> Any:
            handle = make_handle(snapshot=self.snapshot, objects=objects)
            handle.nominator = NoNominations()
            handle.activate = lambda pods: None
            return handle

        enabled = tuple(PluginRef(plugin.name) for plugin in extra)
        config = ProfileConfig(plugins=Plugins(multi_point=PluginSet(enabled=enabled)))
        registry = {**REGISTRY, **{plugin.name: plugin for plugin in extra}}
        self.profile = build_profiles([config], registry, handle)["default-scheduler"]
        self.decider = Decider(self.snapshot, NoNominations(), reuses_answers=reuses_answers)

    def decide(self, cache: Cache, pod: PodInfo) -> Decision:
        self.snapshot.refresh(cache)
        return self.decider.decide(self.profile, pod)


ZONE = "topology.kubernetes.io/zone"
WEB_ZONES = PodAffinityTerm(
    topology_key=ZONE, label_selector=LabelSelector(match_labels={"app": "web"})
)


def apart(*, required: bool) -> Affinity:
    """Anti-affinity to the zones of web pods."""
    weighted = WeightedPodAffinityTerm(weight=7, pod_affinity_term=WEB_ZONES)
    return Affinity(
        pod_anti_affinity=PodAffinity(required=(WEB_ZONES,))
        if required
        else PodAffinity(preferred=(weighted,))
    )


def spread(when: str) -> list[TopologySpreadConstraint]:
    return [
        TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable=when,
            label_selector=LabelSelector(match_labels={"app": "web"}),
        )
    ]


def named(names: str) -> Affinity:
    """Only to nodes of these names, as every pod of a DaemonSet."""
    term = make_term(fields=[f"metadata.name In {names}"])
    return Affinity(node_affinity=make_node_affinity(term))


POD_KINDS: list[dict[str, Any]] = [
    {"cpu": "500m", "memory": "256Mi"},
    {"cpu": "2", "memory": "1Gi"},
    {"cpu": "100m", "host_ports": [80]},
    {"cpu": "100m", "node_selector": {"disk": "ssd"}},
    {"cpu": "100m", "labels": {"app": "web"}},
    {"memory": "3Gi", "labels": {"app": "web"}, "priority": 5},
    {"cpu": "9"},
    {},
    {"cpu": "100m", "affinity": apart(required=True)},
    {"cpu": "100m", "affinity": apart(required=False)},
    {"cpu": "100m", "labels": {"app": "web"}, "spread": spread("DoNotSchedule")},
    {"cpu": "100m", "labels": {"app": "web"}, "spread": spread("ScheduleAnyway")},
    {"cpu": "500m", "affinity": named("node-1")},
    {"cpu": "500m", "affinity": named("node-5"), "host_ports": [80]},
    {"cpu": "500m", "affinity": named("node-0,node-2")},
    {"requests": {"example.com/a": 1}},
    {"cpu": "100m", "requests": {"example.com/b": 1}},
]


def new_pod(kind: int, number: int) -> PodInfo:
    return PodInfo(make_pod(f"pod-{number}", **POD_KINDS[kind]))


def unlike_pod(kind: int, number: int) -> PodInfo:
    """A pod with labels, an owner and an amount of its own."""
    given = POD_KINDS[kind]
    labels = {"pod": f"pod-{number}", "half": str(number % 2), **given.get("labels", {})}
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name=f"set-{number % 4}", controller=True
    )
    amount = {"memory": f"{number + 1}Mi"} if number % 3 else {}
    return PodInfo(
        make_pod(f"pod-{number}", **{**given, **amount, "labels": labels, "owner": owner})
    )


# What may come and go beside the pods: what selects some of them, and what serves some.
SELECTING: list[ApiObject] = [
    *(
        Service(
            metadata=ObjectMeta(name=f"service-{number}", namespace="default"),
            spec=ServiceSpec(selector=selector),
        )
        for number, selector in enumerate(
            ({"app": "web"}, {"half": "1"}, {}, None, {"pod": "pod-5", "half": "1"})
        )
    ),
    *(
        ReplicaSet(
            metadata=ObjectMeta(name=f"set-{number}", namespace="default"),
            spec=ReplicaSetSpec(selector=LabelSelector(match_labels=labels)),
        )
        for number, labels in enumerate(({"half": "0"}, {"app": "web"}))
    ),
]
# Devices serve a resource that nodes publish as well.
SERVING_A = DeviceClass(
    metadata=ObjectMeta(name="serves-a"),
    spec=DeviceClassSpec(extended_resource_name="example.com/a"),
)
CHANGING: list[ApiObject] = [*SELECTING, SERVING_A]


def new_node(number: int, variant: int) -> Node:
    return make_node(
        f"node-{number}",
        cpu=str(2 + variant % 3),
        memory=f"{2 + variant}Gi",
        labels={"disk": "ssd"} if variant % 2 else {},
        zone=f"zone-{variant % 3}",
        unschedulable=variant == 5,
        allocatable={"example.com/a": variant % 2, "example.com/b": variant % 4},
    )


def describe(decision: Decision) -> tuple[Any, ...]:
    scores = decision.scores
    return (
        decision.node_name,
        decision.message,
        decision.feasible.tolist(),
        decision.evaluated_count,
        decision.nodes_to_find,
        sorted(decision.diagnosis.unschedulable_plugins),
        None if scores is None else scores.total.tolist(),
        None if scores is None else [(p.plugin, p.raw.tolist()) for p in scores.by_plugin],
        # The metrics count by these which plugins were asked.
        sorted(decision.state.skip_filter),
        None if scores is None else sorted(decision.state.skip_score),
    )
