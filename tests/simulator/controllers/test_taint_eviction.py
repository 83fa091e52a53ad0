"""Pods are evicted from nodes with NoExecute taints."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.api.node import Taint
from kubestow.api.pod import Toleration
from kubestow.simulator.controllers.taint_eviction import tolerated_seconds

Build = Callable[..., JsonObject]
Play = Callable[..., None]

EVIL: JsonObject = {"key": "evil", "value": "yes", "effect": "NoExecute"}
TOLERATED: JsonObject = {"key": "evil", "operator": "Exists", "effect": "NoExecute"}


def names(world: Any) -> set[str]:
    return {pod["metadata"]["name"] for pod in world.pods()}


def test_a_deployment_gets_its_pods_back_on_other_nodes(serve: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=6))
        await asyncio.sleep(5)
        assert sum(pod["spec"]["nodeName"] == "n1" for pod in world.pods()) == 2
        world.taint("n1", EVIL)
        await asyncio.sleep(5)
        pods = world.pods(alive=False)
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        assert {pod["spec"]["nodeName"] for pod in pods} == {"n2", "n3"}
        assert len(pods) == 6
        assert len(world.notes("TaintManagerEviction")) == 2

    serve(work)


def test_the_evicted_pod_says_why(serve: Play):
    async def work(world: Any):
        world.make_pod("p", "n1")
        await asyncio.sleep(3)
        world.taint("n1", EVIL)
        await asyncio.sleep(0.5)
        (pod,) = world.pods(alive=False)
        assert pod["metadata"]["deletionTimestamp"]
        condition = world.condition(pod, "DisruptionTarget")
        assert (condition["status"], condition["reason"]) == ("True", "DeletionByTaintManager")
        assert condition["message"] == "Taint manager: deleting due to NoExecute taint"
        assert world.notes("TaintManagerEviction") == ["Marking for deletion Pod default/p"]

    serve(work)


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_other_effects_evict_no_pod(serve: Play, effect: str):
    async def work(world: Any):
        world.make_pod("p", "n1")
        world.taint("n1", {**EVIL, "effect": effect})
        await asyncio.sleep(60)
        assert names(world) == {"p"}

    serve(work)


def test_a_pod_stays_as_long_as_it_tolerates(serve: Play):
    async def work(world: Any):
        world.make_pod("always", "n1", tolerations=[TOLERATED])
        world.make_pod("a-while", "n1", tolerations=[{**TOLERATED, "tolerationSeconds": 30}])
        world.make_pod("never", "n1", tolerations=[{**TOLERATED, "tolerationSeconds": 0}])
        world.make_pod("other-node", "n2")
        await asyncio.sleep(3)
        world.taint("n1", EVIL)
        await asyncio.sleep(29)
        assert names(world) == {"always", "a-while", "other-node"}
        await asyncio.sleep(2)
        assert names(world) == {"always", "other-node"}

    serve(work)


def test_a_pod_bound_to_a_tainted_node_later_is_evicted_too(serve: Play):
    async def work(world: Any):
        world.taint("n1", EVIL)
        await asyncio.sleep(1)
        world.make_pod("p", "n1")
        await asyncio.sleep(3)
        assert names(world) == set()

    serve(work)


def test_removing_the_taint_cancels_the_eviction(serve: Play):
    async def work(world: Any):
        world.make_pod("p", "n1", tolerations=[{**TOLERATED, "tolerationSeconds": 30}])
        world.taint("n1", EVIL)
        await asyncio.sleep(20)
        world.taint("n1")
        await asyncio.sleep(60)
        assert names(world) == {"p"}
        assert world.notes("TaintManagerEviction") == ["Cancelling deletion of Pod default/p"]

    serve(work)


def test_another_taint_does_not_start_the_time_again(serve: Play):
    async def work(world: Any):
        tolerations = [{"operator": "Exists", "tolerationSeconds": 30}]
        world.make_pod("p", "n1", tolerations=tolerations)
        world.taint("n1", EVIL)
        await asyncio.sleep(20)
        world.taint("n1", EVIL, {**EVIL, "key": "worse"})
        await asyncio.sleep(11)
        assert names(world) == set()

    serve(work)


SECONDS = [
    pytest.param([], [], None, id="no-taint"),
    pytest.param(["a"], [], 0, id="not-tolerated"),
    pytest.param(["a"], [("a", None)], None, id="without-limit"),
    pytest.param(["a"], [("a", 5)], 5, id="with-limit"),
    pytest.param(["a"], [("a", -5)], 0, id="negative-is-zero"),
    pytest.param(["a", "b"], [("a", 5)], 0, id="one-of-two"),
    pytest.param(["a", "b"], [("a", 5), ("b", 3)], 3, id="the-shortest"),
    pytest.param(["a", "b"], [("a", 5), ("b", None)], 5, id="limit-and-none"),
    pytest.param(["a"], [("a", 5), ("a", 1)], 5, id="the-first-that-matches"),
]


@pytest.mark.parametrize(("taints", "tolerations", "expected"), SECONDS)
def test_how_long_taints_are_tolerated(
    taints: list[str], tolerations: list[tuple[str, int | None]], expected: float | None
):
    made = [Taint(key=key, effect="NoExecute") for key in taints]
    accepted = [
        Toleration(key=key, operator="Exists", toleration_seconds=seconds)
        for key, seconds in tolerations
    ]
    assert tolerated_seconds(made, accepted) == expected
