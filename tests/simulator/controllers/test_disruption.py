"""PodDisruptionBudgets: how many pods may be disrupted now."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def make_budget(world: Any, **spec: Any) -> None:
    world.make(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        }
    )


def allowed(world: Any) -> tuple[int, int, int]:
    status = world.get("poddisruptionbudgets.policy", "b")["status"]
    return status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"minAvailable": 3}, (5, 3, 2), id="at-least"),
        pytest.param({"minAvailable": "50%"}, (5, 3, 2), id="at-least-a-share"),
        pytest.param({"maxUnavailable": 1}, (5, 4, 1), id="at-most"),
        pytest.param({"maxUnavailable": "50%"}, (5, 2, 3), id="at-most-a-share"),
        pytest.param({"minAvailable": 9}, (5, 9, 0), id="more-than-there-are"),
    ],
)
def test_healthy_pods_beyond_need_may_be_disrupted(
    play: Play, workload: Build, spec: JsonObject, expected: tuple[int, int, int]
):
    async def work(world: Any):
        make_budget(world, **spec)
        world.make(workload("Deployment", replicas=5))
        await asyncio.sleep(3)
        assert allowed(world) == expected

    play(work)


def test_a_pod_that_is_not_ready_counts_as_missing(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=3))
        await asyncio.sleep(3)
        make_budget(world, minAvailable=2)
        await asyncio.sleep(1)
        assert allowed(world) == (3, 2, 1)
        world.binder.is_paused = True
        world.delete("pods", world.pods()[0]["metadata"]["name"])
        await asyncio.sleep(5)
        assert allowed(world) == (2, 2, 0)

    play(work)


def test_an_allowed_eviction_counts_at_once(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=3))
        make_budget(world, minAvailable=1)
        await asyncio.sleep(3)
        name = world.pods()[0]["metadata"]["name"]
        resource = world.cluster.resources.named("poddisruptionbudgets.policy")
        disrupted = {"status": {"disruptedPods": {name: "2026-01-01T00:00:03Z"}}}
        world.cluster.patch(resource, "default", "b", disrupted, subresource="status")
        await asyncio.sleep(1)
        assert allowed(world) == (2, 1, 1)
        # It was not deleted, or is back under its name: after two minutes it counts again.
        await asyncio.sleep(118)
        assert allowed(world) == (2, 1, 1)
        await asyncio.sleep(2)
        assert allowed(world) == (3, 1, 2)

    play(work)
