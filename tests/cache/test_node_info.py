"""What one node adds up over its pods, and in which order it keeps them."""

from datetime import UTC, datetime

import pytest

from kubestow.api.pod import (
    Affinity,
    AzureDisk,
    NamedSource,
    PersistentVolumeClaimSource,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Volume,
    WeightedPodAffinityTerm,
)
from kubestow.api.pod_info import PodInfo
from kubestow.api.ports import HostPort
from kubestow.cache.node_info import NodeInfo
from kubestow.errors import CacheError
from kubestow.testing import make_container, make_node, make_pod
from kubestow.testing.storage import make_ephemeral_volume

GPU = "example.com/gpu"
TERM = PodAffinityTerm(topology_key="zone")
PORT_80 = HostPort("0.0.0.0", "TCP", 80)


def info_with(*pods: Pod) -> NodeInfo:
    info = NodeInfo("n1")
    info.set_node(make_node("n1"))
    for pod in pods:
        info.add_pod(PodInfo(pod))
    return info


def names(pods: list[PodInfo]) -> list[str]:
    return [pod.name for pod in pods]


def anti(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=terms))


def pod_a() -> Pod:
    return make_pod(
        "a",
        namespace="ns",
        cpu="500m",
        memory="1Gi",
        requests={GPU: 1},
        host_ports=[80],
        pvcs=["d"],
    )


def pod_b() -> Pod:
    return make_pod(
        "b",
        namespace="ns",
        host_ports=[80],
        pvcs=["d", "d"],
        affinity=Affinity(pod_anti_affinity=PodAffinity()),
    )


def pod_c() -> Pod:
    return make_pod("c", namespace="ns", affinity=anti(TERM))


# --- sums (spec 03 §1.4, 01 §5.1) ---


@pytest.mark.parametrize(
    ("pod", "requested", "non_zero"),
    [
        pytest.param(
            make_pod(containers=[make_container("x", cpu="100m"), make_container("y")]),
            (100, 0),
            (200, 419430400),
            id="03-1.4-1-a-container-that-says-nothing",
        ),
        pytest.param(
            make_pod(
                cpu="300m",
                memory="1Gi",
                init_containers=[
                    make_container("side", cpu="200m", restart_policy="Always"),
                    make_container("init", cpu="500m"),
                ],
            ),
            (700, 1073741824),
            (700, 1283457024),
            id="03-1.4-2-a-sidecar-before-an-init-container",
        ),
    ],
)
def test_a_pod_counts_with_and_without_defaults(
    pod: Pod, requested: tuple[int, int], non_zero: tuple[int, int]
) -> None:
    info = info_with(pod)
    assert (info.requested.milli_cpu, info.requested.memory) == requested
    assert (info.non_zero_cpu, info.non_zero_memory) == non_zero


def test_i1_everything_adds_up() -> None:
    info = NodeInfo("n1")
    before = info.generation
    for pod in (pod_a(), pod_b(), pod_c()):
        info.add_pod(PodInfo(pod))
    assert names(info.pods) == ["a", "b", "c"]
    assert (info.requested.milli_cpu, info.requested.memory) == (500, 1073741824)
    assert info.requested.scalar == {GPU: 1}
    assert info.requested.allowed_pods == 0
    assert (info.non_zero_cpu, info.non_zero_memory) == (700, 1493172224)
    assert names(info.pods_with_affinity) == ["b", "c"]
    assert names(info.pods_with_required_anti_affinity) == ["c"]
    assert info.used_ports.conflicts(PORT_80)
    assert info.pvc_ref_counts == {"ns/d": 3}
    assert info.generation == before + 3


def test_i2_to_i5_removal_gives_back_what_was_counted() -> None:
    a, b, c = pod_a(), pod_b(), pod_c()
    info = info_with(a, b, c)
    info.remove_pod(a)
    assert names(info.pods) == ["c", "b"]
    assert (info.requested.milli_cpu, info.requested.memory) == (0, 0)
    assert info.requested.scalar == {GPU: 0}  # I2: it drops to zero and stays
    assert (info.non_zero_cpu, info.non_zero_memory) == (200, 419430400)
    assert not info.used_ports.conflicts(PORT_80)  # I2: although b still requests it
    assert info.pvc_ref_counts == {"ns/d": 2}
    with pytest.raises(CacheError, match=r"^no corresponding pod a in pods of node n1$"):
        info.remove_pod(a)  # I3
    generation = info.generation
    with pytest.raises(CacheError, match=r"^cannot get cache key for pod with empty UID$"):
        info.remove_pod(make_pod("a", uid=""))  # I4
    assert info.generation == generation
    info.remove_pod(b)
    info.remove_pod(c)
    assert info.pods == []
    assert info.pods_with_affinity == []
    assert info.pods_with_required_anti_affinity == []
    assert info.pvc_ref_counts == {}
    assert info.class_counts == {}
    assert info.live_class_counts == {}
    assert info.requested.scalar == {GPU: 0}  # I5


def test_i6_a_node_without_allowed_pods_takes_none() -> None:
    info = NodeInfo("n1")
    info.set_node(make_node("n1", pods=None))
    assert info.allocatable.allowed_pods == 0


def test_sums_beyond_64_bits_wrap_as_upstream() -> None:
    largest = 2**63 - 1
    info = info_with(*(make_pod(name, memory=largest) for name in "ab"))
    assert info.requested.memory == -2


# --- order of pods ---


def test_1_4_3_removal_moves_the_last_pod_into_the_gap() -> None:
    pods = {name: make_pod(name) for name in "abcd"}
    info = info_with(*pods.values())
    info.remove_pod(pods["b"])
    assert names(info.pods) == ["a", "d", "c"]
    info.add_pod(PodInfo(pods["b"]))
    assert names(info.pods) == ["a", "d", "c", "b"]
    info.remove_pod(pods["a"])
    assert names(info.pods) == ["b", "d", "c"]


def test_1_4_4_a_port_two_pods_hold_is_free_when_one_goes() -> None:
    first, second = make_pod("p1", host_ports=[80]), make_pod("p2", host_ports=[80])
    info = info_with(first, second)
    info.remove_pod(first)
    assert not info.used_ports.conflicts(PORT_80)


def test_1_4_5_a_claim_counts_once_per_volume() -> None:
    claim = PersistentVolumeClaimSource(claim_name="data")
    volumes = [Volume(name=name, persistent_volume_claim=claim) for name in ("v1", "v2")]
    pod = make_pod(namespace="ns", volumes=volumes)
    info = info_with(pod)
    assert info.pvc_ref_counts == {"ns/data": 2}
    info.remove_pod(pod)
    assert info.pvc_ref_counts == {}


def claim_volume(name: str) -> Volume:
    return Volume(persistent_volume_claim=PersistentVolumeClaimSource(claim_name=name))


@pytest.mark.parametrize(
    ("volume", "counts"),
    [
        pytest.param(claim_volume("data"), 0, id="claim"),
        pytest.param(claim_volume(""), 1, id="claim-without-name"),
        pytest.param(make_ephemeral_volume(), 1, id="ephemeral"),
        pytest.param(Volume(secret=NamedSource()), 0, id="secret"),
        pytest.param(Volume(azure_disk=AzureDisk(disk_uri="u")), 1, id="in-tree-disk"),
    ],
)
def test_volumes_that_name_no_claim_are_counted(volume: Volume, counts: int) -> None:
    pods = [make_pod(name, volumes=[volume]) for name in ("a", "b")]
    info = info_with(*pods)
    assert info.unclaimed_volumes == info.clone().unclaimed_volumes == 2 * counts
    info.remove_pod(pods[0])
    assert info.unclaimed_volumes == counts


@pytest.mark.parametrize(
    ("affinity", "in_affinity", "in_required_anti"),
    [
        pytest.param(None, False, False, id="none"),
        pytest.param(Affinity(), False, False, id="empty-affinity"),
        pytest.param(Affinity(pod_affinity=PodAffinity()), True, False, id="empty-pod-affinity"),
        pytest.param(
            Affinity(pod_affinity=PodAffinity(required=(TERM,))),
            True,
            False,
            id="required-affinity",
        ),
        pytest.param(
            Affinity(
                pod_anti_affinity=PodAffinity(
                    preferred=(WeightedPodAffinityTerm(weight=1, pod_affinity_term=TERM),)
                )
            ),
            True,
            False,
            id="03-1.4-6-preferred-anti-affinity",
        ),
        pytest.param(anti(TERM), True, True, id="required-anti-affinity"),
    ],
)
def test_sublists_look_at_the_raw_spec(
    affinity: Affinity | None, in_affinity: bool, in_required_anti: bool
) -> None:
    pod = make_pod(affinity=affinity)
    info = info_with(pod)
    assert bool(info.pods_with_affinity) == in_affinity
    assert bool(info.pods_with_required_anti_affinity) == in_required_anti
    info.remove_pod(pod)
    assert not info.pods_with_affinity
    assert not info.pods_with_required_anti_affinity


def test_the_object_passed_in_decides_whether_the_sublists_are_searched() -> None:
    pod = make_pod("p", uid="u1", affinity=anti(TERM), cpu="1")
    info = info_with(pod)
    info.remove_pod(make_pod("p", uid="u1", cpu="7"))  # the same pod, seen without affinity
    assert info.pods == []
    assert names(info.pods_with_affinity) == ["p"]
    assert info.requested.milli_cpu == 0  # what was stored is given back, not what is passed


def test_sublist_removal_stays_done_when_the_pod_is_not_found() -> None:
    ghost_entry = make_pod("p", uid="u1", affinity=anti(TERM))
    info = info_with(ghost_entry)
    info.remove_pod(make_pod("p", uid="u1"))
    with pytest.raises(CacheError):
        info.remove_pod(ghost_entry)
    assert info.pods_with_affinity == []
    assert info.pods_with_required_anti_affinity == []


# --- ghosts and copies ---


def test_a_ghost_keeps_everything_but_its_node() -> None:
    info = info_with(pod_a())
    before = info.generation
    info.remove_node()
    assert info.node is None
    assert info.display_name == "<no node>"
    assert info.generation == before + 1
    assert info.allocatable.milli_cpu == 8000
    assert names(info.pods) == ["a"]
    with pytest.raises(CacheError, match=r"^no corresponding pod x in pods of node <no node>$"):
        info.remove_pod(make_pod("x"))


def test_a_clone_changes_on_its_own() -> None:
    a, b, c = pod_a(), pod_b(), pod_c()
    info = info_with(a, b)
    copy = info.clone()
    assert copy.generation == info.generation
    copy.remove_pod(a)
    copy.add_pod(PodInfo(c))
    assert names(info.pods) == ["a", "b"]
    assert names(copy.pods) == ["b", "c"]
    assert info.requested.scalar == {GPU: 1}
    assert info.used_ports.conflicts(PORT_80)
    assert info.pvc_ref_counts == {"ns/d": 3}
    assert names(info.pods_with_affinity) == ["b"]
    info.remove_pod(a)  # the places of the pods are its own, too
    assert names(info.pods) == ["b"]


def test_every_change_takes_a_new_generation_also_on_copies() -> None:
    info = info_with()
    copy = info.clone()
    seen = [info.generation]
    copy.add_pod(PodInfo(make_pod("x")))
    seen.append(copy.generation)
    info.set_node(make_node("n1"))
    seen.append(info.generation)
    assert seen == sorted(set(seen))


def test_pods_are_put_back_in_the_order_of_a_copy() -> None:
    pods = [PodInfo(make_pod(name, cpu="1")) for name in "abc"]
    info = NodeInfo("n")
    for pod in pods:
        info.add_pod(pod)
    copy = info.clone()
    info.remove_pod(pods[0].pod)
    info.add_pod(pods[0])
    assert [pod.name for pod in info.pods] == ["c", "b", "a"]
    info.reorder_as(copy)
    assert [pod.name for pod in info.pods] == ["a", "b", "c"]
    assert info.remove_pod(pods[1].pod) is pods[1]
    assert info.requested.milli_cpu == 2000


def test_pods_that_are_being_deleted_are_not_among_the_live_ones() -> None:
    deleted = datetime(2026, 1, 1, tzinfo=UTC)
    staying = PodInfo(make_pod("a", labels={"app": "x"}))
    going = PodInfo(make_pod("b", uid="b", labels={"app": "x"}, deleted=deleted))
    other = PodInfo(make_pod("c", labels={"app": "y"}, deleted=deleted))
    info = NodeInfo("n1")
    for pod in (staying, going, other):
        info.add_pod(pod)
    assert info.class_counts == {staying.pod_class: 2, other.pod_class: 1}
    assert info.live_class_counts == info.clone().live_class_counts == {staying.pod_class: 1}
    by_state = {**info.live_class_counts, going.pod_class.terminating: 1}
    assert info.counts_by_state == {**by_state, other.pod_class.terminating: 1}
    relabelled = PodInfo(make_pod("b", uid="b", labels={"app": "y"}, deleted=deleted))
    info.renew_pod(relabelled)
    assert info.live_class_counts == {staying.pod_class: 1}
    info.remove_pod(staying.pod)
    assert info.live_class_counts == {}
    for pod in (relabelled, other):
        info.remove_pod(pod.pod)
    info.add_pod(staying)
    assert info.live_class_counts == info.counts_by_state == {staying.pod_class: 1}
