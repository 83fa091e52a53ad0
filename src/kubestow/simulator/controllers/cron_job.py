"""CronJobs: a Job at each time of a schedule.

    time due ──┬─ later than startingDeadlineSeconds ──────────────► missed
               ├─ Forbid, and a job is running ────────────────────► left out
               ├─ Replace: running jobs are deleted ──► Job made
               └─ Allow ──────────────────────────────► Job made ──► waits for the next time
    finished jobs beyond the limits of the history are deleted, the oldest first

Of several times that were missed only the latest is made up for. A job's name is that of its
CronJob and the minute it was due, so no job is made twice.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import (
    as_object,
    microseconds_at,
    objects_in,
    seconds_of,
    value_at,
)
from kubestow.errors import ApiError, ConflictError
from kubestow.simulator.controllers.cron_schedule import (
    Recent,
    Schedule,
    most_recent,
    parse_schedule,
)
from kubestow.simulator.controllers.job import finished_as
from kubestow.simulator.controllers.owner_controller import (
    OwnerController,
    controller_reference,
    owner_reference,
)
from kubestow.simulator.controllers.pods import is_terminating
from kubestow.simulator.event_log import EventLog

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# A time is looked at this long after it is due.
MARGIN_S: Final = 0.1
TOO_MANY_MISSED: Final = 100
SUCCESSFUL_KEPT: Final = 3
FAILED_KEPT: Final = 1


class CronJobController(OwnerController):
    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        super().__init__(
            cluster,
            clock,
            log,
            name="cronjob-controller",
            owners="cronjobs.batch",
            dependents="jobs.batch",
        )

    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        status = dict(as_object(owner.document.get("status")))
        deleted = self._delete_history(owner, dependents)
        jobs = [job for job in dependents if job.uid not in deleted]
        status["active"] = self._follow_jobs(owner, status, jobs)
        delay_s = None
        if not is_terminating(owner) and not value_at(owner.document, "spec", "suspend"):
            delay_s = self._make_due(owner, status)
        if not status["active"]:
            del status["active"]
        self.write_status(owner, status)
        return delay_s

    # --- Jobs that exist ----------------------------------------------------------------------

    def _delete_history(self, owner: StoredObject, jobs: list[StoredObject]) -> set[str]:
        """Delete the oldest finished jobs beyond the limits; return their UIDs."""
        spec = as_object(owner.document.get("spec"))
        deleted: set[str] = set()
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", SUCCESSFUL_KEPT),
            ("Failed", "failedJobsHistoryLimit", FAILED_KEPT),
        ):
            limit = default if spec.get(field) is None else spec[field]
            finished = sorted((job for job in jobs if finished_as(job) == kind), key=_started)
            for job in finished[: max(len(finished) - limit, 0)]:
                self.delete(owner, job, f"Deleted job {job.name}")
                deleted.add(job.uid)
        return deleted

    def _follow_jobs(
        self, owner: StoredObject, status: JsonObject, jobs: list[StoredObject]
    ) -> list[JsonObject]:
        """The jobs that run, of those made here; also notes when one last succeeded."""
        active = {one.get("uid"): one for one in objects_in(status.get("active"))}
        by_uid = {job.uid: job for job in jobs}
        for job in jobs:
            kind = finished_as(job)
            if not kind and job.uid not in active:
                note = f"Saw a job that the controller did not create or forgot: {job.name}"
                self.record(owner, "UnexpectedJob", note, type="Warning")
            if kind and active.pop(job.uid, None) is not None:
                note = f"Saw completed job: {job.name}, condition: {kind}"
                self.record(owner, "SawCompletedJob", note)
            ended = value_at(job.document, "status", "completionTime")
            last_s = seconds_of(status.get("lastSuccessfulTime")) or 0.0
            if kind == "Complete" and (seconds_of(ended) or 0.0) > last_s:
                status["lastSuccessfulTime"] = ended
        for uid in [uid for uid in active if uid not in by_uid]:
            name = active.pop(uid).get("name", "")
            self.record(owner, "MissingJob", f"Active job went missing: {name}")
        return list(active.values())

    # --- The next job -------------------------------------------------------------------------

    def _make_due(self, owner: StoredObject, status: JsonObject) -> float | None:
        """Make the job that is due; return the seconds until the next one, if there is one."""
        spec = as_object(owner.document.get("spec"))
        text: str = spec.get("schedule") or ""
        zone_name: str = spec.get("timeZone") or ""
        now = microseconds_at(self.clock.now_ns())
        try:
            zone: tzinfo = ZoneInfo(zone_name) if zone_name else UTC
        except (ValueError, OSError, LookupError) as error:
            note = f'invalid timeZone: "{zone_name}": {error}'
            self.record(owner, "UnknownTimeZone", note, type="Warning")
            return None
        try:
            schedule = parse_schedule(text, zone)
        except ValueError as error:
            note = f'unparseable schedule: "{text}" : {error}'
            self.record(owner, "UnparseableSchedule", note, type="Warning")
            return None
        try:
            recent = _recent(owner, status, schedule, now, spec.get("startingDeadlineSeconds"))
        except ValueError as error:
            self.record(
                owner, "InvalidSchedule", f"invalid schedule: {text} : {error}", type="Warning"
            )
            return None
        if recent.due is not None:
            self._start(owner, status, recent, recent.due.astimezone(zone))
        return self._until_next_s(owner, status, schedule, now)

    def _start(
        self, owner: StoredObject, status: JsonObject, recent: Recent, due: datetime
    ) -> None:
        """Make the job of a time that has come, if the rules allow."""
        if recent.missed_count > TOO_MANY_MISSED:
            note = (
                "too many missed start times. Set or decrease"
                " .spec.startingDeadlineSeconds or check clock skew"
            )
            self.record(owner, "TooManyMissedTimes", note, type="Warning")
        name = f"{owner.name}-{int(due.timestamp()) // 60}"
        is_known = any(one.get("name") == name for one in status["active"])
        if is_known or seconds_of(status.get("lastScheduleTime")) == due.timestamp():
            return
        policy = value_at(owner.document, "spec", "concurrencyPolicy")
        if policy == "Forbid" and status["active"]:
            note = (
                "Not starting job because prior execution is running and concurrency policy is"
                " Forbid"
            )
            self.record(owner, "JobAlreadyActive", note)
            return
        if policy == "Replace":
            for one in status["active"]:
                running = self.cluster.find(self.dependents, owner.key[0], one.get("name", ""))
                if running is not None:
                    self.delete(owner, running, f"Deleted job {running.name}")
            status["active"] = []
        job = self._create(owner, name, due)
        if job is not None:
            status["active"] = [*status["active"], _reference(job)]
            status["lastScheduleTime"] = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _create(self, owner: StoredObject, name: str, due: datetime) -> StoredObject | None:
        """The job of a time, made now or by an earlier try; None if the name is taken."""
        template = as_object(value_at(owner.document, "spec", "jobTemplate"))
        metadata = as_object(template.get("metadata"))
        stamp = due.isoformat(timespec="seconds").replace("+00:00", "Z")
        document: JsonObject = {
            "metadata": {
                "name": name,
                "namespace": owner.key[0],
                "labels": as_object(metadata.get("labels")),
                "annotations": {**as_object(metadata.get("annotations")), SCHEDULED_AT: stamp},
                "ownerReferences": [owner_reference(owner)],
            },
            "spec": as_object(template.get("spec")),
        }
        try:
            job = self.cluster.create(self.dependents, document)
        except ConflictError:
            job = self.cluster.get(self.dependents, owner.key[0], name)
            reference = controller_reference(job.document) or {}
            return job if reference.get("uid") == owner.uid else None
        except ApiError as error:
            self.record(owner, "FailedCreate", f"Error creating job: {error}", type="Warning")
            raise
        self.record(owner, "SuccessfulCreate", f"Created job {job.name}")
        return job

    def _until_next_s(
        self, owner: StoredObject, status: JsonObject, schedule: Schedule, now: datetime
    ) -> float | None:
        recent = _recent(owner, status, schedule, now)
        # Of a time that was missed or left out, the next one counts from now.
        after = recent.due or (now if recent.missed_count else recent.since)
        following = schedule.next_after(after)
        return None if following is None else (following - now).total_seconds() + MARGIN_S


def _recent(
    owner: StoredObject,
    status: JsonObject,
    schedule: Schedule,
    now: datetime,
    deadline_s: int | None = None,
) -> Recent:
    """Where the schedule stands since the last job, or since the CronJob was made."""
    last_s = seconds_of(status.get("lastScheduleTime"))
    created_s = seconds_of(owner.metadata.get("creationTimestamp")) or 0.0
    since = datetime.fromtimestamp(created_s if last_s is None else last_s, UTC)
    if deadline_s is not None:
        # What was due earlier is too late now.
        since = max(since, now - timedelta(seconds=deadline_s))
    return most_recent(schedule, since, now)


def _reference(job: StoredObject) -> JsonObject:
    return {
        "apiVersion": job.resource.api_version,
        "kind": job.resource.kind,
        "namespace": job.key[0],
        "name": job.name,
        "uid": job.uid,
        "resourceVersion": str(job.version),
    }


def _started(job: StoredObject) -> tuple[bool, str, str]:
    started = value_at(job.document, "status", "startTime") or ""
    return not started, started, job.name
