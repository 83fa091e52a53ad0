"""Each pool is filled by itself."""

from typing import Any

import pytest
from msgspec import UnsetType

from kubestow.api.files import Document
from kubestow.errors import InputError
from kubestow.simulator.capacity.headroom import headroom
from kubestow.simulator.capacity.measured import nodes_in_use
from kubestow.usage.measurement import Amounts, Measurement

POOL = "cloud.google.com/gke-nodepool"


def node(name: str, pool: str, cpu: str, **spec: Any) -> dict[str, Any]:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    labels = {"kubernetes.io/hostname": name, **({POOL: pool} if pool else {}), "team": "t"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": capacity},
    }


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


TAINT = {"key": "gpu", "effect": "NoSchedule"}
CLUSTER = [
    node("a1", "a", "4"),
    node("a2", "a", "2"),
    node("b1", "b", "8", taints=[TAINT]),
    node("b2", "b", "8", unschedulable=True),
    node("c1", "", "1"),
    pod("runs", "1500m", nodeName="a1"),
]


def documents(*raw: dict[str, Any]) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def test_pools_are_found_by_the_labels_of_providers() -> None:
    found = headroom(documents(*CLUSTER))
    assert found.label == POOL
    assert {pool.name: (pool.nodes, pool.copies) for pool in found.pools} == {
        "": (1, 1),
        "a": (2, 4),
        "b": (2, 8),  # its taint is tolerated, a cordoned node is not used
    }
    pool = found.pools[1]
    assert (pool.free_cpu_milli, pool.free_memory_bytes, pool.free_pods) == (
        4500,
        2 * 8 * 2**30,
        19,
    )
    assert [limit.reason for limit in pool.limited_by if limit.nodes_with_copies] == [
        "Insufficient cpu"
    ]


def test_any_pod_and_any_label_can_be_given() -> None:
    given = documents(pod("p", "500m", nodeSelector={"kubernetes.io/hostname": "a2"}))
    found = headroom(documents(*CLUSTER), given)
    assert {pool.name: pool.copies for pool in found.pools} == {"": 0, "a": 4, "b": 0}
    found = headroom(documents(*CLUSTER), given, label="team")
    assert [(pool.name, pool.nodes, pool.copies) for pool in found.pools] == [("t", 5, 4)]


def test_an_affinity_of_the_pod_is_kept() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a1"]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}
    found = headroom(documents(*CLUSTER), documents(pod("p", "1", affinity=affinity)))
    assert {pool.name: pool.copies for pool in found.pools} == {"": 0, "a": 2, "b": 0}


def test_pools_do_not_share_claims() -> None:
    """Copies have claims of the same names in every pool."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    copy = documents(storage, claim, pod("p", "1", volumes=volumes))
    found = headroom(documents(*CLUSTER), copy)
    assert {pool.name: pool.copies for pool in found.pools} == {"": 1, "a": 4, "b": 0}


def test_without_a_label_all_nodes_are_one_pool() -> None:
    plain = node("n", "", "3")
    found = headroom(documents(plain))
    assert found.label == ""
    assert [(pool.name, pool.copies) for pool in found.pools] == [("", 3)]


def test_a_label_that_no_node_has_is_refused() -> None:
    with pytest.raises(InputError, match='no node has the label "nope"'):
        headroom(documents(*CLUSTER), label="nope")


def test_measured_use_is_reported_beside_what_is_requested() -> None:
    """Node a1 is measured itself, of a2 the pods; nothing is known of the others."""

    def measured(time: int, cpu: int, gibi: int, **of: str) -> Measurement:
        return Measurement(time_ns=time, average=Amounts(cpu, gibi << 30), **of)  # pyright: ignore[reportArgumentType]

    in_use = nodes_in_use(
        [
            *(measured(time, 10 * time, 1, node="a1") for time in range(1, 101)),
            measured(1, 9000, 2, node="a1", namespace="n", pod="ignored"),
            measured(1, 700, 2, node="a2", namespace="n", pod="p"),
            measured(1, 800, 3, node="a2", namespace="n", pod="q"),
            measured(2, 100, 1, node="a2", namespace="n", pod="p"),
        ]
    )
    assert in_use == {"a1": (950, 1 << 30), "a2": (1500, 5 << 30)}
    found = {pool.name: pool for pool in headroom(documents(*CLUSTER), in_use=in_use).pools}
    plain = {pool.name: pool for pool in headroom(documents(*CLUSTER)).pools}
    pool = found["a"].in_use
    assert not isinstance(pool, UnsetType)
    assert (pool.measured_nodes, pool.cpu_milli, pool.idle_cpu_milli) == (2, 2450, 3550)
    assert pool.idle_memory_bytes == (7 + 3) << 30
    other = found["b"].in_use
    assert not isinstance(other, UnsetType)
    assert other.measured_nodes == 0
    assert {name: each.copies for name, each in found.items()} == {
        name: each.copies for name, each in plain.items()
    }
