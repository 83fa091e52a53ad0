"""The rules of v1.9 agree with a reading of the specification that looks at one node at a time.

The reading below knows no arrays and no memory: it walks over every pod on every node. The rules
are asked in a cluster that changes between the questions, and about any part of its nodes: what
they keep from one attempt to the next must never show.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.labels import parse_label_selector, selector_from_map
from kubestow.api.meta import Condition, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledTerm, compile_node_selector
from kubestow.api.pod import (
    AwsElasticBlockStore,
    GcePersistentDisk,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    Volume,
)
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, HOSTNAME_LABEL
from kubestow.api.workload import Service, ServiceSpec
from kubestow.editions.v1_9.plugins.contract import Predicate, Priority
from kubestow.editions.v1_9.plugins.predicates.labels_presence import LabelsPresence
from kubestow.editions.v1_9.plugins.priorities.label_preference import LabelPreference
from kubestow.editions.v1_9.plugins.priorities.service_anti_affinity import ServiceAntiAffinity
from kubestow.editions.v1_9.plugins.registry import PREDICATES, PRIORITIES, Settings
from kubestow.index.nodes import nodes_of
from kubestow.testing.builders import (
    make_container,
    make_node,
    make_node_affinity,
    make_pod,
    make_term,
)
from kubestow.testing.storage import make_claim, make_volume
from kubestow.testing.topology import make_affinity, make_pod_term
from tools.bench_v1_9 import BenchV19
from tools.plain_rules import tolerates

LIMIT = 3
HARD_WEIGHT = 7
SETTINGS = Settings(HARD_WEIGHT, {"KUBE_MAX_PD_VOLS": str(LIMIT)})
KEYS = (HOSTNAME_LABEL, BETA_ZONE_LABEL, "rack")
OBJECTS = [
    Service(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=ServiceSpec(selector={"app": "web"}),
    ),
    make_claim("bound", volume="pv"),
    make_claim("unbound"),
    make_volume(
        "pv",
        aws_elastic_block_store=AwsElasticBlockStore(volume_id="d0"),
        labels={BETA_ZONE_LABEL: "z0__z1"},
    ),
]


class Place(NamedTuple):
    """A node and the pods on it."""

    node: Node
    pods: list[Pod]

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels


# --- the reading: predicates ---


def amounts(pods: Iterable[Pod], name: str) -> int:
    """Requests of regular containers, rounded one by one."""
    return sum(
        (quantity.milli_value() if name == "cpu" else quantity.value())
        for pod in pods
        for container in pod.spec.containers
        if (quantity := (container.resources.requests or {}).get(name)) is not None
    )


def wanted(pod: Pod, name: str) -> int:
    inits = (
        msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(pod.spec, containers=(container,), init_containers=()),
        )
        for container in pod.spec.init_containers
    )
    return max(amounts([pod], name), *(amounts([init], name) for init in inits), 0)


def offered(node: Node, name: str) -> int:
    quantity = node.status.allocatable.get(name)
    if quantity is None:
        return 0
    return quantity.milli_value() if name == "cpu" else quantity.value()


def resources(pod: Pod, place: Place) -> list[str]:
    names = ["cpu", "memory", "ephemeral-storage", "example.com/gpu"]
    reasons = ["Insufficient pods"] if len(place.pods) + 1 > offered(place.node, "pods") else []
    has_gpu = any(
        "example.com/gpu" in (container.resources.requests or {})
        for container in pod.spec.containers
    )
    if not has_gpu:
        names.pop()
        if not any(wanted(pod, name) for name in names):
            return reasons
    return reasons + [
        f"Insufficient {name}"
        for name in names
        if offered(place.node, name) < wanted(pod, name) + amounts(place.pods, name)
    ]


def host_ports(pod: Pod, place: Place) -> list[str]:
    mine = {port.host_port for entry in pod.spec.containers for port in entry.ports}
    taken = {
        port.host_port
        for other in place.pods
        for entry in other.spec.containers
        for port in entry.ports
    }
    return ["PodFitsHostPorts"] if mine & taken else []


def node_selector(pod: Pod, place: Place) -> list[str]:
    chosen = pod.spec.node_selector or {}
    fits = all(place.labels.get(key) == value for key, value in chosen.items())
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required
        if required is not None:
            terms = compile_node_selector(required).terms
            fits = fits and any(term.matches(place.labels, "") for term in terms)
    return [] if fits else ["MatchNodeSelector"]


def general(pod: Pod, place: Place) -> list[str]:
    return resources(pod, place) + host_ports(pod, place) + node_selector(pod, place)


def taints(pod: Pod, place: Place) -> list[str]:
    bad = any(
        taint.effect in ("NoSchedule", "NoExecute")
        and not any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)
        for taint in place.node.spec.taints
    )
    return ["PodToleratesNodeTaints"] if bad else []


def ready(pod: Pod, place: Place) -> list[str]:
    bad = [cond for cond in place.node.status.conditions if cond.type == "Ready"]
    reasons = ["NodeNotReady" for cond in bad if cond.status != "True"]
    return reasons + (["NodeUnschedulable"] if place.node.spec.unschedulable else [])


def disk_conflict(pod: Pod, place: Place) -> list[str]:
    def disks(pods: Iterable[Pod]) -> list[tuple[str, bool]]:
        return [
            (disk.pd_name, disk.read_only)
            for one in pods
            for volume in one.spec.volumes
            if (disk := volume.gce_persistent_disk) is not None
        ]

    def ebs(pods: Iterable[Pod]) -> set[str]:
        return {
            disk.volume_id
            for one in pods
            for volume in one.spec.volumes
            if (disk := volume.aws_elastic_block_store) is not None
        }

    bad = any(
        mine == theirs and not (i_read and they_read)
        for mine, i_read in disks([pod])
        for theirs, they_read in disks(place.pods)
    ) or bool(ebs([pod]) & ebs(place.pods))
    return ["NoDiskConflict"] if bad else []


def ebs_count(pod: Pod, place: Place) -> list[str]:
    def ids(pods: Iterable[Pod]) -> set[str]:
        found: set[str] = set()
        for one in pods:
            for volume in one.spec.volumes:
                if volume.aws_elastic_block_store is not None:
                    found.add(volume.aws_elastic_block_store.volume_id)
                if volume.persistent_volume_claim is not None:
                    name = volume.persistent_volume_claim.claim_name
                    key = f"{one.metadata.namespace}/{name}"
                    found.add("d0" if key == "default/bound" else f"claim {key}")
        return found

    mine = ids([pod])
    return ["MaxVolumeCount"] if mine and len(mine | ids(place.pods)) > LIMIT else []


def volume_zone(pod: Pod, place: Place) -> list[str]:
    if BETA_ZONE_LABEL not in place.labels and BETA_REGION_LABEL not in place.labels:
        return []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        if pod.metadata.namespace != "default":
            return [f'error: persistentvolumeclaim "{name}" not found']
        if name == "unbound":
            return ['error: PersistentVolumeClaim is not bound: "unbound"']
        if place.labels.get(BETA_ZONE_LABEL, "") not in ("z0", "z1"):
            return ["NoVolumeZoneConflict"]
    return []


def means(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    namespaces = term.namespaces or (owner.metadata.namespace,)
    selector = parse_label_selector(term.label_selector)
    return other.metadata.namespace in namespaces and selector.matches(other.metadata.labels)


def same_domain(key: str, one: Place, other: Place) -> bool:
    value = one.labels.get(key)
    return value is not None and value == other.labels.get(key)


def parts_of(pod: Pod) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return near or PodAffinity(), apart or PodAffinity()


def inter_pod(pod: Pod, place: Place, places: Sequence[Place]) -> list[str]:
    def failed(part: str) -> list[str]:
        return ["MatchInterPodAffinity", f"{part}RulesNotMatch"]

    for other in places:
        for running in other.pods:
            terms = parts_of(running)[1].required
            if any(means(term, running, pod) for term in terms) and same_domain(
                terms[-1].topology_key, place, other
            ):
                return failed("ExistingPodsAntiAffinity")
    near, apart = parts_of(pod)
    for term in near.required:
        found = [other for other in places for one in other.pods if means(term, pod, one)]
        if any(same_domain(term.topology_key, place, other) for other in found):
            continue
        if found or not means(term, pod, pod):
            return failed("PodAffinity")
    for term in apart.required:
        if any(
            same_domain(term.topology_key, place, other) and means(term, pod, one)
            for other in places
            for one in other.pods
        ):
            return failed("PodAntiAffinity")
    return []


# --- the reading: priorities, over the feasible places ---


def total(pod: Pod, place: Place, name: str) -> int:
    default = 100 if name == "cpu" else 200 * 1024 * 1024
    return sum(
        default
        if name not in (container.resources.requests or {})
        else amounts(
            [
                msgspec.structs.replace(
                    one, spec=msgspec.structs.replace(one.spec, containers=(container,))
                )
            ],
            name,
        )
        for one in (*place.pods, pod)
        for container in one.spec.containers
    )


def least(pod: Pod, place: Place) -> int:
    def share(name: str) -> int:
        capacity, used = offered(place.node, name), total(pod, place, name)
        return 0 if capacity == 0 or used > capacity else (capacity - used) * 10 // capacity

    return (share("cpu") + share("memory")) // 2


def most(pod: Pod, place: Place) -> int:
    def share(name: str) -> int:
        capacity, used = offered(place.node, name), total(pod, place, name)
        return 0 if capacity == 0 or used > capacity else used * 10 // capacity

    return (share("cpu") + share("memory")) // 2


def balanced(pod: Pod, place: Place) -> int:
    cpu, memory = (
        total(pod, place, name) / capacity if (capacity := offered(place.node, name)) else 1.0
        for name in ("cpu", "memory")
    )
    return 0 if cpu >= 1 or memory >= 1 else int((1 - abs(cpu - memory)) * 10.0)


def shares(raw: list[int], *, reverse: bool = False) -> list[int]:
    highest = max(raw, default=0)
    if highest == 0:
        return [10 if reverse else 0] * len(raw)
    found = [10 * value // highest for value in raw]
    return [10 - value for value in found] if reverse else found


def soft_taints(pod: Pod, feasible: Sequence[Place]) -> list[int]:
    soft = [entry for entry in pod.spec.tolerations if entry.effect in ("", "PreferNoSchedule")]
    raw = [
        sum(
            taint.effect == "PreferNoSchedule"
            and not any(tolerates(toleration, taint) for toleration in soft)
            for taint in place.node.spec.taints
        )
        for place in feasible
    ]
    return shares(raw, reverse=True)


def preferred(pod: Pod, feasible: Sequence[Place]) -> list[int]:
    affinity = pod.spec.affinity
    terms = affinity.node_affinity.preferred if affinity and affinity.node_affinity else None

    def compiled(term: NodeSelectorTerm) -> Iterable[CompiledTerm]:
        return compile_node_selector(NodeSelector(node_selector_terms=(term,))).terms

    raw = [
        sum(
            term.weight
            for term in terms or ()
            if any(one.matches(place.labels, "") for one in compiled(term.preference))
        )
        for place in feasible
    ]
    return shares(raw)


def images(pod: Pod, place: Place) -> int:
    mb = 1024 * 1024
    size = sum(
        image.size_bytes
        for container in pod.spec.containers
        for image in place.node.status.images
        if container.image in image.names
    )
    if size < 23 * mb:
        return 0
    return 10 if size >= 1000 * mb else 10 * (size - 23 * mb) // (977 * mb) + 1


def spread(pod: Pod, feasible: Sequence[Place]) -> list[int]:
    is_served = selector_from_map({"app": "web"}).matches(pod.metadata.labels)
    counts = [
        sum(
            is_served
            and pod.metadata.namespace == "default" == one.metadata.namespace
            and one.metadata.labels.get("app") == "web"
            for one in place.pods
        )
        for place in feasible
    ]

    def zone(place: Place) -> tuple[str, str]:
        return place.labels.get(BETA_REGION_LABEL, ""), place.labels.get(BETA_ZONE_LABEL, "")

    by_zone: dict[tuple[str, str], int] = {}
    for place, number in zip(feasible, counts, strict=True):
        if zone(place) != ("", ""):
            by_zone[zone(place)] = by_zone.get(zone(place), 0) + number
    highest, highest_zone = max(counts, default=0), max(by_zone.values(), default=0)
    scores: list[int] = []
    for place, number in zip(feasible, counts, strict=True):
        score = 10.0 if highest == 0 else 10.0 * ((highest - number) / highest)
        if zone(place) != ("", ""):
            in_zone = by_zone[zone(place)]
            zoned = 10.0 if highest_zone == 0 else 10.0 * ((highest_zone - in_zone) / highest_zone)
            score = (score * (1.0 - 2.0 / 3.0)) + (2.0 / 3.0 * zoned)
        scores.append(int(score))
    return scores


def apart_by_rack(pod: Pod, feasible: Sequence[Place], places: Sequence[Place]) -> list[int]:
    def is_peer(one: Pod) -> bool:
        return one.metadata.namespace == "default" and one.metadata.labels.get("app") == "web"

    is_served = is_peer(pod)
    peers = sum(is_peer(one) for place in places for one in place.pods) if is_served else 0
    scores: list[int] = []
    for place in feasible:
        rack = place.labels.get("rack")
        near = sum(
            is_peer(one)
            for other in feasible
            if other.labels.get("rack") == rack
            for one in other.pods
        )
        if rack is None:
            scores.append(0)
        else:
            scores.append(10 if peers == 0 else int(10.0 * ((peers - near) / peers)))
    return scores


def attraction(pod: Pod, feasible: Sequence[Place], places: Sequence[Place]) -> list[int]:
    raw = [0] * len(feasible)

    def pull(term: PodAffinityTerm, at: Place, weight: int) -> None:
        for index, place in enumerate(feasible):
            if same_domain(term.topology_key, at, place):
                raw[index] += weight

    for other in places:
        for one in other.pods:
            for owner, target in ((pod, one), (one, pod)):
                near, apart = parts_of(owner)
                for sign, part in ((1, near), (-1, apart)):
                    for entry in part.preferred:
                        if means(entry.pod_affinity_term, owner, target):
                            pull(entry.pod_affinity_term, other, sign * entry.weight)
            for term in parts_of(one)[0].required:
                if means(term, one, pod):
                    pull(term, other, HARD_WEIGHT)
    highest, lowest = max(raw, default=0), min(raw, default=0)
    highest, lowest = max(highest, 0), min(lowest, 0)
    if highest == lowest:
        return [0] * len(raw)
    return [int(10.0 * ((value - lowest) / (highest - lowest))) for value in raw]


# --- random clusters ---

_names = count()


class Maker:
    """Draws nodes and pods that often get in each other's way."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def one_of(self, *choices: str) -> str:
        return choices[int(self._rng.integers(len(choices)))]

    def number(self, below: int) -> int:
        return int(self._rng.integers(below))

    def node(self, name: str) -> Node:
        labels = {HOSTNAME_LABEL: name} if self.chance(0.9) else {}
        if self.chance(0.7):
            labels[BETA_ZONE_LABEL] = self.one_of("z0", "z1", "z2")
        if self.chance(0.2):
            labels[BETA_REGION_LABEL] = self.one_of("", "r0")
        if self.chance(0.5):
            labels["rack"] = self.one_of("0", "1", "2")
        return make_node(
            name,
            cpu=self.one_of("0", "1", "2"),
            memory=self.one_of("512Mi", "2Gi"),
            pods=self.number(5),
            allocatable={"example.com/gpu": 1} if self.chance(0.4) else None,
            labels=labels,
            taints=[
                f"t{self.number(2)}:{effect}"
                for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")
                if self.chance(0.2)
            ],
            unschedulable=self.chance(0.1),
            images={f"image-{number}": self.number(700 << 20) for number in range(self.number(3))},
            conditions=[Condition(type="Ready", status=self.one_of("True", "True", "Unknown"))]
            if self.chance(0.5)
            else [],
        )

    def pod(self, *, node: str = "") -> Pod:
        requests: dict[str, str] = {}
        if self.chance(0.5):
            requests["cpu"] = self.one_of("0", "1500u", "300m", "700m")
        if self.chance(0.5):
            requests["memory"] = self.one_of("0", "100M", "300Mi")
        if self.chance(0.2):
            requests["example.com/gpu"] = self.one_of("0", "1")
        return make_pod(
            f"p{next(_names)}",
            namespace=self.one_of("default", "default", "other"),
            labels={"app": self.one_of("web", "db")} if self.chance(0.8) else {},
            containers=[
                make_container(
                    requests=requests,
                    image=f"image-{self.number(3)}",
                    host_ports=[80 + self.number(2)] if self.chance(0.3) else [],
                ),
                *([make_container(cpu="200500u")] if self.chance(0.3) else []),
            ],
            init_containers=[make_container(cpu="900m")] if self.chance(0.2) else [],
            node=node,
            node_selector={"rack": self.one_of("0", "1")} if self.chance(0.2) else None,
            affinity=self.affinity(),
            tolerations=[
                Toleration(key=f"t{self.number(2)}", operator="Exists", effect=effect)
                for effect in ("", "NoSchedule", "PreferNoSchedule")
                if self.chance(0.2)
            ],
            volumes=self.volumes(),
            pvcs=[name for name in ("bound", "unbound") if self.chance(0.1)],
        )

    def volumes(self) -> list[Volume]:
        disks: list[Volume] = []
        for number in range(3):
            if self.chance(0.15):
                disk = AwsElasticBlockStore(volume_id=f"d{number}")
                disks.append(Volume(aws_elastic_block_store=disk))
            if self.chance(0.15):
                gce = GcePersistentDisk(pd_name=f"d{number}", read_only=self.chance(0.5))
                disks.append(Volume(gce_persistent_disk=gce))
        return disks

    def affinity(self) -> object:
        terms: dict[str, list[object]] = {"near": [], "apart": [], "prefers": [], "avoids": []}
        for kind, found in terms.items():
            while self.chance(0.25):
                namespaces = ["other"] if self.chance(0.2) else []
                term = make_pod_term(
                    self.one_of(*KEYS), f"app={self.one_of('web', 'db')}", namespaces=namespaces
                )
                is_weighted = kind in ("prefers", "avoids")
                found.append((1 + self.number(100), term) if is_weighted else term)
        affinity = make_affinity(**terms)
        if not self.chance(0.4):
            return affinity
        choices = [
            make_term(f"rack {self.one_of('In', 'NotIn')} {self.number(3)}"),
            make_term("rack Gt 0"),
            make_term(f"{BETA_ZONE_LABEL} Exists"),
        ]
        picked = [term for term in choices if self.chance(0.5)]
        return msgspec.structs.replace(
            affinity,
            node_affinity=make_node_affinity(
                *(picked if self.chance(0.5) else ()),
                preferred=[(1 + self.number(20), term) for term in choices],
            ),
        )


class Churning(BenchV19):
    """A cluster that changes; every node of it can be read as a `Place`."""

    def __init__(self, seed: int) -> None:
        super().__init__(objects=OBJECTS)
        self.make = Maker(seed)
        for number in range(5):
            self.cache.add_node(self.make.node(f"n{number}"))

    @property
    def places(self) -> list[Place]:
        self.snapshot.refresh(self.cache)
        infos = zip(self.snapshot.nodes, self.snapshot.node_infos, strict=True)
        return [Place(node, [pod.pod for pod in info.pods]) for node, info in infos]

    def change(self) -> None:
        name = f"n{self.make.number(7)}"
        info = self.cache.nodes.get(name)
        node = None if info is None else info.node
        if node is None:
            self.cache.add_node(self.make.node(name))
        elif self.make.chance(0.3):
            self.cache.update_node(node, self.make.node(name))
        elif info is not None and info.pods and self.make.chance(0.3):
            self.cache.remove_pod(info.pods[0].pod)
        elif info is not None and not info.pods and self.make.chance(0.2):
            self.cache.remove_node(node)
        elif info is not None:
            pod = self.make.pod()
            # A port held twice is free once one of its holders is removed: they are not counted.
            if not host_ports(pod, Place(node, [running.pod for running in info.pods])):
                self.cache.assume_pod(self.attempt(pod).pod.assigned_to(name))


PlaceRule = Callable[[Pod, Place], list[str]]
PREDICATE_READINGS: dict[str, PlaceRule] = {
    "PodFitsResources": resources,
    "PodFitsHostPorts": host_ports,
    "MatchNodeSelector": node_selector,
    "GeneralPredicates": general,
    "PodToleratesNodeTaints": taints,
    "CheckNodeCondition": ready,
    "NoDiskConflict": disk_conflict,
    "MaxEBSVolumeCount": ebs_count,
    "NoVolumeZoneConflict": volume_zone,
}
SCORE_READINGS: dict[str, Callable[[Pod, Place], int]] = {
    "LeastRequestedPriority": least,
    "MostRequestedPriority": most,
    "BalancedResourceAllocation": balanced,
    "ImageLocalityPriority": images,
}
LIST_READINGS: dict[str, Callable[[Pod, Sequence[Place]], list[int]]] = {
    "NodeAffinityPriority": preferred,
    "TaintTolerationPriority": soft_taints,
    "SelectorSpreadPriority": spread,
}
RULES: dict[str, Predicate] = {name: make(name, SETTINGS) for name, make in PREDICATES.items()}
SCORES: dict[str, Priority] = {name: make(name, SETTINGS) for name, make in PRIORITIES.items()}
APART = ServiceAntiAffinity("apart", label="rack")
HAS_RACK = LabelsPresence("rack", labels=["rack"], presence=True)
LIKES_RACK = LabelPreference("rack", label="rack", presence=True)
SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_predicates_agree_with_a_reading_by_node(seed: int) -> None:
    cluster = Churning(seed)
    for _ in range(8):
        for _ in range(cluster.make.number(4)):
            cluster.change()
        pod, places = cluster.make.pod(), cluster.places
        for name, reading in PREDICATE_READINGS.items():
            expected = {place.node.metadata.name: reading(pod, place) for place in places}
            found = cluster.verdicts(RULES[name], pod)
            assert found == {node: texts for node, texts in expected.items() if texts}, name
        expected = {place.node.metadata.name: inter_pod(pod, place, places) for place in places}
        found = cluster.verdicts(RULES["MatchInterPodAffinity"], pod)
        assert found == {node: texts for node, texts in expected.items() if texts}
        lacking = {place.node.metadata.name for place in places if "rack" not in place.labels}
        assert cluster.verdicts(HAS_RACK, pod).keys() == lacking


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_priorities_agree_with_a_reading_by_node(seed: int) -> None:
    cluster = Churning(seed)
    for _ in range(8):
        for _ in range(cluster.make.number(4)):
            cluster.change()
        pod, places = cluster.make.pod(), cluster.places
        feasible = [place for place in places if cluster.make.chance(0.7)]
        names = [place.node.metadata.name for place in feasible]
        if not names:
            continue

        def scores(priority: Priority, pod: Pod = pod, names: list[str] = names) -> list[int]:
            return list(cluster.scores(priority, pod, names).values())

        for name, reading in SCORE_READINGS.items():
            assert scores(SCORES[name]) == [reading(pod, place) for place in feasible], name
        for name, list_reading in LIST_READINGS.items():
            assert scores(SCORES[name]) == list_reading(pod, feasible), name
        assert scores(SCORES["InterPodAffinityPriority"]) == attraction(pod, feasible, places)
        assert scores(APART) == apart_by_rack(pod, feasible, places)
        assert scores(LIKES_RACK) == [10 * ("rack" in place.labels) for place in feasible]


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_a_verdict_does_not_depend_on_the_other_nodes_of_the_view(seed: int) -> None:
    cluster = Churning(seed)
    for _ in range(20):
        cluster.change()
    pod, places = cluster.make.pod(), cluster.places
    rows = np.array([row for row in range(len(places)) if cluster.make.chance(0.5)], np.intp)
    some = nodes_of(cluster.snapshot, rows)
    for name, predicate in RULES.items():
        expected = cluster.verdicts(predicate, pod)
        found = cluster.verdicts(predicate, pod, some)
        asked = set(some.names)
        assert found == {node: texts for node, texts in expected.items() if node in asked}, name
