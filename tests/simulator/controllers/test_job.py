"""Jobs: pods that end by themselves."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from kubestow.api.meta import JsonObject

Build = Callable[..., JsonObject]
Play = Callable[..., None]


def running(command: str) -> JsonObject:
    return {"containers": [{"name": "main", "image": "busybox", "command": command.split(" ", 2)}]}


def status_of(world: Any) -> JsonObject:
    return world.get("jobs.batch", "web")["status"]


def outcome(world: Any) -> list[tuple[str, str]]:
    conditions = status_of(world).get("conditions", [])
    return [(one["type"], one["reason"]) for one in conditions if one["status"] == "True"]


COMPLETE = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]


def test_a_job_runs_its_pod_to_the_end(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("sleep 20")))
        await asyncio.sleep(10)
        assert (status_of(world)["active"], status_of(world)["ready"]) == (1, 1)
        assert outcome(world) == []
        await asyncio.sleep(20)
        assert outcome(world) == COMPLETE
        assert status_of(world)["succeeded"] == 1
        assert "active" not in status_of(world)
        assert "completionTime" in status_of(world)
        assert world.notes("Completed") == ["Job completed"]
        assert [pod["status"]["phase"] for pod in world.pods()] == ["Succeeded"]

    play(work)


def test_pods_run_in_parallel_until_enough_have_succeeded(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("sleep 8"), completions=5, parallelism=2))
        most = 0
        for _ in range(60):
            await asyncio.sleep(1)
            phases = [pod["status"]["phase"] for pod in world.pods()]
            most = max(most, phases.count("Running") + phases.count("Pending"))
        assert most == 2
        assert outcome(world) == COMPLETE
        assert len(world.pods()) == 5

    play(work)


def test_a_queue_of_work_ends_when_one_has_succeeded_and_all_have_ended(
    play: Play, workload: Build
):
    async def work(world: Any):
        world.make(workload("Job", template=running("sleep 8"), parallelism=3))
        await asyncio.sleep(20)
        assert outcome(world) == COMPLETE
        assert status_of(world)["succeeded"] == 3

    play(work)


def test_each_index_succeeds_once(play: Play, workload: Build):
    async def work(world: Any):
        world.make(
            workload(
                "Job",
                template=running("sleep 8"),
                completions=4,
                parallelism=2,
                completionMode="Indexed",
            )
        )
        await asyncio.sleep(40)
        assert outcome(world) == COMPLETE
        assert status_of(world)["completedIndexes"] == "0-3"
        indexes = [
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
            for pod in world.pods()
        ]
        assert sorted(indexes) == ["0", "1", "2", "3"]

    play(work)


def test_failures_are_retried_with_growing_delays_up_to_the_limit(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("false"), backoffLimit=2))
        started: list[float] = []
        for _ in range(120):
            await asyncio.sleep(1)
            while len(started) < len(world.pods()):
                started.append(world.clock.monotonic_s())
        assert len(world.pods()) == 3
        assert outcome(world) == [
            ("FailureTarget", "BackoffLimitExceeded"),
            ("Failed", "BackoffLimitExceeded"),
        ]
        assert status_of(world)["failed"] == 3
        # Ten seconds after the first failure, twenty after the second; a pod takes one to start.
        assert [later - earlier for earlier, later in pairwise(started)] == [11, 21]

    play(work)


def test_a_job_past_its_deadline_fails_and_its_pods_are_deleted(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("sleep 900"), activeDeadlineSeconds=30))
        await asyncio.sleep(29)
        assert outcome(world) == []
        await asyncio.sleep(5)
        assert outcome(world)[-1] == ("Failed", "DeadlineExceeded")
        assert world.pods() == []

    play(work)


def test_a_suspended_job_has_no_pods_until_it_is_resumed(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("sleep 20"), suspend=True))
        await asyncio.sleep(5)
        assert world.pods() == []
        assert outcome(world) == [("Suspended", "JobSuspended")]
        world.patch("jobs.batch", "web", {"spec": {"suspend": False}})
        await asyncio.sleep(5)
        assert len(world.pods()) == 1
        world.patch("jobs.batch", "web", {"spec": {"suspend": True}})
        await asyncio.sleep(5)
        assert world.pods() == []
        world.patch("jobs.batch", "web", {"spec": {"suspend": False}})
        await asyncio.sleep(30)
        assert outcome(world) == COMPLETE

    play(work)


def test_a_finished_job_is_deleted_after_its_ttl(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("true"), ttlSecondsAfterFinished=60))
        await asyncio.sleep(30)
        assert outcome(world) == COMPLETE
        await asyncio.sleep(60)
        assert world.all("jobs.batch") == []
        assert world.pods() == []

    play(work)


def test_a_pod_deleted_while_it_runs_is_replaced(play: Play, workload: Build):
    async def work(world: Any):
        world.make(workload("Job", template=running("sleep 20")))
        await asyncio.sleep(5)
        world.delete("pods", world.pods()[0]["metadata"]["name"])
        await asyncio.sleep(40)
        assert outcome(world) == COMPLETE
        assert status_of(world)["succeeded"] == 1

    play(work)


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_the_restart_policy_decides_between_restart_and_replacement(
    play: Play, workload: Build, policy: str
):
    async def work(world: Any):
        template = {**running("false"), "restartPolicy": policy}
        world.make(workload("Job", template=template))
        await asyncio.sleep(25)
        restarts = [
            status["restartCount"]
            for pod in world.pods()
            for status in pod["status"].get("containerStatuses", ())
        ]
        assert restarts == ([1] if policy == "OnFailure" else [0, 0])

    play(work)
