"""The workloads of upstream's suite that have an algorithm-only figure (spec 10 §4, §6)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubestow.api.decode import convert
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import PersistentVolumeClaimSource, Pod, Volume
from kubestow.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from kubestow.api.workload import Namespace, Service
from kubestow.simulator.bench import devices as d
from kubestow.simulator.bench import templates as t
from kubestow.simulator.bench.many_apps import many_apps
from kubestow.simulator.bench.many_shapes import many_shapes

EBS_DRIVER: Final = "ebs.csi.aws.com"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The objects that exist before the first measured pod, and the pods to be measured.

    running           pods placed on nodes
    scheduled_first   pods scheduled before anything is timed
    """

    nodes: Sequence[Node]
    running: Sequence[Pod]
    measured: Sequence[Pod]
    scheduled_first: Sequence[Pod] = ()
    objects: Sequence[ApiObject] = ()


class Variant(StrEnum):
    """How much the measured pods of a workload differ from each other (`unlike`)."""

    PLAIN = "plain"
    UNLIKE = "unlike"
    ALL_UNLIKE = "all-unlike"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload. `build(nodes, init_pods, measured_pods)` makes it in the given size."""

    name: str
    nodes: int
    init_pods: int
    measured_pods: int
    build: Callable[[int, int, int], Cluster]
    tags: frozenset[str] = frozenset()
    variant: Variant = Variant.PLAIN

    @property
    def title(self) -> str:
        return title_of(self.name, self.variant)


def title_of(name: str, variant: Variant) -> str:
    """What a variant of a workload is called: NAME, NAME/Unlike or NAME/AllUnlike."""
    return name + _SUFFIXES[variant]


_SUFFIXES: Final = {Variant.PLAIN: "", Variant.UNLIKE: "/Unlike", Variant.ALL_UNLIKE: "/AllUnlike"}


def _nodes(count: int, zones: Sequence[str] = (), **options: Any) -> list[Node]:
    return [
        t.node(
            f"node-{i:05d}", labels={t.ZONE: zones[i % len(zones)]} if zones else None, **options
        )
        for i in range(count)
    ]


def _running(
    nodes: Sequence[Node], parts: Iterable[tuple[t.Template, int, str]], *, prefix: str = "init"
) -> list[Pod]:
    """Pods placed on nodes in turn, numbered across the templates."""
    pods: list[Pod] = []
    for template, count, namespace in parts:
        for _ in range(count):
            number = len(pods)
            name = nodes[number % len(nodes)].metadata.name
            pods.append(t.placed(template.make(f"{prefix}-{number}", namespace), name))
    return pods


def _measured(template: t.Template, count: int, namespace: str = "measured") -> list[Pod]:
    return [template.make(f"pod-{i}", namespace) for i in range(count)]


def _plain(
    init: t.Template,
    measured: t.Template,
    *,
    zones: Sequence[str] = (),
    init_namespace: str = "init",
    measured_namespace: str = "measured",
    objects: Sequence[ApiObject] = (),
) -> Callable[[int, int, int], Cluster]:
    def build(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
        made = _nodes(nodes, zones)
        return Cluster(
            nodes=made,
            running=_running(made, [(init, init_pods, init_namespace)]),
            measured=_measured(measured, measured_pods, measured_namespace),
            objects=objects,
        )

    return build


def _by_namespaces(
    template: t.Template, zones: Sequence[str] = ()
) -> Callable[[int, int, int], Cluster]:
    """Running pods in a hundred namespaces that a selector matches."""

    def build(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
        made = _nodes(nodes, zones)
        names = [f"init-ns-{i}" for i in range(100)]
        namespaces = [
            convert(Namespace, {"metadata": {"name": name, "labels": {"team": "devops"}}})
            for name in [*names, "measure-ns-0"]
        ]
        running = _running(made, [(template, init_pods // 100, name) for name in names])
        measured = _measured(template, measured_pods, "measure-ns-0")
        return Cluster(nodes=made, running=running, measured=measured, objects=namespaces)

    return build


def _mixed(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    made = _nodes(nodes, ["zone1"])
    kinds = (t.P, t.P_AFF, t.P_ANTI, t.P_PREF_AFF, t.P_PREF_ANTI)
    running = _running(made, [(kind, init_pods // len(kinds), "sched-0") for kind in kinds])
    return Cluster(nodes=made, running=running, measured=_measured(t.P, measured_pods))


def _default_spreading(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    made = _nodes(nodes, ["moon-1", "moon-2", "moon-3"])
    service = convert(
        Service,
        {
            "metadata": {"name": "service", "namespace": "service-ns"},
            "spec": {"selector": {"app": "scheduler-perf"}},
        },
    )
    return Cluster(
        nodes=made,
        running=_running(made, [(t.P, init_pods, "init")]),
        measured=_measured(t.P_LABEL, measured_pods, "service-ns"),
        objects=[service],
    )


def _inclusion(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    tainted = nodes // 5
    taint = [{"key": "foo", "effect": "NoSchedule"}]
    made = _nodes(nodes - tainted)
    made += [t.node(f"tainted-{i:05d}", taints=taint) for i in range(tainted)]
    return Cluster(nodes=made, running=[], measured=_measured(t.P_INCLUSION, measured_pods))


def _daemon_set(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    named = t.node("scheduler-perf-node", capacity={"pods": "90000"})
    made = [named, *_nodes(nodes - 1)]
    return Cluster(nodes=made, running=[], measured=_measured(t.P_DS, measured_pods))


def _unschedulable(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    """Every 21st pod fits on no node."""
    made = _nodes(nodes)
    measured = [
        (t.P_LARGE if i % 21 == 20 else t.P).make(f"pod-{i}", "measured")
        for i in range(measured_pods)
    ]
    return Cluster(
        nodes=made, running=_running(made, [(t.P, init_pods, "init")]), measured=measured
    )


def _extended(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    made = [
        t.node(
            f"node-{i:05d}",
            labels={"node-with-extended-resource": "true"},
            capacity={f"foo.com/bar-{i}": "1"},
        )
        for i in range(nodes)
    ]
    measured = [t.extended(i).make(f"pod-{i}", "measured") for i in range(measured_pods)]
    return Cluster(nodes=made, running=[], measured=measured)


def _preemption(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    made = _nodes(nodes)
    return Cluster(
        nodes=made,
        running=_running(made, [(t.P_LOW, init_pods, "init")]),
        measured=_measured(t.P_HIGH, measured_pods),
    )


def _preemption_async(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    """Every 33rd pod evicts others; the rest fits without."""
    made = _nodes(nodes)
    measured = [
        (t.P_HIGH if i % 33 == 32 else t.P).make(f"pod-{i}", "measured")
        for i in range(measured_pods)
    ]
    return Cluster(
        nodes=made, running=_running(made, [(t.P_LOW, init_pods, "init")]), measured=measured
    )


def _volume(kind: str, name: str, namespace: str, index: int) -> tuple[Volume, list[ApiObject]]:
    """A claim and its volume, bound to each other, and the pod volume that mounts it."""
    volume_name = f"{namespace}-vol-{index}"
    source: dict[str, Any] = (
        {"awsElasticBlockStore": {"volumeID": f"vol-{namespace}-{index}"}}
        if kind == "aws"
        else {"csi": {"driver": EBS_DRIVER, "volumeHandle": f"vol-{namespace}-{index}"}}
    )
    amount = {"storage": "1Gi"}
    volume = convert(
        PersistentVolume,
        {
            "metadata": {"name": volume_name, "resourceVersion": "1"},
            "spec": {
                "capacity": amount,
                "accessModes": ["ReadOnlyMany"],
                "claimRef": {"namespace": namespace, "name": name, "uid": name},
                **source,
            },
            "status": {"phase": "Bound"},
        },
    )
    claim = convert(
        PersistentVolumeClaim,
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": name,
                "resourceVersion": "1",
                "annotations": {"pv.kubernetes.io/bind-completed": "true"},
            },
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": amount},
                "volumeName": volume_name,
            },
            "status": {"phase": "Bound"},
        },
    )
    mount = Volume(name="vol", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=name))
    return mount, [volume, claim]


def _csi_node(name: str, *, is_migrated: bool) -> CSINode:
    annotations = (
        {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
        if is_migrated
        else {}
    )
    driver = {"name": EBS_DRIVER, "nodeID": name, "allocatable": {"count": 39}}
    return convert(
        CSINode,
        {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": [driver]}},
    )


def _with_volumes(
    kind: str, *, csi_nodes: bool = False, is_migrated: bool = False
) -> Callable[[int, int, int], Cluster]:
    def build(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
        made = _nodes(nodes)
        objects: list[ApiObject] = []
        if csi_nodes:
            objects += [_csi_node(n.metadata.name, is_migrated=is_migrated) for n in made]
        running = [
            t.placed(
                _mounting(t.P, kind, f"init-{i}", "init", i, objects),
                made[i % nodes].metadata.name,
            )
            for i in range(init_pods)
        ]
        measured = [
            _mounting(t.P, kind, f"pod-{i}", "measured", i, objects) for i in range(measured_pods)
        ]
        return Cluster(nodes=made, running=running, measured=measured, objects=objects)

    return build


def _mounting(
    template: t.Template,
    kind: str,
    name: str,
    namespace: str,
    index: int,
    objects: list[ApiObject],
) -> Pod:
    mount, made = _volume(kind, f"pvc-{namespace}-{index}", namespace, index)
    objects += made
    return template.make(name, namespace, volumes=(mount,))


def _preemption_volumes(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    made = _nodes(nodes)
    objects: list[ApiObject] = []
    measured = [
        _mounting(t.P_HIGH, "aws", f"pod-{i}", "measured", i, objects) for i in range(measured_pods)
    ]
    return Cluster(
        nodes=made,
        running=_running(made, [(t.P_LOW, init_pods, "init")]),
        measured=measured,
        objects=objects,
    )


def _with_claims(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    """As many devices as pods, at the size of the suite: the last pod gets the last device."""
    made = [d.device_node(f"scheduler-perf-dra-{i:05d}") for i in range(nodes)]
    init = [d.claiming(t.P_CLAIM.make(f"init-{i}", "init")) for i in range(init_pods)]
    measured = [d.claiming(t.P_CLAIM.make(f"pod-{i}", "measured")) for i in range(measured_pods)]
    return Cluster(
        nodes=made,
        running=(),
        scheduled_first=[each.pod for each in init],
        measured=[each.pod for each in measured],
        objects=[
            d.DEVICE_CLASS,
            *(d.device_slice(node.metadata.name) for node in made),
            *(each.claim for each in (*init, *measured)),
        ],
    )


def _many_shapes(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
    made = many_shapes(nodes, init_pods, measured_pods)
    return Cluster(
        nodes=made.nodes, running=made.running, measured=made.measured, objects=made.services
    )


def _many_apps(*, replicas: int, is_full: bool) -> Callable[[int, int, int], Cluster]:
    def build(nodes: int, init_pods: int, measured_pods: int) -> Cluster:
        made = many_apps(nodes, init_pods + measured_pods, replicas=replicas, is_full=is_full)
        first, measured = made.measured[:init_pods], made.measured[init_pods:]
        return Cluster(nodes=made.nodes, running=(), scheduled_first=first, measured=measured)

    return build


_MOON: Final = ("moon-1", "moon-2", "moon-3")
_BASIC: Final = _plain(t.P, t.P)


def _workload(
    name: str,
    nodes: int,
    init_pods: int,
    measured_pods: int,
    build: Callable[[int, int, int], Cluster],
    *tags: str,
) -> Workload:
    return Workload(
        name=name,
        nodes=nodes,
        init_pods=init_pods,
        measured_pods=measured_pods,
        build=build,
        tags=frozenset(tags),
    )


def _sched(template: t.Template, *zones: str, init: t.Template | None = None):
    return _plain(
        init or template,
        template,
        zones=zones,
        init_namespace="sched-0",
        measured_namespace="sched-1",
    )


WORKLOADS: Final[Sequence[Workload]] = (
    _workload("SchedulingBasic", 5000, 1000, 10000, _BASIC),
    _workload("SchedulingBasic/1000Nodes", 1000, 1000, 10000, _BASIC),
    _workload("SchedulingBasic/15000Nodes", 15000, 1000, 10000, _BASIC),
    _workload("SchedulingBasic/50000Nodes", 50000, 1000, 10000, _BASIC),
    _workload("SchedulingPodAntiAffinity", 5000, 1000, 2000, _sched(t.P_ANTI)),
    _workload(
        "SchedulingPodMatchingAntiAffinity", 5000, 1000, 5000, _sched(t.P_GREEN, init=t.P_ANTI)
    ),
    _workload("SchedulingPodAffinity", 5000, 5000, 5000, _sched(t.P_AFF, "zone1")),
    _workload("SchedulingPreferredPodAffinity", 5000, 5000, 5000, _sched(t.P_PREF_AFF)),
    _workload("SchedulingPreferredPodAntiAffinity", 5000, 5000, 5000, _sched(t.P_PREF_ANTI)),
    _workload(
        "SchedulingNodeAffinity",
        5000,
        5000,
        10000,
        _plain(t.P_NODE_AFF, t.P_NODE_AFF, zones=["zone1"]),
    ),
    _workload("MixedSchedulingBasePod", 5000, 10000, 5000, _mixed),
    _workload(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        6000,
        4000,
        2000,
        _by_namespaces(t.P_NS_ANTI),
    ),
    _workload(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        5000,
        4000,
        2000,
        _by_namespaces(t.P_NS_PREF_ANTI),
    ),
    _workload(
        "SchedulingRequiredPodAffinityWithNSSelector",
        5000,
        5000,
        2000,
        _by_namespaces(t.P_NS_AFF, ["zone1"]),
    ),
    _workload(
        "SchedulingPreferredAffinityWithNSSelector",
        5000,
        5000,
        5000,
        _by_namespaces(t.P_NS_PREF_AFF),
    ),
    _workload("TopologySpreading", 5000, 5000, 5000, _plain(t.P, t.P_SPREAD, zones=_MOON)),
    _workload(
        "PreferredTopologySpreading", 5000, 5000, 5000, _plain(t.P, t.P_PREF_SPREAD, zones=_MOON)
    ),
    _workload("DefaultTopologySpreading", 5000, 5000, 10000, _default_spreading),
    _workload("SchedulingWithNodeInclusionPolicy", 5000, 0, 4000, _inclusion),
    _workload("SchedulingDaemonset", 15001, 0, 30000, _daemon_set),
    _workload("Unschedulable", 5000, 100, 10000, _unschedulable),
    _workload("Unschedulable/20kInit", 5000, 20000, 10000, _unschedulable),
    _workload("SchedulingSecrets", 5000, 1000, 10000, _plain(t.P_SECRET, t.P_SECRET)),
    _workload("SchedulingInTreePVs", 5000, 1000, 2000, _with_volumes("aws")),
    _workload(
        "SchedulingMigratedInTreePVs",
        5000,
        5000,
        5000,
        _with_volumes("aws", csi_nodes=True, is_migrated=True),
    ),
    _workload("SchedulingCSIPVs", 5000, 5000, 5000, _with_volumes("csi", csi_nodes=True)),
    _workload("SchedulingWithExtendedResource", 5000, 0, 5000, _extended),
    _workload("PreemptionBasic", 1000, 4000, 1000, _preemption, "preemption"),
    _workload("PreemptionBasic/5000Nodes", 5000, 20000, 1000, _preemption, "preemption"),
    _workload("PreemptionPVs", 1000, 4000, 1000, _preemption_volumes, "preemption"),
    _workload("PreemptionAsync", 5000, 20000, 5000, _preemption_async, "preemption"),
    _workload("SchedulingWithResourceClaimTemplate", 500, 2500, 2500, _with_claims),
    _workload("ManyShapes", 5000, 10000, 5000, _many_shapes),
    _workload("ManyApps", 5000, 0, 3000, _many_apps(replicas=3, is_full=True)),
    _workload("ManyApps/Single", 5000, 0, 3000, _many_apps(replicas=1, is_full=True)),
    _workload("ManyApps/Plain", 5000, 0, 3000, _many_apps(replicas=3, is_full=False)),
    _workload("ManyApps/PlainSingle", 5000, 0, 3000, _many_apps(replicas=1, is_full=False)),
)
