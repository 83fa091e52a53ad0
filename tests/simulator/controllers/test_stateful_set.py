"""StatefulSets: pods with a name and a number."""

import asyncio
from collections.abc import Callable
from typing import Any

from kubestow.api.meta import JsonObject

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def names(world: Any) -> list[str]:
    return [pod["metadata"]["name"] for pod in world.pods()]


def test_pods_are_created_one_by_one_and_deleted_in_reverse(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("StatefulSet", replicas=3))
        seen: list[int] = []
        for _ in range(50):
            await asyncio.sleep(0.1)
            seen.append(len(world.pods()))
        assert names(world) == ["web-0", "web-1", "web-2"]
        assert sorted(set(seen)) == [1, 2, 3]
        world.patch("statefulsets.apps", "web", {"spec": {"replicas": 1}})
        await asyncio.sleep(0.5)
        assert names(world) == ["web-0", "web-1"]
        await asyncio.sleep(5)
        assert names(world) == ["web-0"]

    play(work)


def test_all_at_once_with_parallel_management(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"))
        await asyncio.sleep(0.5)
        assert names(world) == ["web-0", "web-1", "web-2"]

    play(work)


def test_one_that_is_not_ready_delays_the_next(play: Play, workload: Build):
    async def work(world: Any):
        world.binder.is_paused = True
        world.make(workload("StatefulSet", replicas=3))
        await asyncio.sleep(60)
        assert names(world) == ["web-0"]

    play(work)


def test_each_has_its_volumes_and_they_stay(play: Play, workload: Build):
    async def work(world: Any):
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        world.make(workload("StatefulSet", replicas=2, volumeClaimTemplates=[claim]))
        await asyncio.sleep(5)
        claims = [one["metadata"]["name"] for one in world.all("persistentvolumeclaims")]
        assert claims == ["data-web-0", "data-web-1"]
        volume = world.get("pods", "web-1")["spec"]["volumes"][0]
        assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
        world.delete("statefulsets.apps", "web")
        await asyncio.sleep(5)
        assert names(world) == []
        assert len(world.all("persistentvolumeclaims")) == 2

    play(work)


def test_an_update_replaces_from_the_highest_down_to_the_partition(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("StatefulSet", replicas=3))
        await asyncio.sleep(5)
        containers = [{"name": "main", "image": "nginx:2"}]
        world.patch(
            "statefulsets.apps",
            "web",
            {
                "spec": {
                    "template": {"spec": {"containers": containers}},
                    "updateStrategy": {"rollingUpdate": {"partition": 1}},
                }
            },
        )
        await asyncio.sleep(20)
        images = [pod["spec"]["containers"][0]["image"] for pod in world.pods()]
        assert images == ["nginx", "nginx:2", "nginx:2"]
        status = world.get("statefulsets.apps", "web")["status"]
        assert (status["updatedReplicas"], status["currentReplicas"]) == (2, 1)
        world.patch(
            "statefulsets.apps",
            "web",
            {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}},
        )
        await asyncio.sleep(20)
        status = world.get("statefulsets.apps", "web")["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert status["readyReplicas"] == status["updatedReplicas"] == 3

    play(work)


def test_a_failed_one_is_replaced_under_its_name(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("StatefulSet"))
        await asyncio.sleep(3)
        uid = world.get("pods", "web-0")["metadata"]["uid"]
        pods = world.cluster.resources.named("pods")
        failed = {"status": {"phase": "Failed"}}
        world.cluster.patch(pods, "default", "web-0", failed, subresource="status")
        await asyncio.sleep(5)
        pod = world.get("pods", "web-0")
        assert pod["metadata"]["uid"] != uid
        assert pod["status"]["phase"] == "Running"

    play(work)
