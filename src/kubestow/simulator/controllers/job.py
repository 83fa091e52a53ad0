"""Jobs: pods that end by themselves, until enough of them have succeeded.

    running ── enough succeeded ──────────────────────────► Complete ──ttl──► deleted
            ├── more failed than the backoff limit ───────► Failed   ──ttl──► deleted
            ├── active longer than its deadline ──────────► Failed
            └── suspended: its pods are deleted until it is resumed

A failed pod is replaced after a pause that doubles with each failure. A pod is counted once, when
it has ended, and stays counted when it is deleted. A pod that is deleted while it runs is not
counted; it is replaced.
"""

from contextlib import suppress
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import (
    as_object,
    objects_in,
    replaced_at,
    seconds_of,
    value_at,
    whole_seconds,
)
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError, NotFoundError
from kubestow.simulator.controllers.owner_controller import OwnerController
from kubestow.simulator.controllers.pods import (
    first_to_delete,
    is_active,
    is_finished,
    is_terminating,
    pod_from_template,
    ready_since_s,
)
from kubestow.simulator.event_log import EventLog

BACKOFF_S: Final = 10.0
BACKOFF_S_MAX: Final = 600.0
BURST: Final = 100
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE: Final[JsonObject] = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}


class _JobSpec(NamedTuple):
    """A job's spec with its defaults."""

    parallelism: int
    completions: int | None
    backoff_limit: int
    deadline_s: int | None
    ttl_s: int | None
    is_indexed: bool
    is_suspended: bool


class _Ended(NamedTuple):
    """The pods of a job that have ended so far."""

    succeeded: int
    failed: int
    indexes: frozenset[str]
    last_failure_s: float


class JobController(OwnerController):
    refusal_pause_s = 1.0
    refusal_pause_s_max = 60.0

    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        super().__init__(
            cluster,
            clock,
            log,
            name="job-controller",
            owners="jobs.batch",
            dependents="pods",
        )
        # By the job's UID: UIDs of ended pods, with the index of succeeded ones.
        self._succeeded: dict[str, dict[str, str]] = {}
        self._failed: dict[str, dict[str, float]] = {}

    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        spec = _spec_of(owner)
        if finished_as(owner):
            return self._expire(owner, spec)
        if is_terminating(owner):
            return None
        ended = self._count(owner, dependents)
        active = [pod for pod in dependents if is_active(pod)]
        verdict = self._verdict(owner, spec, ended, active)
        if verdict is not None:
            self._end(owner, ended, active, verdict)
            return self._expire(owner, spec)
        if spec.is_suspended:
            self.delete_pods(owner, active)
            self._report(owner, ended, [], is_suspended=True)
            return None
        delays = [self._scale(owner, spec, ended, active), self._until_deadline_s(owner, spec)]
        self._report(owner, ended, active)
        return min((s for s in delays if s is not None), default=None)

    # --- Counting -----------------------------------------------------------------------------

    def _count(self, owner: StoredObject, pods: list[StoredObject]) -> _Ended:
        succeeded = self._succeeded.setdefault(owner.uid, {})
        failed = self._failed.setdefault(owner.uid, {})
        for pod in filter(is_finished, pods):
            if value_at(pod.document, "status", "phase") == "Succeeded":
                succeeded.setdefault(pod.uid, _index_of(pod))
            else:
                failed.setdefault(pod.uid, self._now_s())
        indexes = frozenset(succeeded.values())
        count = len(indexes) if _spec_of(owner).is_indexed else len(succeeded)
        return _Ended(count, len(failed), indexes, max(failed.values(), default=0.0))

    def _verdict(
        self, owner: StoredObject, spec: _JobSpec, ended: _Ended, active: list[StoredObject]
    ) -> "_Verdict | None":
        """How the job has ended; None while it has not."""
        if ended.failed > spec.backoff_limit:
            return _TOO_MANY_FAILURES
        deadline_s = self._until_deadline_s(owner, spec)
        if deadline_s is not None and deadline_s <= 0:
            return _TOO_LATE
        if spec.completions is None:
            return _COMPLETE if ended.succeeded and not active else None
        return _COMPLETE if ended.succeeded >= spec.completions else None

    def _until_deadline_s(self, owner: StoredObject, spec: _JobSpec) -> float | None:
        started_s = seconds_of(value_at(owner.document, "status", "startTime"))
        if spec.deadline_s is None or spec.is_suspended:
            return None
        return (self._now_s() if started_s is None else started_s) + spec.deadline_s - self._now_s()

    def _now_s(self) -> float:
        return self.clock.now_ns() / NANOSECONDS

    # --- Pods ---------------------------------------------------------------------------------

    def _scale(
        self, owner: StoredObject, spec: _JobSpec, ended: _Ended, active: list[StoredObject]
    ) -> float | None:
        """Make or delete pods; return the seconds until the next step, if there is one."""
        wanted = spec.parallelism
        if spec.completions is not None:
            wanted = min(wanted, spec.completions - ended.succeeded)
        elif ended.succeeded:
            # The work is done; pods that still run may finish.
            wanted = min(wanted, len(active))
        missing = wanted - len(active)
        if missing < 0:
            self.delete_pods(owner, first_to_delete(active, -missing))
            return None
        if missing == 0:
            return None
        wait_s = max(self._pause_s(ended) - self._now_s(), self.held_back_s(owner))
        if wait_s > 0:
            return wait_s
        return self._create(owner, spec, ended, active, missing)

    def _pause_s(self, ended: _Ended) -> float:
        """The time until which a job with failures waits before its next pod."""
        if not ended.failed:
            return 0.0
        return ended.last_failure_s + min(BACKOFF_S * 2 ** (ended.failed - 1), BACKOFF_S_MAX)

    def _create(
        self,
        owner: StoredObject,
        spec: _JobSpec,
        ended: _Ended,
        active: list[StoredObject],
        missing: int,
    ) -> float | None:
        taken = ended.indexes | {_index_of(pod) for pod in active}
        free = (str(index) for index in range(spec.completions or 0) if str(index) not in taken)
        for made in range(min(missing, BURST)):
            document = _pod_of(owner, next(free, "") if spec.is_indexed else "")
            try:
                pod = self.cluster.create(PODS, document)
            except ApiError as error:
                return self.refused(owner, error, missing - made)
            self.record(owner, "SuccessfulCreate", f"Created pod: {pod.name}")
        self.accepted(owner)
        return 0.0 if missing > BURST else None

    # --- Status -------------------------------------------------------------------------------

    def _report(
        self,
        owner: StoredObject,
        ended: _Ended,
        active: list[StoredObject],
        *,
        is_suspended: bool = False,
    ) -> None:
        status = self._status(owner, ended, active)
        suspended = next(
            (one for one in objects_in(status.get("conditions")) if one["type"] == "Suspended"),
            None,
        )
        if is_suspended:
            status.pop("startTime", None)
        elif "startTime" not in status:
            status["startTime"] = whole_seconds(self.clock.now_ns())
        if is_suspended != (suspended is not None and suspended["status"] == "True"):
            reason, note = (
                ("JobSuspended", "Job suspended") if is_suspended else ("JobResumed", "Job resumed")
            )
            condition = self._condition("Suspended", "True" if is_suspended else "False")
            others = [one for one in objects_in(status.get("conditions")) if one is not suspended]
            status["conditions"] = [*others, {**condition, "reason": reason, "message": note}]
            self.record(owner, reason.removeprefix("Job"), note)
        self.write_status(owner, status)

    def _status(self, owner: StoredObject, ended: _Ended, active: list[StoredObject]) -> JsonObject:
        status = dict(as_object(owner.document.get("status")))
        counts = {
            "active": len(active),
            "ready": sum(ready_since_s(pod) is not None for pod in active),
            "succeeded": ended.succeeded,
            "failed": ended.failed,
        }
        for field, count in counts.items():
            if count or field == "ready":
                status[field] = count
            else:
                status.pop(field, None)
        if _spec_of(owner).is_indexed:
            status["completedIndexes"] = _ranges(ended.indexes)
        return status

    def _end(
        self, owner: StoredObject, ended: _Ended, active: list[StoredObject], verdict: "_Verdict"
    ) -> None:
        self.delete_pods(owner, active)
        status = self._status(owner, ended, [])
        before = [one for one in objects_in(status.get("conditions")) if one["type"] != "Suspended"]
        texts = {"reason": verdict.reason, "message": verdict.message}
        status["conditions"] = [
            *before,
            *({**self._condition(type, "True"), **texts} for type in verdict.conditions),
        ]
        if verdict is _COMPLETE:
            status["completionTime"] = whole_seconds(self.clock.now_ns())
        self.write_status(owner, status)
        kind = "Normal" if verdict is _COMPLETE else "Warning"
        reason = "Completed" if verdict is _COMPLETE else verdict.reason
        note = "Job completed" if verdict is _COMPLETE else verdict.message
        self.record(owner, reason, note, type=kind)

    def _condition(self, type: str, status: str) -> JsonObject:
        now = whole_seconds(self.clock.now_ns())
        return {"type": type, "status": status, "lastProbeTime": now, "lastTransitionTime": now}

    def _expire(self, owner: StoredObject, spec: _JobSpec) -> float | None:
        """Delete a finished job after its TTL; before that, return the seconds that remain."""
        self._succeeded.pop(owner.uid, None)
        self._failed.pop(owner.uid, None)
        found = self.cluster.find(self.owners, *owner.key)
        if spec.ttl_s is None or found is None:
            return None
        ended_s = max(
            seconds_of(one.get("lastTransitionTime")) or 0.0
            for one in objects_in(value_at(found.document, "status", "conditions"))
        )
        wait_s = ended_s + spec.ttl_s - self._now_s()
        if wait_s <= 0:
            with suppress(NotFoundError):
                self.cluster.delete(self.owners, *owner.key, uid=owner.uid)
            return None
        return wait_s


class _Verdict(NamedTuple):
    conditions: tuple[str, ...]
    reason: str
    message: str


_COMPLETE: Final = _Verdict(
    ("SuccessCriteriaMet", "Complete"),
    "CompletionsReached",
    "Reached expected number of succeeded pods",
)
_TOO_MANY_FAILURES: Final = _Verdict(
    ("FailureTarget", "Failed"),
    "BackoffLimitExceeded",
    "Job has reached the specified backoff limit",
)
_TOO_LATE: Final = _Verdict(
    ("FailureTarget", "Failed"),
    "DeadlineExceeded",
    "Job was active longer than specified deadline",
)


def _spec_of(job: StoredObject) -> _JobSpec:
    spec = as_object(job.document.get("spec"))
    return _JobSpec(
        parallelism=1 if spec.get("parallelism") is None else spec["parallelism"],
        completions=spec.get("completions"),
        backoff_limit=6 if spec.get("backoffLimit") is None else spec["backoffLimit"],
        deadline_s=spec.get("activeDeadlineSeconds"),
        ttl_s=spec.get("ttlSecondsAfterFinished"),
        is_indexed=spec.get("completionMode") == "Indexed",
        is_suspended=bool(spec.get("suspend")),
    )


def finished_as(job: StoredObject) -> str:
    """Complete or Failed; empty while the job is not over."""
    for condition in objects_in(value_at(job.document, "status", "conditions")):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return condition["type"]
    return ""


def _index_of(pod: StoredObject) -> str:
    return as_object(pod.metadata.get("annotations")).get(INDEX, "")


def _pod_of(job: StoredObject, index: str) -> JsonObject:
    template = as_object(value_at(job.document, "spec", "template"))
    if not index:
        return pod_from_template(job, template)
    for field in ("labels", "annotations"):
        template = replaced_at(template, ("metadata", field, INDEX), index)
    containers = [
        {**container, "env": [*objects_in(container.get("env")), _INDEX_VARIABLE]}
        for container in objects_in(value_at(template, "spec", "containers"))
    ]
    template = replaced_at(template, ("spec", "containers"), containers)
    return pod_from_template(job, template, prefix=f"{job.name}-{index}-")


def _ranges(indexes: frozenset[str]) -> str:
    """`0-2,5,7,8`: the completed indexes; three or more in a row are a range."""
    runs: list[list[int]] = []
    for number in sorted(int(index) for index in indexes if index):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )
