"""Pods that no kubelet will end are deleted."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, PodStatus
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import Key, StoredObject
from kubestow.cluster.resources import NODES, PODS
from kubestow.simulator.controllers.pod_gc import FinishedPods, PodGC
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def test_pods_of_a_deleted_node_are_replaced(serve: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=6))
        await asyncio.sleep(5)
        world.cluster.delete(NODES, "", "n1")
        await asyncio.sleep(30)
        # As upstream: a node may be missing for a moment, so its pods stay for 40 s.
        assert sum(pod["spec"]["nodeName"] == "n1" for pod in world.pods()) == 2
        await asyncio.sleep(40)
        pods = world.pods(alive=False)
        assert {pod["spec"]["nodeName"] for pod in pods} == {"n2", "n3"}
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        assert len(pods) == 6

    serve(work)


def test_a_node_that_comes_back_keeps_its_pods(serve: Play):
    async def work(world: Any):
        world.make_pod("p", "n1")
        await asyncio.sleep(1)
        world.cluster.delete(NODES, "", "n1")
        await asyncio.sleep(30)
        world.make_node("n1")
        await asyncio.sleep(120)
        assert [pod["metadata"]["name"] for pod in world.pods()] == ["p"]

    serve(work)


def test_the_pod_of_a_deleted_node_fails_with_the_reason(clock: ManualClock, pod_document: Build):
    cluster = MemoryCluster(clock)
    cluster.create(PODS, pod_document("p", nodeName="gone"))
    watch = cluster.watch(PODS, from_version=cluster.version)
    collector = PodGC(cluster, clock)
    collector.check()
    clock.advance_s(40)
    collector.check()
    failed, deleted = watch.events_nowait()
    assert deleted.type == "DELETED"
    assert failed.document["status"]["phase"] == "Failed"
    (condition,) = failed.document["status"]["conditions"]
    assert condition["type"] == "DisruptionTarget"
    assert (condition["reason"], condition["message"]) == (
        "DeletionByPodGC",
        "PodGC: node no longer exists",
    )


def test_a_terminating_pod_without_a_node_is_deleted(clock: ManualClock, pod_document: Build):
    cluster = MemoryCluster(clock)
    for name in ("waiting", "terminating"):
        cluster.create(PODS, pod_document(name))
    terminating = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    document = pod_document("ending", metadata=terminating)
    cluster.create(PODS, document, admission=False)
    PodGC(cluster, clock).check()
    assert {stored.name for stored in cluster.objects_of(PODS)} == {"waiting", "terminating"}


@pytest.mark.parametrize(
    ("ready", "taint", "is_deleted"),
    [
        ("Unknown", "node.kubernetes.io/out-of-service", True),
        ("True", "node.kubernetes.io/out-of-service", False),
        ("Unknown", "node.kubernetes.io/unreachable", False),
    ],
)
def test_terminating_pods_of_a_node_out_of_service_are_deleted(
    clock: ManualClock, pod_document: Build, ready: str, taint: str, is_deleted: bool
):
    cluster = MemoryCluster(clock)
    node = {
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": taint, "effect": "NoExecute"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    cluster.create(NODES, node)
    cluster.create(PODS, pod_document("p", nodeName="n1"))
    cluster.delete(PODS, "default", "p")
    PodGC(cluster, clock).check()
    assert (cluster.find(PODS, "default", "p") is None) is is_deleted


def test_the_oldest_finished_pods_beyond_the_threshold_are_deleted(
    clock: ManualClock, pod_document: Build
):
    cluster = MemoryCluster(clock)
    for name in ("old", "evicted", "new", "running"):
        phase = "Running" if name == "running" else "Failed"
        status = {"phase": phase, **({"reason": "Evicted"} if name == "evicted" else {})}
        cluster.create(NODES, {"metadata": {"name": f"node-of-{name}"}})
        document = {**pod_document(name, nodeName=f"node-of-{name}"), "status": status}
        cluster.create(PODS, document)
        clock.advance_s(10)
    collector = PodGC(cluster, clock, threshold=2)
    collector.check()
    assert {stored.name for stored in cluster.objects_of(PODS)} == {"old", "new", "running"}
    PodGC(cluster, clock, threshold=1).check()
    assert {stored.name for stored in cluster.objects_of(PODS)} == {"new", "running"}


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.booleans(), st.sampled_from("ab"), st.integers(-1, 3)),
        max_size=30,
    )
)
def test_finished_pods_are_in_the_order_of_a_sorted_list(steps: list[tuple[int, bool, str, int]]):
    pods, slow = FinishedPods(), dict[Key, StoredObject]()
    for number, is_evicted, created, count in steps:
        status = {"phase": "Failed", "reason": "Evicted" if is_evicted else ""}
        metadata = {
            "name": f"p{number % 3}",
            "namespace": str(number),
            "creationTimestamp": created,
        }
        typed = Pod(status=PodStatus(phase="Failed"))
        pod = StoredObject(PODS, {"metadata": metadata, "status": status}, 1, typed)
        if count < 0:
            pods.discard(pod.key)
            slow.pop(pod.key, None)
        else:
            pods.put(pod)
            slow[pod.key] = pod
        ranked = sorted(
            slow.values(),
            key=lambda one: (
                one.document["status"]["reason"] != "Evicted",
                one.document["metadata"]["creationTimestamp"],
                one.name,
            ),
        )
        assert pods.first(min(count, len(slow))) == ranked[: max(min(count, len(slow)), 0)]
        assert len(pods) == len(slow)


def test_ranks_of_pods_that_are_gone_do_not_stay():
    pods = FinishedPods()
    for number in range(100):
        metadata = {"name": str(number), "creationTimestamp": ""}
        typed = Pod(status=PodStatus(phase="Failed"))
        pod = StoredObject(PODS, {"metadata": metadata, "status": {}}, 1, typed)
        pods.put(pod)
        if number < 98:
            pods.discard(pod.key)
    assert len(pods._heap) <= 4
