"""Deployments: from one template to the next."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.simulator.controllers.templates import canonical, template_hash

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def image(name: str) -> JsonObject:
    containers = [{"name": "main", "image": name}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def status_of(world: Any) -> JsonObject:
    return world.get("deployments.apps", "web")["status"]


def condition(world: Any, type: str) -> tuple[str, str]:
    found = next(one for one in status_of(world)["conditions"] if one["type"] == type)
    return found["status"], found["reason"]


def images(world: Any) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in world.pods())


def test_a_deployment_gets_its_pods_and_reports_them(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=3))
        await asyncio.sleep(0.5)
        assert condition(world, "Available") == ("False", "MinimumReplicasUnavailable")
        assert condition(world, "Progressing")[0] == "True"
        await asyncio.sleep(1)
        assert condition(world, "Available") == ("True", "MinimumReplicasAvailable")
        assert condition(world, "Progressing") == ("True", "NewReplicaSetAvailable")
        counts = {key: value for key, value in status_of(world).items() if key != "conditions"}
        assert counts == {
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "observedGeneration": 1,
        }
        (replica_set,) = world.all("replicasets.apps")
        hash_text = replica_set["metadata"]["labels"]["pod-template-hash"]
        assert replica_set["metadata"]["name"] == f"web-{hash_text}"
        assert replica_set["spec"]["selector"]["matchLabels"]["pod-template-hash"] == hash_text
        assert all("pod-template-hash" in pod["metadata"]["labels"] for pod in world.pods())
        name = replica_set["metadata"]["name"]
        assert world.notes("ScalingReplicaSet") == [f"Scaled up replica set {name} from 0 to 3"]

    play(work)


def test_an_update_keeps_its_limits_and_ends_with_the_new_template(play: Play, workload: Build):
    async def work(world: Any):
        rolling = {"maxSurge": 1, "maxUnavailable": 1}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        world.make(workload("Deployment", replicas=4, strategy=strategy))
        await asyncio.sleep(3)
        world.patch("deployments.apps", "web", image("nginx:2"))
        for _ in range(200):
            await asyncio.sleep(0.1)
            pods = world.pods()
            ready = [pod for pod in pods if pod["status"]["phase"] == "Running"]
            assert len(pods) <= 5
            assert len(ready) >= 3
        assert images(world) == ["nginx:2"] * 4
        assert condition(world, "Progressing") == ("True", "NewReplicaSetAvailable")

    play(work)


def test_going_back_reuses_the_earlier_replica_set(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment"))
        await asyncio.sleep(3)
        for name in ("nginx:2", "nginx"):
            # Empty values make no difference.
            patch = image(name)
            patch["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
            world.patch("deployments.apps", "web", patch)
            await asyncio.sleep(10)
        assert len(world.all("replicasets.apps")) == 2
        assert images(world) == ["nginx"]
        annotations = world.get("deployments.apps", "web")["metadata"]["annotations"]
        assert annotations["deployment.kubernetes.io/revision"] == "3"

    play(work)


def test_recreate_waits_until_the_old_ones_are_gone(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=3, strategy={"type": "Recreate"}))
        await asyncio.sleep(3)
        world.patch("deployments.apps", "web", image("nginx:2"))
        seen: set[tuple[str, ...]] = set()
        for _ in range(100):
            await asyncio.sleep(0.1)
            every = world.pods(alive=False)
            seen.add(tuple(sorted({pod["spec"]["containers"][0]["image"] for pod in every})))
        assert ("nginx", "nginx:2") not in seen
        assert images(world) == ["nginx:2"] * 3

    play(work)


def test_scaling_makes_no_new_replica_set(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment"))
        await asyncio.sleep(3)
        world.patch("deployments.apps", "web", {"spec": {"replicas": 5}})
        await asyncio.sleep(3)
        assert len(world.pods()) == 5
        world.patch("deployments.apps", "web", {"spec": {"replicas": 2}})
        await asyncio.sleep(3)
        assert len(world.pods()) == 2
        assert len(world.all("replicasets.apps")) == 1

    play(work)


def test_a_paused_deployment_is_scaled_but_not_updated(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment"))
        await asyncio.sleep(3)
        world.patch("deployments.apps", "web", {"spec": {"paused": True, "replicas": 3}})
        await asyncio.sleep(3)
        assert images(world) == ["nginx"] * 3
        world.patch("deployments.apps", "web", image("nginx:2"))
        await asyncio.sleep(3)
        assert images(world) == ["nginx"] * 3
        world.patch("deployments.apps", "web", {"spec": {"paused": False}})
        await asyncio.sleep(20)
        assert images(world) == ["nginx:2"] * 3

    play(work)


def test_exceeding_the_progress_deadline_is_reported(play: Play, workload: Build):
    async def work(world: Any):
        world.binder.is_paused = True
        world.make(workload("Deployment", progressDeadlineSeconds=60))
        await asyncio.sleep(30)
        assert condition(world, "Progressing")[0] == "True"
        await asyncio.sleep(60)
        assert condition(world, "Progressing") == ("False", "ProgressDeadlineExceeded")

    play(work)


def test_old_replica_sets_are_kept_up_to_the_limit(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", revisionHistoryLimit=2))
        for version in range(5):
            await asyncio.sleep(10)
            world.patch("deployments.apps", "web", image(f"nginx:{version}"))
        await asyncio.sleep(10)
        assert len(world.all("replicasets.apps")) == 3
        assert images(world) == ["nginx:4"]

    play(work)


def test_a_deleted_deployment_deletes_its_dependents(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Deployment", replicas=3))
        await asyncio.sleep(3)
        world.delete("deployments.apps", "web")
        await asyncio.sleep(5)
        assert world.all("replicasets.apps") == []
        assert world.pods(alive=False) == []

    play(work)


# --- Templates --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"spec": {"containers": [{"name": "a", "resources": {}}]}}, id="empty-object"),
        pytest.param({"spec": {"containers": [{"name": "a"}], "hostname": ""}}, id="empty-text"),
        pytest.param({"spec": {"containers": [{"name": "a"}]}, "metadata": None}, id="null"),
    ],
)
def test_empty_values_make_no_difference(other: JsonObject):
    template = {"spec": {"containers": [{"name": "a"}]}}
    assert canonical(other) == canonical(template)
    assert template_hash(other) == template_hash(template)


def test_an_empty_volume_is_a_volume():
    empty_dir = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    assert canonical(empty_dir) == empty_dir
