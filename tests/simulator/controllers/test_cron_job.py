"""CronJobs: a Job at each time of a schedule. Virtual time begins at midnight."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject

Play = Callable[..., None]
MINUTE_S = 60
# Minutes since 1970 at the begin of virtual time.
START = 29_453_760


def cron_job(
    name: str = "tick", *, run_s: float = 5, fails: bool = False, **spec: Any
) -> JsonObject:
    annotations = {"kubestow.io/run-seconds": str(run_s), "kubestow.io/exit-code": str(int(fails))}
    containers = [{"name": "main", "image": "busybox"}]
    pod = {"metadata": {"annotations": annotations}}
    pod["spec"] = {"containers": containers, "restartPolicy": "Never"}
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"backoffLimit": 0, "template": pod},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec},
    }


def minutes(world: Any) -> list[int]:
    """The minutes, since the begin, that have a job."""
    return sorted(
        int(job["metadata"]["name"].split("-")[1]) - START for job in world.all("jobs.batch")
    )


def status(world: Any) -> JsonObject:
    return world.get("cronjobs.batch", "tick").get("status", {})


def test_a_job_is_made_every_minute(serve: Play):
    async def work(world: Any):
        world.make(cron_job())
        await asyncio.sleep(MINUTE_S - 1)
        assert minutes(world) == []
        await asyncio.sleep(3)
        assert minutes(world) == [1]
        (job,) = world.all("jobs.batch")
        metadata = job["metadata"]
        assert metadata["labels"]["a"] == "b"
        assert metadata["annotations"] == {
            "c": "d",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z",
        }
        assert metadata["ownerReferences"][0]["kind"] == "CronJob"
        assert status(world)["lastScheduleTime"] == "2026-01-01T00:01:00Z"
        assert [one["name"] for one in status(world)["active"]] == [metadata["name"]]
        await asyncio.sleep(30)
        assert "active" not in status(world)
        assert status(world)["lastSuccessfulTime"].startswith("2026-01-01T00:01:0")
        await asyncio.sleep(MINUTE_S)
        assert minutes(world) == [1, 2]
        assert world.notes("SawCompletedJob")[0] == (
            f"Saw completed job: tick-{START + 1}, condition: Complete"
        )

    serve(work)


@pytest.mark.parametrize(
    ("fails", "limits", "expected"),
    [
        pytest.param(False, {}, [8, 9, 10], id="three-successful"),
        pytest.param(True, {}, [10], id="one-failed"),
        pytest.param(False, {"successfulJobsHistoryLimit": 1}, [10], id="one-successful"),
        pytest.param(True, {"failedJobsHistoryLimit": 0}, [], id="none"),
    ],
)
def test_the_history_is_limited(serve: Play, fails: bool, limits: JsonObject, expected: list[int]):
    async def work(world: Any):
        world.make(cron_job(fails=fails, **limits))
        await asyncio.sleep(10 * MINUTE_S + 30)
        assert minutes(world) == expected

    serve(work)


@pytest.mark.parametrize(
    ("policy", "jobs", "active"),
    [
        pytest.param("Allow", [1, 2, 3], 2, id="allow"),
        pytest.param("Forbid", [1, 2], 1, id="forbid"),
        pytest.param("Replace", [3], 1, id="replace"),
    ],
)
def test_jobs_that_take_longer_than_the_interval(
    serve: Play, policy: str, jobs: list[int], active: int
):
    async def work(world: Any):
        world.make(cron_job(run_s=90, concurrencyPolicy=policy))
        # The first ends in the middle of the third minute.
        await asyncio.sleep(3 * MINUTE_S + 10)
        assert minutes(world) == jobs
        assert len(status(world)["active"]) == active

    serve(work)


def test_a_forbidden_job_starts_when_the_earlier_one_ends(serve: Play):
    async def work(world: Any):
        world.make(cron_job(run_s=70, concurrencyPolicy="Forbid"))
        await asyncio.sleep(2 * MINUTE_S + 5)
        assert minutes(world) == [1]
        assert world.notes("JobAlreadyActive")
        await asyncio.sleep(20)
        assert minutes(world) == [1, 2]

    serve(work)


def test_a_suspended_one_makes_none_and_then_only_the_latest(serve: Play):
    async def work(world: Any):
        world.make(cron_job(suspend=True))
        await asyncio.sleep(5 * MINUTE_S + 30)
        assert minutes(world) == []
        world.patch("cronjobs.batch", "tick", {"spec": {"suspend": False}})
        await asyncio.sleep(1)
        assert minutes(world) == [5]
        await asyncio.sleep(MINUTE_S)
        assert minutes(world) == [5, 6]

    serve(work)


def test_a_start_beyond_the_deadline_is_left_out(serve: Play):
    async def work(world: Any):
        world.make(cron_job(suspend=True, startingDeadlineSeconds=20))
        await asyncio.sleep(5 * MINUTE_S + 30)
        world.patch("cronjobs.batch", "tick", {"spec": {"suspend": False}})
        await asyncio.sleep(1)
        assert minutes(world) == []
        await asyncio.sleep(MINUTE_S)
        assert minutes(world) == [6]

    serve(work)


def test_times_are_those_of_the_time_zone(serve: Play):
    async def work(world: Any):
        world.make(cron_job(schedule="30 9 * * *", timeZone="Asia/Tokyo"))
        await asyncio.sleep(45 * MINUTE_S)
        assert minutes(world) == [30]
        (job,) = world.all("jobs.batch")
        stamp = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp == "2026-01-01T09:30:00+09:00"

    serve(work)


@pytest.mark.parametrize(
    ("spec", "reason", "note"),
    [
        (
            {"schedule": "61 * * * *"},
            "UnparseableSchedule",
            'unparseable schedule: "61 * * * *" : end of range (61) above maximum (59): 61',
        ),
        (
            {"schedule": "59 23 31 2 *"},
            "InvalidSchedule",
            "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than"
            " 1 second",
        ),
        ({"timeZone": "Moon/Base"}, "UnknownTimeZone", 'invalid timeZone: "Moon/Base": '),
    ],
    ids=["unparseable", "never", "zone"],
)
def test_what_is_wrong_is_an_event(serve: Play, spec: JsonObject, reason: str, note: str):
    async def work(world: Any):
        world.make(cron_job(**spec))
        await asyncio.sleep(3 * MINUTE_S)
        assert minutes(world) == []
        assert world.notes(reason)[0].startswith(note)

    serve(work)


def test_deleting_it_deletes_its_jobs(serve: Play):
    async def work(world: Any):
        world.make(cron_job(run_s=600))
        await asyncio.sleep(MINUTE_S + 5)
        world.delete("cronjobs.batch", "tick")
        await asyncio.sleep(5)
        assert minutes(world) == []
        assert not world.pods()

    serve(work)
