"""`fit` equals placing copies one by one until one fails, for every family of plugins."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from kubestow.api.files import Document
from kubestow.cluster.resources import PODS
from kubestow.config.feature_gates import FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.capacity.copies import CopyTemplate
from kubestow.simulator.capacity.fit import NOT_TRIED, Fit, Limit, NodeShare, fit
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.loading import pods_of
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import run_in_virtual_time

Raw = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GANGS = parse_gates(["GenericWorkload=true,GangScheduling=true"])


def documents(*raw: Raw) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def of(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Raw:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def node(name: str, *, zone: str = "", labels: Raw | None = None, **more: Any) -> Raw:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10", **more.pop("allocatable", {})}
    own = {HOST: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    status = {"capacity": allocatable, "allocatable": allocatable}
    return of("Node", name, metadata={"labels": own}, spec=more, status=status)


def pod(name: str, cpu: str = "1", labels: Raw | None = None, **spec: Any) -> Raw:
    extended = spec.pop("extended", {})
    requests = {"cpu": cpu, "memory": "1Gi", **extended}
    resources = {"requests": requests, "limits": extended}
    container = {"name": "c", "image": "c", "resources": resources}
    container |= spec.pop("container", {})
    metadata = {"namespace": "shop", "labels": labels or {}}
    return of("Pod", name, metadata=metadata, spec={"containers": [container], **spec})


class Case(NamedTuple):
    cluster: list[Raw]
    copy: list[Raw]
    gates: FeatureGates | None = None


def nodes(rng: np.random.Generator, count: int = 6) -> list[Raw]:
    """Nodes of different sizes in zones of different sizes."""
    return [
        node(
            f"n{index}",
            zone=f"z{rng.integers(3)}",
            allocatable={
                "cpu": str(rng.integers(1, 7)),
                "pods": str(rng.integers(2, 10)),
            },
        )
        for index in range(count)
    ]


def with_pods(rng: np.random.Generator, given: list[Raw]) -> list[Raw]:
    """The nodes and some pods that run on them."""
    running = [
        pod(
            f"r{index}",
            "500m",
            {"app": str(rng.choice(["a", "b"]))},
            nodeName=f"n{rng.integers(6)}",
        )
        for index in range(8)
    ]
    return [*given, *running]


SELF: Raw = {"labelSelector": {"matchLabels": {"app": "a"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def resources(rng: np.random.Generator) -> Case:
    return Case(with_pods(rng, nodes(rng)), [pod("p", str(rng.choice(["1", "700m", "2"])))])


def extended(rng: np.random.Generator) -> Case:
    gpus = [
        node(f"n{index}", allocatable={"example.com/gpu": str(rng.integers(4))})
        for index in range(6)
    ]
    return Case(with_pods(rng, gpus), [pod("p", "100m", extended={"example.com/gpu": "1"})])


def node_affinity(rng: np.random.Generator) -> Case:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z0", "z1"]}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    return Case(with_pods(rng, nodes(rng)), [pod("p", affinity=affinity)])


def node_name(rng: np.random.Generator) -> Case:
    return Case(with_pods(rng, nodes(rng)), [pod("p", nodeSelector={HOST: "n3"})])


def ports(rng: np.random.Generator) -> Case:
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    used = pod("used", "100m", container=port, nodeName="n1")
    return Case([*with_pods(rng, nodes(rng)), used], [pod("p", container=port)])


def taints(rng: np.random.Generator) -> Case:
    taint = {"key": "team", "effect": "NoSchedule"}
    given = nodes(rng)
    for one in given[:2]:
        one["spec"]["taints"] = [taint]
    given[2]["spec"]["unschedulable"] = True
    tolerated = [{"key": "team", "operator": "Exists"}] if rng.random() < 0.5 else []
    return Case(with_pods(rng, given), [pod("p", tolerations=tolerated)])


def spread(rng: np.random.Generator) -> Case:
    constraint = {
        "maxSkew": int(rng.integers(1, 3)),
        "topologyKey": str(rng.choice([ZONE, HOST])),
        "whenUnsatisfiable": "DoNotSchedule",
        **SELF,
    }
    copy = pod("p", "500m", {"app": "a"}, topologySpreadConstraints=[constraint])
    return Case(with_pods(rng, nodes(rng)), [copy])


def anti_affinity(rng: np.random.Generator) -> Case:
    term = {"topologyKey": str(rng.choice([HOST, ZONE])), **SELF}
    copy = pod("p", "100m", {"app": "a"}, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    return Case(nodes(rng), [copy])


def affinity(rng: np.random.Generator) -> Case:
    term = {"topologyKey": ZONE, **SELF}
    copy = pod("p", "500m", {"app": "a"}, affinity={"podAffinity": {REQUIRED: [term]}})
    return Case(nodes(rng) if rng.random() < 0.5 else with_pods(rng, nodes(rng)), [copy])


def storage(mode: str = "WaitForFirstConsumer") -> Raw:
    return of(
        "StorageClass",
        "fast",
        "storage.k8s.io/v1",
        provisioner="csi.example.com",
        volumeBindingMode=mode,
    )


def claim(name: str, access: str = "ReadWriteOnce", **metadata: Any) -> Raw:
    spec = {
        "storageClassName": "fast",
        "accessModes": [access],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return of("PersistentVolumeClaim", name, metadata={"namespace": "shop", **metadata}, spec=spec)


def mounted(name: str) -> list[Raw]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def volume_limits(rng: np.random.Generator) -> Case:
    limits = [
        of(
            "CSINode",
            f"n{index}",
            "storage.k8s.io/v1",
            spec={
                "drivers": [
                    {
                        "name": "csi.example.com",
                        "nodeID": f"n{index}",
                        "topologyKeys": [],
                        "allocatable": {"count": int(rng.integers(1, 4))},
                    }
                ]
            },
        )
        for index in range(6)
    ]
    cluster = [*nodes(rng), *limits, storage()]
    return Case(cluster, [claim("data"), pod("p", "100m", volumes=mounted("data"))])


def exclusive_volume(rng: np.random.Generator) -> Case:
    cluster = [*nodes(rng), storage(), claim("data", "ReadWriteOncePod")]
    return Case(cluster, [pod("p", "100m", volumes=mounted("data"))])


def ephemeral_volume(rng: np.random.Generator) -> Case:
    template = {"spec": claim("x")["spec"]}
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]
    return Case([*nodes(rng), storage()], [pod("p", volumes=volumes)])


def volume_zone(rng: np.random.Generator) -> Case:
    """A volume that is bound already, in one zone."""
    bound = claim("data", annotations={"pv.kubernetes.io/bind-completed": "yes"}, uid="claim-1")
    bound["spec"]["volumeName"] = "pv"
    bound["status"] = {"phase": "Bound"}
    volume = of(
        "PersistentVolume",
        "pv",
        metadata={"labels": {ZONE: "z0"}},
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "fast",
            "claimRef": {"namespace": "shop", "name": "data"},
            "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
        },
        status={"phase": "Bound"},
    )
    return Case([*nodes(rng), storage(), bound, volume], [pod("p", volumes=mounted("data"))])


def inline_disk(rng: np.random.Generator) -> Case:
    disk = [{"name": "data", "gcePersistentDisk": {"pdName": "d"}}]
    return Case(nodes(rng), [pod("p", "100m", volumes=disk)])


def devices(rng: np.random.Generator) -> Case:
    api_version = "resource.k8s.io/v1"
    slices = [
        of(
            "ResourceSlice",
            f"s{index}",
            api_version,
            spec={
                "driver": "gpu.example.com",
                "nodeName": f"n{index}",
                "pool": {"name": f"n{index}", "resourceSliceCount": 1},
                "devices": [{"name": f"d{device}"} for device in range(int(rng.integers(1, 4)))],
            },
        )
        for index in range(4)
    ]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    template = of(
        "ResourceClaimTemplate",
        "gpu",
        api_version,
        metadata={"namespace": "shop"},
        spec={"spec": {"devices": {"requests": [request]}}},
    )
    entries = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    cluster = [*nodes(rng), of("DeviceClass", "gpu", api_version, spec={}), *slices]
    return Case(cluster, [template, pod("p", "100m", resourceClaims=entries)])


def group(rng: np.random.Generator) -> Case:
    api_version = "scheduling.k8s.io/v1alpha2"
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    gang = of("PodGroup", "gang", api_version, metadata={"namespace": "shop"}, spec=policy)
    members = [
        pod(f"m{index}", schedulingGroup={"podGroupName": "gang"}, labels={"app": "a"})
        for index in range(3)
    ]
    return Case(with_pods(rng, nodes(rng)), [gang, *members], GANGS)


def member(rng: np.random.Generator) -> Case:
    """A pod of a group that the cluster has, which may be complete with one more."""
    api_version = "scheduling.k8s.io/v1alpha2"
    policy = {"schedulingPolicy": {"gang": {"minCount": int(rng.integers(2, 4))}}}
    gang = of("PodGroup", "gang", api_version, metadata={"namespace": "shop"}, spec=policy)
    running = pod("m", "100m", schedulingGroup={"podGroupName": "gang"}, nodeName="n0")
    copy = pod("p", schedulingGroup={"podGroupName": "gang"})
    return Case([*nodes(rng), gang, running], [copy], GANGS)


def deployment(rng: np.random.Generator) -> Case:
    template = pod("x", str(rng.choice(["1", "600m"])), {"app": "a"})
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": template["spec"]},
    }
    made = of("Deployment", "web", "apps/v1", metadata={"namespace": "shop"}, spec=spec)
    return Case(with_pods(rng, nodes(rng)), [made])


def priority(rng: np.random.Generator) -> Case:
    """Nothing is evicted for a copy, however important it is."""
    high = of("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000)
    return Case([high, *with_pods(rng, nodes(rng))], [pod("p", priorityClassName="high")])


Family = Callable[[np.random.Generator], Case]
FAMILIES: list[Family] = [
    resources, extended, node_affinity, node_name, ports, taints, spread, anti_affinity, affinity,
    volume_limits, exclusive_volume, ephemeral_volume, volume_zone, inline_disk, devices, group,
    member, deployment, priority,
]  # fmt: skip


def one_by_one(case: Case) -> tuple[int, Counter[str]]:
    """The number of copies and the nodes of their pods, by creating one copy after the other."""
    template = CopyTemplate(documents(*case.copy))

    async def run() -> tuple[int, Counter[str]]:
        gates = case.gates or FeatureGates()
        cluster = Simulation(
            placing(documents(*case.cluster)), SchedulerConfig(), gates=gates
        ).cluster
        store = cluster.store
        found: Counter[str] = Counter()
        async with cluster.running():
            await cluster.settle(limit_s=60)
            running = len(pods_of(store))
            for document in template.shared:
                store.load([document.raw])
            for number in range(1, 100):
                names = [
                    stored.name
                    for document in template.copy(number)
                    if (stored := store.load([document.raw])[0]).resource is PODS
                ]
                await cluster.settle(limit_s=60)
                # Where a copy is important enough, others are evicted for it; then it did not fit.
                is_evicting = len(pods_of(store)) < running + number * len(names)
                placed = [store.get(PODS, "shop", name).document["spec"] for name in names]
                if is_evicting or not all("nodeName" in spec for spec in placed):
                    return number - 1, found
                found.update(spec["nodeName"] for spec in placed)
        raise AssertionError("more copies fit than any case has room for")

    return run_in_virtual_time(run())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_it_equals_placing_one_by_one(
    family: Callable[[np.random.Generator], Case], seed: int
) -> None:
    case = family(np.random.default_rng(seed))
    setup = PlacingSetup(gates=case.gates or FeatureGates())
    found = fit(documents(*case.cluster), documents(*case.copy), setup)
    copies, places = one_by_one(case)
    assert found.copies == copies
    assert {share.name: share.pods for share in found.nodes} == places
    assert found.message
    assert not found.is_cut
    assert found.limited_by or found.message == NOT_TRIED


def test_every_family_has_room_for_copies() -> None:
    """Else the comparison above would show little."""
    for family in FAMILIES:
        assert any(one_by_one(family(np.random.default_rng(seed)))[0] for seed in range(3)), family


def test_what_runs_out_comes_first() -> None:
    cluster = [
        node("a", allocatable={"cpu": "2"}),
        node("b", allocatable={"memory": "1Gi"}),
        *(node(f"t{index}", taints=[{"key": "x", "effect": "NoSchedule"}]) for index in range(3)),
    ]
    assert fit(documents(*cluster), documents(pod("p"))) == Fit(
        copies=3,
        pods_per_copy=1,
        node_count=5,
        nodes=[NodeShare("a", 2), NodeShare("b", 1)],
        limited_by=[
            Limit(
                reason="Insufficient cpu", plugin="NodeResourcesFit", nodes=1, nodes_with_copies=1
            ),
            Limit(
                reason="Insufficient memory",
                plugin="NodeResourcesFit",
                nodes=1,
                nodes_with_copies=1,
            ),
            Limit(
                reason="node(s) had untolerated taint(s)",
                plugin="TaintToleration",
                nodes=3,
                nodes_with_copies=0,
            ),
        ],
        pod="shop/p-copy-4",
        message="0/5 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 3 node(s) had "
        "untolerated taint(s).",
    )


def test_pods_that_wait_are_placed_first() -> None:
    cluster = documents(node("a"), pod("waits", "3"), pod("huge", "9"))
    found = fit(cluster, documents(pod("p")))
    assert found.copies == 1
    assert found.waiting == 1


def test_a_number_ends_the_search() -> None:
    found = fit(documents(node("a")), documents(pod("p")), copies_max=2)
    assert (found.copies, found.is_cut, found.limited_by) == (2, True, [])


def test_a_pod_of_a_cluster_can_be_copied() -> None:
    running = pod("p", nodeName="a")
    running["metadata"] |= {"uid": "u", "generateName": "p-"}
    running["status"] = {"phase": "Running"}
    found = fit(documents(node("a"), running), documents(running))
    assert found.copies == 3


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        pytest.param([node("b")], r"all.yaml#1: a Node has no copies; give a pod", id="node"),
        pytest.param([storage()], "there is no pod in the file to fit", id="no-pod"),
        pytest.param(
            [pod("p", schedulingGates=[{"name": "g"}])], "all.yaml#1: the pod has sched", id="gated"
        ),
        pytest.param(
            [pod("p", schedulerName="volcano")],
            'all.yaml#1: no profile for scheduler "volcano"; give one with --config',
            id="foreign",
        ),
        pytest.param(
            [pod("p", priorityClassName="gone")],
            "all.yaml#1: .*no PriorityClass with name gone was found",
            id="refused",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(copy: list[Raw], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(documents(node("a")), documents(*copy))
