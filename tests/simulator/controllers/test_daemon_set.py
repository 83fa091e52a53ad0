"""DaemonSets: one pod on every node that may have one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.simulator.controllers.daemon_set import node_of

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def make_node(world: Any, name: str, *, taint: str = "", **labels: str) -> None:
    spec = {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {}
    world.make(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"capacity": {"cpu": "4", "pods": "10"}},
        }
    )


def nodes(world: Any) -> list[str]:
    """The nodes of the daemons' affinities; the binder puts them all on one."""
    unbound = [
        {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}
        for pod in world.pods()
    ]
    return sorted(node_of(pod) for pod in unbound)


def test_daemons_follow_the_nodes(play: Play, workload: Build):
    async def work(world: Any):
        world.binder.is_paused = True
        make_node(world, "a")
        make_node(world, "b")
        world.make(workload("DaemonSet"))
        await asyncio.sleep(1)
        assert nodes(world) == ["a", "b"]
        make_node(world, "c")
        await asyncio.sleep(1)
        assert nodes(world) == ["a", "b", "c"]
        world.cluster.delete(world.cluster.resources.named("nodes"), "", "a")
        await asyncio.sleep(1)
        assert nodes(world) == ["b", "c"]
        status = world.get("daemonsets.apps", "web")["status"]
        assert (status["desiredNumberScheduled"], status["numberReady"]) == (2, 0)

    play(work)


def test_selectors_and_taints_exclude_nodes(play: Play, workload: Build):
    async def work(world: Any):
        world.binder.is_paused = True
        make_node(world, "plain", disk="ssd")
        make_node(world, "other")
        make_node(world, "tainted", taint="gpu", disk="ssd")
        make_node(world, "cordoned", taint="node.kubernetes.io/unschedulable", disk="ssd")
        world.make(workload("DaemonSet", template={"nodeSelector": {"disk": "ssd"}}))
        await asyncio.sleep(1)
        assert nodes(world) == ["cordoned", "plain"]

    play(work)


def test_an_update_replaces_daemons_node_by_node(play: Play, workload: Build):
    async def work(world: Any):
        make_node(world, "n1")
        world.make(workload("DaemonSet"))
        await asyncio.sleep(3)
        containers = [{"name": "main", "image": "nginx:2"}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        world.patch("daemonsets.apps", "web", patch)
        await asyncio.sleep(10)
        (pod,) = world.pods()
        assert pod["spec"]["containers"][0]["image"] == "nginx:2"
        status = world.get("daemonsets.apps", "web")["status"]
        assert status["updatedNumberScheduled"] == status["numberAvailable"] == 1

    play(work)


@pytest.mark.parametrize(("effect", "stays"), [("NoSchedule", True), ("NoExecute", False)])
def test_a_taint_that_only_keeps_new_pods_away_leaves_the_daemon(
    serve: Play, workload: Build, effect: str, stays: bool
):
    async def work(world: Any):
        world.make(workload("DaemonSet"))
        await asyncio.sleep(5)
        world.taint("n1", {"key": "evil", "effect": effect})
        await asyncio.sleep(5)
        assert ("n1" in {pod["spec"]["nodeName"] for pod in world.pods()}) is stays
        status = world.get("daemonsets.apps", "web")["status"]
        assert status["desiredNumberScheduled"] == 2
        assert status["numberMisscheduled"] == int(stays)

    serve(work)


def test_the_daemon_of_a_lost_node_stays(serve: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("DaemonSet"))
        await asyncio.sleep(5)
        world.stop_kubelet("n1")
        await asyncio.sleep(600)
        assert world.taints("n1")
        assert {pod["spec"]["nodeName"] for pod in world.pods()} == {"n1", "n2", "n3"}

    serve(work)
