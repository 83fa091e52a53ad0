"""ReplicaSets keep the desired number of pods."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.simulator.controllers import replica_set

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def test_pods_are_made_started_and_counted(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", replicas=3))
        await asyncio.sleep(0.5)
        assert len(world.pods()) == 3
        assert world.get("replicasets.apps", "web")["status"]["replicas"] == 3
        assert "readyReplicas" not in world.get("replicasets.apps", "web")["status"]
        await asyncio.sleep(1)
        status = world.get("replicasets.apps", "web")["status"]
        assert status == {
            "replicas": 3,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "observedGeneration": 1,
        }
        assert len(world.notes("SuccessfulCreate")) == 3

    play(work)


def test_a_pod_has_its_owner_and_its_template(play: Play, workload: Build):
    async def work(world: Any):
        owner = world.make(workload("ReplicaSet", template={"priority": 7}))
        await asyncio.sleep(0.5)
        (pod,) = world.pods()
        assert pod["metadata"]["name"].startswith("web-")
        assert pod["metadata"]["labels"] == {"app": "web"}
        assert pod["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert pod["spec"]["priority"] == 7

    play(work)


@pytest.mark.parametrize("how", ["deleted", "failed"])
def test_what_is_lost_is_replaced(play: Play, workload: Build, how: str):
    async def work(world: Any):
        world.make(workload("ReplicaSet", replicas=2))
        await asyncio.sleep(2)
        name = world.pods()[0]["metadata"]["name"]
        if how == "deleted":
            world.delete("pods", name)
        else:
            status = {"status": {"phase": "Failed"}}
            pods = world.cluster.resources.named("pods")
            world.cluster.patch(pods, "default", name, status, subresource="status")
        await asyncio.sleep(0.1)
        running = [pod for pod in world.pods() if pod["status"]["phase"] != "Failed"]
        assert len(running) == 2
        assert name not in [pod["metadata"]["name"] for pod in running]

    play(work)


def test_scaling_down_deletes_waiting_and_cheap_pods_first(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", replicas=3))
        await asyncio.sleep(2)
        kept = {pod["metadata"]["name"] for pod in world.pods()}
        world.binder.is_paused = True
        world.patch("replicasets.apps", "web", {"spec": {"replicas": 5}})
        await asyncio.sleep(2)
        assert len(world.pods()) == 5
        world.patch("replicasets.apps", "web", {"spec": {"replicas": 3}})
        await asyncio.sleep(0.1)
        assert {pod["metadata"]["name"] for pod in world.pods()} == kept
        cheap = min(kept)
        cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
        world.patch("pods", cheap, cost)
        world.patch("replicasets.apps", "web", {"spec": {"replicas": 2}})
        await asyncio.sleep(0.1)
        assert {pod["metadata"]["name"] for pod in world.pods()} == kept - {cheap}

    play(work)


def test_a_large_one_is_made_in_bursts(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", replicas=350))
        await asyncio.sleep(2)
        assert world.get("replicasets.apps", "web")["status"]["readyReplicas"] == 350
        world.patch("replicasets.apps", "web", {"spec": {"replicas": 0}})
        await asyncio.sleep(10)
        assert world.pods(alive=False) == []

    play(work)


def test_a_pod_without_owner_is_adopted(play: Play, workload: Build):
    async def work(world: Any):
        lonely = {"metadata": {"name": "lonely", "labels": {"app": "web"}}}
        spec = {"spec": {"containers": [{"name": "main", "image": "nginx"}]}}
        world.make({"apiVersion": "v1", "kind": "Pod", **lonely, **spec})
        await asyncio.sleep(0)
        world.make(workload("ReplicaSet", replicas=2))
        await asyncio.sleep(2)
        assert len(world.pods()) == 2
        owners = [pod["metadata"]["ownerReferences"][0]["name"] for pod in world.pods()]
        assert owners == ["web", "web"]

    play(work)


def test_pods_are_followed_anew_when_the_last_owner_was_deleted(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", replicas=2))
        await asyncio.sleep(2)
        world.delete("replicasets.apps", "web")
        await asyncio.sleep(60)
        assert world.pods() == []
        lonely = {"metadata": {"name": "lonely", "labels": {"app": "web"}}}
        spec = {"spec": {"containers": [{"name": "main", "image": "nginx"}]}}
        world.make({"apiVersion": "v1", "kind": "Pod", **lonely, **spec})
        await asyncio.sleep(2)
        second = world.make(workload("ReplicaSet", replicas=2))
        await asyncio.sleep(2)
        owners = [pod["metadata"]["ownerReferences"] for pod in world.pods()]
        assert [[one["uid"] for one in each] for each in owners] == [[second.uid], [second.uid]]

    play(work)


def test_a_pod_is_available_when_it_has_been_ready_long_enough(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", minReadySeconds=30))
        await asyncio.sleep(20)
        status = world.get("replicasets.apps", "web")["status"]
        assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (1, 0)
        await asyncio.sleep(20)
        assert world.get("replicasets.apps", "web")["status"]["availableReplicas"] == 1

    play(work)


def test_a_refused_pod_is_reported_and_retried(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", template={"priorityClassName": "nobody"}))
        await asyncio.sleep(1)
        (note,) = world.notes("FailedCreate")
        assert "no PriorityClass with name nobody was found" in note
        meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        world.make({**meta, "metadata": {"name": "nobody"}, "value": 5})
        await asyncio.sleep(10)
        assert len(world.pods()) == 1

    play(work)


def test_pods_are_deleted_with_their_owner(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("ReplicaSet", replicas=3))
        await asyncio.sleep(2)
        world.delete("replicasets.apps", "web")
        await asyncio.sleep(5)
        assert world.pods(alive=False) == []

    play(work)


def test_states_of_pods_are_kept_for_a_limited_number_of_owners(
    play: Play, workload: Build, monkeypatch: pytest.MonkeyPatch
):
    """Beyond the limit all are read again; what is counted stays the same."""
    monkeypatch.setattr(replica_set, "STATES_MAX", 2)

    async def work(world: Any):
        for number in range(5):
            owner = workload("ReplicaSet", replicas=2)
            world.make({**owner, "metadata": {"name": f"web-{number}"}})
        await asyncio.sleep(2)
        for number in range(5):
            status = world.get("replicasets.apps", f"web-{number}")["status"]
            assert status["readyReplicas"] == 2

    play(work)
