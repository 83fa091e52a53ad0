"""Nodes without heartbeats are lost, tainted and emptied, and come back."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.cluster.resources import NODES
from kubestow.simulator.defaults import NODE_GRACE_S

Build = Callable[..., JsonObject]
Play = Callable[..., None]

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
# A check every 5 s, and the last renewal was up to 10 s ago.
LOST_S = NODE_GRACE_S + 10
TOLERATED_S = 300


def set_ready(world: Any, name: str, status: str) -> None:
    conditions = [
        {**one, "status": status} if one["type"] == "Ready" else one
        for one in world.node(name)["status"]["conditions"]
    ]
    patch: JsonObject = {"status": {"conditions": conditions}}
    world.cluster.patch(NODES, "", name, patch, "merge", subresource="status")


def test_a_node_whose_kubelet_stops_is_lost_and_its_pods_are_replaced(serve: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=3))
        await asyncio.sleep(5)
        world.stop_kubelet("n1")
        await asyncio.sleep(NODE_GRACE_S - 15)
        assert world.condition(world.node("n1"), "Ready")["status"] == "True"
        await asyncio.sleep(25)
        for type in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
            condition = world.condition(world.node("n1"), type)
            assert (condition["status"], condition["reason"]) == ("Unknown", "NodeStatusUnknown")
            assert condition["message"] == "Kubelet stopped posting node status."
        assert world.taints("n1") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
        assert "Node n1 status is now: NodeNotReady" in world.notes("NodeNotReady")
        (pod,) = [pod for pod in world.pods() if pod["spec"]["nodeName"] == "n1"]
        assert world.condition(pod, "Ready")["status"] == "False"
        await asyncio.sleep(TOLERATED_S - 30)
        assert len(world.pods(alive=False)) == 3
        await asyncio.sleep(60)
        # No kubelet ends the old pod; it is terminating, and a new one runs elsewhere.
        assert len(world.pods(alive=False)) == 4
        alive = world.pods()
        assert {pod["spec"]["nodeName"] for pod in alive} == {"n2", "n3"}
        assert len(alive) == 3

    serve(work)


def test_a_node_that_comes_back_is_ready_and_free_of_taints(serve: Play):
    async def work(world: Any):
        world.make_pod("p", "n1")
        await asyncio.sleep(5)
        world.stop_kubelet("n1")
        await asyncio.sleep(LOST_S)
        assert world.taints("n1")
        world.stop_kubelet("n1", stop=False)
        await asyncio.sleep(6)
        node = world.node("n1")
        assert world.taints("n1") == set()
        assert world.condition(node, "Ready")["status"] == "True"
        assert world.condition(node, "MemoryPressure")["status"] == "False"
        await asyncio.sleep(2 * TOLERATED_S)
        (pod,) = world.pods()
        assert world.condition(pod, "Ready")["status"] == "True"
        assert "Cancelling deletion of Pod default/p" in world.notes("TaintManagerEviction")

    serve(work)


def test_pods_deleted_on_a_lost_node_end_when_it_comes_back(serve: Play):
    async def work(world: Any):
        world.make_pod("p", "n1")
        await asyncio.sleep(5)
        world.stop_kubelet("n1")
        world.delete("pods", "p")
        world.make_pod("late", "n1")
        await asyncio.sleep(100)
        assert {pod["status"]["phase"] for pod in world.pods(alive=False)} == {"Running", "Pending"}
        world.stop_kubelet("n1", stop=False)
        await asyncio.sleep(5)
        (pod,) = world.pods(alive=False)
        assert pod["metadata"]["name"] == "late"
        assert pod["status"]["phase"] == "Running"

    serve(work)


def test_a_node_that_reports_not_ready_is_tainted_and_emptied(serve: Play):
    async def work(world: Any):
        toleration = {"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 10}
        world.make_pod("p", "n1", tolerations=[toleration])
        await asyncio.sleep(5)
        set_ready(world, "n1", "False")
        await asyncio.sleep(6)
        assert world.taints("n1") == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
        await asyncio.sleep(15)
        assert not world.pods()
        set_ready(world, "n1", "True")
        await asyncio.sleep(6)
        assert world.taints("n1") == set()

    serve(work)


def test_not_ready_and_unreachable_replace_each_other(serve: Play):
    async def work(world: Any):
        await asyncio.sleep(5)
        set_ready(world, "n1", "False")
        await asyncio.sleep(6)
        world.stop_kubelet("n1")
        await asyncio.sleep(LOST_S)
        assert world.taints("n1") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}

    serve(work)


@pytest.mark.parametrize(
    ("type", "key"),
    [
        ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
        ("DiskPressure", "node.kubernetes.io/disk-pressure"),
        ("PIDPressure", "node.kubernetes.io/pid-pressure"),
        ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
    ],
)
def test_conditions_become_taints(serve: Play, type: str, key: str):
    async def work(world: Any):
        other = {"key": "mine", "effect": "NoSchedule"}
        world.make_node("n4", conditions=[{"type": type, "status": "True"}])
        world.taint("n4", other)
        await asyncio.sleep(1)
        assert world.taints("n4") == {(key, "NoSchedule"), ("mine", "NoSchedule")}
        patch: JsonObject = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        world.cluster.patch(NODES, "", "n4", patch, "merge", subresource="status")
        await asyncio.sleep(1)
        assert world.taints("n4") == {("mine", "NoSchedule")}

    serve(work)


def test_a_cordoned_node_is_tainted(serve: Play):
    async def work(world: Any):
        for unschedulable in (True, None):
            patch: JsonObject = {"spec": {"unschedulable": unschedulable}}
            world.cluster.patch(NODES, "", "n1", patch, "merge")
            await asyncio.sleep(1)
            expected = {("node.kubernetes.io/unschedulable", "NoSchedule")}
            assert world.taints("n1") == (expected if unschedulable else set())

    serve(work)


def test_no_pod_is_evicted_while_every_node_is_lost(serve: Play):
    async def work(world: Any):
        for name in ("n1", "n2", "n3"):
            world.make_pod(f"on-{name}", name)
        await asyncio.sleep(5)
        for name in ("n1", "n2", "n3"):
            world.stop_kubelet(name)
        await asyncio.sleep(LOST_S + 2 * TOLERATED_S)
        assert world.taints("n1") == {(UNREACHABLE, "NoSchedule")}
        assert len(world.pods()) == 3
        world.stop_kubelet("n2", stop=False)
        await asyncio.sleep(LOST_S + 10)
        assert (UNREACHABLE, "NoExecute") in world.taints("n1")
        assert world.taints("n2") == set()

    serve(work)


def test_nodes_of_one_zone_are_emptied_one_after_the_other(serve: Play):
    async def work(world: Any):
        zone: JsonObject = {"metadata": {"labels": {"topology.kubernetes.io/zone": "same"}}}
        for name in ("n1", "n2"):
            world.cluster.patch(NODES, "", name, zone, "merge")
        # Not at the time of a check: then it would be open which of the two comes first.
        await asyncio.sleep(6)
        for name in ("n1", "n2"):
            world.stop_kubelet(name)
        await asyncio.sleep(NODE_GRACE_S + 5)
        tainted = [(UNREACHABLE, "NoExecute") in world.taints(name) for name in ("n1", "n2")]
        assert sorted(tainted) == [False, True]
        await asyncio.sleep(15)
        assert all((UNREACHABLE, "NoExecute") in world.taints(name) for name in ("n1", "n2"))

    serve(work)


def test_a_node_without_any_report_is_lost_after_a_minute(serve: Play):
    async def work(world: Any):
        # NodeRegistration fills in a node only when it is added.
        world.stop_kubelet("n1")
        patch: JsonObject = {"status": {"conditions": None}}
        await asyncio.sleep(1)
        world.cluster.patch(NODES, "", "n1", patch, "merge", subresource="status")
        await asyncio.sleep(75)
        condition = world.condition(world.node("n1"), "Ready")
        assert condition["reason"] == "NodeStatusNeverUpdated"
        assert condition["message"] == "Kubelet never posted node status."

    serve(work)
