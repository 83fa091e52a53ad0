"""Plugins of v1.17 and v1.20 against worked examples and a reading of one node at a time."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import parse_label_selector
from kubestow.api.meta import OwnerReference
from kubestow.api.node import Node
from kubestow.api.node_selector import RequiredNodeAffinity
from kubestow.api.pod import AwsElasticBlockStore, Pod, Toleration, Volume
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.api.workload import Service, ServiceSpec
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import ResourceSpec, UtilizationShapePoint
from kubestow.editions.v1_9.plugins.priorities.selector_spread import spread
from kubestow.editions.v1_17.plugins import REGISTRY_117
from kubestow.editions.v1_20.plugins import default_selectors, texts
from kubestow.editions.v1_20.plugins.default_selectors import SelectorsByLabel
from kubestow.editions.v1_20.plugins.inter_pod_affinity import normalised_from_zero
from kubestow.editions.v1_20.plugins.registry import REGISTRY_120
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code
from kubestow.index.nodes import nodes_of
from kubestow.testing.builders import make_container, make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.plugin_runs import run_filter, run_score
from kubestow.testing.snapshots import make_snapshot
from kubestow.testing.storage import make_claim, make_csi_node, make_storage_class, make_volume
from kubestow.testing.topology import make_affinity, make_pod_term, make_selector, make_spread

MB = 1024 * 1024
WEB = {"app": "web"}


def plugin_of(
    name: str, snapshot: Snapshot, objects: ClusterObjects | None = None, version: str = "v1.20"
) -> Any:
    plugin_class = (REGISTRY_120 if version == "v1.20" else REGISTRY_117)[name]
    args = {} if plugin_class.args_type is None else plugin_class.args_type()
    return plugin_class(args, make_handle(snapshot, objects=objects or ClusterObjects()))


def reasons(
    name: str,
    pod: Pod,
    nodes: Sequence[Node],
    pods: Sequence[Pod] = (),
    version: str = "v1.20",
    objects: ClusterObjects | None = None,
) -> Mapping[str, tuple[Code, tuple[str, ...]]]:
    snapshot = make_snapshot(nodes, pods)
    found = run_filter(plugin_of(name, snapshot, objects, version), pod, snapshot)
    return {node: (status.code, tuple(status.reasons)) for node, status in found.items()}


# --- reasons (spec 05 §19) ---


@pytest.mark.parametrize(
    ("version", "name", "pod", "node", "expected"),
    [
        pytest.param(
            "v1.20",
            "TaintToleration",
            make_pod(),
            make_node("n", taints=["a=b:NoSchedule"]),
            ("node(s) had taint {a: b}, that the pod didn't tolerate",),
            id="v1.20-taint",
        ),
        pytest.param(
            "v1.17",
            "TaintToleration",
            make_pod(),
            make_node("n", taints=["a=b:NoSchedule"]),
            ("node(s) had taints that the pod didn't tolerate",),
            id="v1.17-taint",
        ),
        pytest.param(
            "v1.20",
            "NodeAffinity",
            make_pod(node_selector={"a": "b"}),
            make_node("n"),
            ("node(s) didn't match Pod's node affinity",),
            id="v1.20-affinity",
        ),
        pytest.param(
            "v1.17",
            "NodeAffinity",
            make_pod(node_selector={"a": "b"}),
            make_node("n"),
            ("node(s) didn't match node selector",),
            id="v1.17-affinity",
        ),
        pytest.param(
            "v1.20",
            "NodeName",
            make_pod(node="other"),
            make_node("n"),
            ("node(s) didn't match the requested hostname",),
            id="name",
        ),
        pytest.param(
            "v1.17",
            "NodeResourcesFit",
            make_pod(cpu="1"),
            make_node("n", cpu="0", pods=0),
            ("Insufficient pods", "Insufficient cpu"),
            id="v1.17-pods",
        ),
    ],
)
def test_reasons_have_the_texts_of_their_time(
    version: str, name: str, pod: Pod, node: Node, expected: tuple[str, ...]
) -> None:
    ((_, found),) = reasons(name, pod, [node], version=version).values()
    assert found == expected


def test_each_node_names_its_own_taint() -> None:
    nodes = [
        make_node("n1", taints=["a=1:NoSchedule"]),
        make_node("n2", taints=["a=1:NoSchedule", "b:NoExecute"]),
        make_node("n3", taints=["c:PreferNoSchedule"]),
    ]
    pod = make_pod(tolerations=[Toleration(key="a", operator="Exists")])
    text = "node(s) had taint {b: }, that the pod didn't tolerate"
    found = reasons("TaintToleration", pod, nodes)
    assert found == {"n2": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,))}


def test_v1_17_names_the_terms_of_running_pods_first() -> None:
    """Where the pod's own affinity fails as well."""
    zone = make_node("n1", zone="z")
    running = make_pod(
        "a", node="n1", affinity=make_affinity(apart=[make_pod_term(ZONE_LABEL, "app=web")])
    )
    pod = make_pod(labels=WEB, affinity=make_affinity(near=[make_pod_term(ZONE_LABEL, "app=db")]))
    either = "node(s) didn't match pod affinity/anti-affinity"
    far = (either, "node(s) didn't match pod affinity rules")
    forbidden = (either, "node(s) didn't satisfy existing pods anti-affinity rules")
    expected = {
        "v1.20": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, far),
        "v1.17": (Code.UNSCHEDULABLE, forbidden),
    }
    for version, answer in expected.items():
        assert reasons("InterPodAffinity", pod, [zone], [running], version) == {"n1": answer}


# --- resources ---

AMOUNTS = st.integers(0, 6)


@given(
    node=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(0, 3)),
    used=st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), max_size=3),
    wanted=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS),
)
def test_fit_agrees_with_a_reading_of_one_node(
    node: tuple[int, ...], used: list[tuple[int, ...]], wanted: tuple[int, ...]
) -> None:
    cpu, memory, gpus, pods = node
    made = make_node("n", cpu=cpu, memory=memory, pods=pods, allocatable={"x.com/gpu": gpus})
    placed = [_amounts(f"p{number}", each, node="n") for number, each in enumerate(used)]
    found = reasons("NodeResourcesFit", _amounts("new", wanted), [made], placed)
    texts: list[str] = []
    if len(used) + 1 > pods:
        texts.append("Too many pods")
    if any(wanted):
        offered = {"cpu": cpu, "memory": memory, "ephemeral-storage": 0, "x.com/gpu": gpus}
        amounts = (wanted[0], wanted[1], wanted[3], wanted[2])
        for (name, capacity), amount, place in zip(
            offered.items(), amounts, (0, 1, None, 2), strict=True
        ):
            taken = 0 if place is None else sum(each[place] for each in used)
            is_compared = name != "x.com/gpu" or amount > 0
            if is_compared and capacity < amount + taken:
                texts.append(f"Insufficient {name}")
    assert found == ({"n": (Code.UNSCHEDULABLE, tuple(texts))} if texts else {})


def _amounts(name: str, amounts: Sequence[int], node: str = "") -> Pod:
    cpu, memory, gpus, *storage = amounts
    requests = {"cpu": cpu, "memory": memory, "x.com/gpu": gpus}
    if storage:
        requests["ephemeral-storage"] = storage[0]
    return make_pod(name, requests=requests, node=node)


@given(
    node=st.tuples(st.integers(0, 8), st.integers(0, 8)),
    used=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=3),
    wanted=st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_loads_agree_with_a_reading_of_one_node(
    node: tuple[int, int], used: list[tuple[int, int]], wanted: tuple[int, int]
) -> None:
    def requested(cpu: int, memory: int) -> tuple[int, int]:
        """Milli-CPU and bytes; what is not requested counts with a default."""
        return (cpu * 1000 or 100, memory * 1024 * MB or 200 * MB)

    made = make_node("n", cpu=node[0], memory=f"{node[1]}Gi")
    placed = [
        make_pod(f"p{number}", cpu=cpu or None, memory=f"{memory}Gi" if memory else None, node="n")
        for number, (cpu, memory) in enumerate(used)
    ]
    pod = make_pod(cpu=wanted[0] or None, memory=f"{wanted[1]}Gi" if wanted[1] else None)
    taken = [
        sum(each) for each in zip(*(requested(*each) for each in (*used, wanted)), strict=True)
    ]
    capacity = [node[0] * 1000, node[1] * 1024 * MB]
    pairs = list(zip(taken, capacity, strict=True))
    least = sum((has - t) * 100 // has if has and t <= has else 0 for t, has in pairs) // 2
    most = sum(min(t, has) * 100 // has if has else 0 for t, has in pairs) // 2
    most_117 = sum(t * 100 // has if has and t <= has else 0 for t, has in pairs) // 2
    shares = [t / has if has else 1.0 for t, has in pairs]
    balanced = int((1 - abs(shares[0] - shares[1])) * 100.0) if max(shares) < 1 else 0
    snapshot = make_snapshot([made], placed)
    for name, version, expected in (
        ("NodeResourcesLeastAllocated", "v1.20", least),
        ("NodeResourcesMostAllocated", "v1.20", most),
        ("NodeResourcesMostAllocated", "v1.17", most_117),
        ("NodeResourcesBalancedAllocation", "v1.20", balanced),
    ):
        plugin = plugin_of(name, snapshot, version=version)
        assert run_score(plugin, pod, snapshot) == [expected], (name, version)


# --- scores ---


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([5, 10], [50, 100]),
        ([7, 7], [100, 100]),
        ([-7, -7], [0, 0]),
        ([20, 20, 10, 0], [100, 100, 50, 0]),
        ([-5, -10, 0], [50, 0, 100]),
        ([1, 1, -40, 0], [100, 100, 0, 97]),
        ([-20, 10, -30, 0], [25, 100, 0, 75]),
    ],
)
def test_affinity_scores_are_relative_to_0(raw: list[int], expected: list[int]) -> None:
    """The table of spec 06 §6.6.2, column v1.20."""
    assert normalised_from_zero(np.array(raw)).tolist() == expected


@pytest.mark.parametrize(
    ("counts", "zones", "expected"),
    [
        pytest.param([3, 1, 0, 2], [1, 1, 2, 0], [0, 22, 100, 33], id="L1"),
        pytest.param([3, 1, 0, 2], [0, 0, 0, 0], [0, 66, 100, 33], id="L2"),
        pytest.param([1, 1, 1, 0], [1, 1, 2, 3], [0, 0, 33, 100], id="L3"),
        pytest.param([2, 1, 0, 1], [1, 1, 2, 2], [0, 16, 77, 61], id="L4"),
        pytest.param([5, 6, 5, 4], [1, 2, 2, 2], [49, 0, 5, 11], id="L5-not-50"),
        pytest.param([0, 0, 3], [1, 2, 0], [100, 100, 0], id="L6"),
    ],
)
def test_spread_by_zone_on_the_scale_of_100(
    counts: list[int], zones: list[int], expected: list[int]
) -> None:
    assert spread(np.array(counts), np.array(zones), best=100).tolist() == expected


def test_sums_of_spread_are_truncated() -> None:
    """Spec 06 §6.3.12, G2, which v1.36 rounds to 12, 37, 75, 100."""
    nodes = [
        make_node(f"n{number}", zone=zone, labels={HOSTNAME_LABEL: f"n{number}"})
        for number, zone in enumerate(("z1", "z1", "z2", "z2"))
    ]
    pods = [
        make_pod(f"p{n}", node=f"n{n}", labels=WEB)
        for n, c in enumerate((2, 1, 1))
        for _ in range(c)
    ]
    own = [make_spread(key, "app=web", hard=False) for key in (ZONE_LABEL, HOSTNAME_LABEL)]
    snapshot = make_snapshot(nodes, pods)
    plugin = plugin_of("PodTopologySpread", snapshot)
    scores = run_score(plugin, make_pod(labels=WEB, spread=own), snapshot)
    assert scores is not None
    by_name = dict(zip(snapshot.names, scores, strict=True))
    assert by_name == {"n0": 14, "n1": 42, "n2": 71, "n3": 100}


def test_a_controller_is_found_by_its_selector() -> None:
    """Up to v1.20: the pod needs no owner reference."""
    objects = ClusterObjects()
    objects.put(Service(metadata=make_pod("s").metadata, spec=ServiceSpec(selector={"app": "web"})))
    nodes = [make_node("n1"), make_node("n2")]
    snapshot = make_snapshot(nodes, [make_pod("a", node="n1", labels=WEB)])
    for version, name in (("v1.20", "SelectorSpread"), ("v1.17", "DefaultPodTopologySpread")):
        plugin = plugin_of(name, snapshot, objects, version)
        assert run_score(plugin, make_pod(labels=WEB), snapshot) == [0, 100]
    own = [make_spread(ZONE_LABEL, "app=web")]
    skipping = plugin_of("SelectorSpread", snapshot, objects)
    assert run_score(skipping, make_pod(labels=WEB, spread=own), snapshot) is None


def test_images_of_init_containers_do_not_count() -> None:
    snapshot = make_snapshot([make_node("n", images={"big:1": 900 * MB})])
    pod = make_pod(
        containers=[make_container(image="small:1")],
        init_containers=[make_container(image="big:1")],
    )
    assert run_score(plugin_of("ImageLocality", snapshot), pod, snapshot) == [0]
    assert run_score(plugin_of("ImageLocality", snapshot), make_pod(image="big:1"), snapshot) == [
        89
    ]


def test_a_node_avoids_the_controllers_that_it_names() -> None:
    listed = '{"preferAvoidPods":[{"podSignature":{"podController":{"kind":"%s","uid":"abc"}}}]}'
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    nodes = [
        make_node(f"n{number}", annotations={key: text})
        for number, text in enumerate((listed % "ReplicaSet", listed % "StatefulSet", "{", ""))
    ]
    snapshot = make_snapshot(nodes)
    plugin = plugin_of("NodePreferAvoidPods", snapshot)
    owner = OwnerReference(
        api_version="apps/v1", kind="ReplicaSet", name="r", uid="abc", controller=True
    )
    assert run_score(plugin, make_pod(owner=owner), snapshot) == [0, 100, 100, 100]
    assert run_score(plugin, make_pod(), snapshot) == [100] * 4


# --- spread constraints, one node and one pod at a time (spec 06 §6.6.6) ---

KEYS = (ZONE_LABEL, HOSTNAME_LABEL, "rack")
NODES = st.lists(
    st.tuples(
        st.sampled_from((None, "a", "b")), st.sampled_from((None, "r")), st.sampled_from("xy")
    ),
    min_size=1,
    max_size=5,
)
CONSTRAINTS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(("app=web", "", "app=db")), st.integers(1, 2)),
    min_size=1,
    max_size=3,
)


@given(
    nodes=NODES,
    pods=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(("web", "db"))), max_size=8),
    constraints=CONSTRAINTS,
    disk=st.sampled_from((None, "x")),
)
def test_hard_constraints_agree_with_a_reading_of_one_node(
    nodes: list[tuple[str | None, str | None, str]],
    pods: list[tuple[int, str]],
    constraints: list[tuple[str, str, int]],
    disk: str | None,
) -> None:
    made = [_labelled(number, *labels) for number, labels in enumerate(nodes)]
    placed = [
        make_pod(f"p{number}", node=f"n{row % len(made)}", labels={"app": app})
        for number, (row, app) in enumerate(pods)
    ]
    own = [
        make_spread(key, selector=make_selector(*filter(None, [text])), max_skew=skew)
        for key, text, skew in constraints
    ]
    pod = make_pod(labels=WEB, spread=own, node_selector=None if disk is None else {"disk": disk})
    found = {
        name: texts[0]
        for name, (_, texts) in reasons("PodTopologySpread", pod, made, placed).items()
    }
    assert found == _read_hard(pod, made, placed)


def _labelled(number: int, zone: str | None, rack: str | None, disk: str) -> Node:
    labels = {HOSTNAME_LABEL: f"n{number}", "disk": disk}
    if rack is not None:
        labels["rack"] = rack
    return make_node(f"n{number}", zone=zone, labels=labels)


def _read_hard(pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod]) -> dict[str, str]:
    constraints = pod.spec.topology_spread_constraints
    counts: Counter[tuple[str, str]] = Counter()
    registered: set[tuple[str, str]] = set()
    required = RequiredNodeAffinity.of(pod)
    for node in nodes:
        labels = node.metadata.labels
        has_all = all(constraint.topology_key in labels for constraint in constraints)
        if has_all and required.matches(labels, node.metadata.name):
            registered |= {(each.topology_key, labels[each.topology_key]) for each in constraints}
    for constraint in constraints:
        selector = parse_label_selector(constraint.label_selector)
        for node in nodes:
            pair = (constraint.topology_key, node.metadata.labels.get(constraint.topology_key, ""))
            if pair in registered:
                counts[pair] += sum(
                    placed.spec.node_name == node.metadata.name
                    and selector.matches(placed.metadata.labels)
                    for placed in pods
                )
    found: dict[str, str] = {}
    text = "node(s) didn't match pod topology spread constraints"
    for node in nodes:
        for constraint in constraints:
            key = constraint.topology_key
            value = node.metadata.labels.get(key)
            if value is None:
                found[node.metadata.name] = f"{text} (missing required label)"
                break
            lowest = min((counts[pair] for pair in registered if pair[0] == key), default=math.inf)
            selector = parse_label_selector(constraint.label_selector)
            itself = selector.matches(pod.metadata.labels)
            if counts[key, value] + itself - lowest > constraint.max_skew:
                found[node.metadata.name] = text
                break
    return found


def test_a_pod_removed_counts_for_all_constraints_on_its_key() -> None:
    """Two constraints on one key share their counts, also in the copy that preemption works on."""
    nodes = [make_node(f"n{number}", zone=f"z{number}") for number in range(2)]
    pods = [make_pod("a", node="n0", labels=WEB), make_pod("b", node="n0", labels=WEB)]
    own = [make_spread(ZONE_LABEL, "app=web", max_skew=skew) for skew in (3, 3)]
    pod = make_pod(labels=WEB, spread=own)
    snapshot = make_snapshot(nodes, pods)
    plugin, state = plugin_of("PodTopologySpread", snapshot), CycleState()
    assert set(run_filter(plugin, pod, snapshot, state=state)) == {"n0"}
    copy = state.clone()
    info = snapshot.node_infos[0].pods[0]
    plugin.remove_pod(copy, info, info, 0)
    assert (
        plugin.filter(copy, info, nodes_of(snapshot)) is None
        or not plugin.filter(copy, info, nodes_of(snapshot)).any()
    )
    assert plugin.filter(state, info, nodes_of(snapshot)).tolist() == [1, 0]


# --- plugins that only a Policy enables (spec 09 §13.4) ---


def built(name: str, snapshot: Snapshot, objects: ClusterObjects, **args: Any) -> Any:
    plugin_class = REGISTRY_120[name]
    assert plugin_class.args_type is not None
    handle = make_handle(snapshot, objects=objects)
    return plugin_class(plugin_class.args_type(**args), handle)


def test_node_label_requires_and_prefers() -> None:
    nodes = [
        make_node("n1", labels={"ssd": ""}),
        make_node("n2"),
        make_node("n3", labels={"old": ""}),
    ]
    snapshot, objects = make_snapshot(nodes), ClusterObjects()
    plugin = built("NodeLabel", snapshot, objects, absent_labels=("old",))
    (status,) = run_filter(plugin, make_pod(), snapshot).values()
    assert tuple(status.reasons) == ("node(s) didn't have the requested labels",)
    wishes = {"present_labels_preference": ("ssd",), "absent_labels_preference": ("old",)}
    plugin = built("NodeLabel", snapshot, objects, **wishes)
    assert run_score(plugin, make_pod(), snapshot) == [100, 50, 0]


def test_pods_of_a_service_stay_together_or_apart() -> None:
    objects = ClusterObjects()
    objects.put(Service(metadata=make_pod("s").metadata, spec=ServiceSpec(selector=WEB)))
    nodes = [make_node(f"n{number}", labels={"rack": rack}) for number, rack in enumerate("aab")]
    nodes.append(make_node("n3"))
    snapshot = make_snapshot(
        nodes,
        [
            make_pod("a", node="n0", labels=WEB),
            make_pod("b", node="n2", labels=WEB),
            make_pod("c", node="n2", labels=WEB),
        ],
    )
    plugin = built("ServiceAffinity", snapshot, objects, affinity_labels=("rack",))
    found = run_filter(plugin, make_pod(labels=WEB), snapshot)
    assert set(found) == {"n2", "n3"}
    assert {tuple(s.reasons) for s in found.values()} == {
        ("node(s) didn't match service affinity",)
    }
    plugin = built("ServiceAffinity", snapshot, objects, anti_affinity_labels_preference=("rack",))
    # One of three pods in rack a, two in rack b; a node without the label scores 0.
    assert run_score(plugin, make_pod(labels=WEB), snapshot) == [66, 66, 33, 0]
    assert run_score(plugin, make_pod(), snapshot) == [100, 100, 100, 0]


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param("0", 2, id="default-request-rounds-up"),
        pytest.param("1", 13, id="an-eighth-rounds-up"),
        pytest.param("8", 100, id="full"),
        pytest.param("9", 100, id="more-than-there-is"),
    ],
)
def test_the_ratio_rounds_utilization_up(requested: str, expected: int) -> None:
    snapshot = make_snapshot([make_node("n", cpu="8")])
    shape = (
        UtilizationShapePoint(utilization=0, score=0),
        UtilizationShapePoint(utilization=100, score=10),
    )
    plugin = built(
        "RequestedToCapacityRatio",
        snapshot,
        ClusterObjects(),
        shape=shape,
        resources=(ResourceSpec(name="cpu", weight=1),),
    )
    pod = make_pod() if requested == "0" else make_pod(cpu=requested)
    assert run_score(plugin, pod, snapshot) == [expected]


# --- volumes (spec 07 §7.2) ---


def ebs_pod(name: str, *disks: str, node: str = "") -> Pod:
    volumes = [
        Volume(name=disk, aws_elastic_block_store=AwsElasticBlockStore(volume_id=disk))
        for disk in disks
    ]
    return make_pod(name, volumes=volumes, node=node)


@pytest.mark.parametrize(
    ("held", "wanted", "node", "fits"),
    [
        pytest.param(38, ["new"], make_node("n"), True, id="39"),
        pytest.param(39, ["new"], make_node("n"), False, id="40"),
        pytest.param(39, ["d0"], make_node("n"), True, id="mounted-already"),
        pytest.param(
            25,
            ["new"],
            make_node("n", labels={"node.kubernetes.io/instance-type": "m5.large"}),
            False,
            id="nitro",
        ),
        pytest.param(
            2,
            ["new"],
            make_node("n", allocatable={"attachable-volumes-aws-ebs": 2}),
            False,
            id="of-the-node",
        ),
    ],
)
def test_a_node_has_a_limit_of_disks(held: int, wanted: list[str], node: Node, fits: bool) -> None:
    placed = [ebs_pod("a", *(f"d{number}" for number in range(held)), node="n")]
    found = reasons("EBSLimits", ebs_pod("b", *wanted), [node], placed)
    text = "node(s) exceed max volume count"
    assert found == ({} if fits else {"n": (Code.UNSCHEDULABLE, (text,))})


def test_disks_of_a_migrated_driver_are_not_counted() -> None:
    objects = ClusterObjects()
    csi_node = make_csi_node("n")
    csi_node.metadata.annotations["storage.alpha.kubernetes.io/migrated-plugins"] = (
        "kubernetes.io/aws-ebs"
    )
    objects.put(csi_node)
    placed = [ebs_pod("a", *(f"d{number}" for number in range(39)), node="n")]
    assert not reasons("EBSLimits", ebs_pod("b", "new"), [make_node("n")], placed, objects=objects)


def test_an_unbound_claim_counts_by_its_class() -> None:
    objects = ClusterObjects()
    objects.put(make_storage_class("fast", provisioner="kubernetes.io/gce-pd"))
    objects.put(make_claim("data", class_name="fast"))
    node = make_node("n", allocatable={"attachable-volumes-gce-pd": 0})
    pod = make_pod(pvcs=["data"])
    assert set(reasons("GCEPDLimits", pod, [node], objects=objects)) == {"n"}
    assert not reasons("AzureDiskLimits", pod, [node], objects=objects)


def test_a_node_without_zones_fits_before_claims_are_read() -> None:
    found = reasons(
        "VolumeZone", make_pod(pvcs=["gone"]), [make_node("n1"), make_node("n2", zone="z")]
    )
    unresolvable = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found == {"n2": (unresolvable, ('persistentvolumeclaim "gone" not found',))}


def test_todays_label_does_not_stand_in_for_the_older_one() -> None:
    objects = ClusterObjects()
    labels = {"failure-domain.beta.kubernetes.io/zone": "z"}
    objects.put(make_volume("v", labels=labels), make_claim("data", volume="v"))
    nodes = [make_node("new", zone="z"), make_node("old", labels=labels), make_node("none")]
    found = reasons("VolumeZone", make_pod(pvcs=["data"]), nodes, objects=objects)
    assert set(found) == {"new"}


# --- what is kept ---


def test_beyond_the_limit_taints_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "TAINT_REASONS_MAX", 2)
    nodes = [make_node(f"n{number}", taints=[f"t{number}:NoSchedule"]) for number in range(4)]
    found = [text for _, (text,) in reasons("TaintToleration", make_pod(), nodes).values()]
    named = [text for text in found if "that the pod didn't tolerate" in text and "{" in text]
    assert len(named) == 2
    assert found.count("node(s) had taints that the pod didn't tolerate") == 2


def test_selectors_follow_services(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = ClusterObjects()
    selectors = SelectorsByLabel(objects)
    assert selectors.of(make_pod(labels=WEB)).is_empty
    service = Service(metadata=make_pod("s").metadata, spec=ServiceSpec(selector={"app": "web"}))
    objects.put(service)
    assert selectors.of(make_pod(labels=WEB)).matches(WEB)
    monkeypatch.setattr(default_selectors, "SELECTORS_KEPT_MAX", 3)
    for number in range(10):
        selectors.of(make_pod(labels={"app": str(number)}))
        assert len(selectors._kept) <= 3
