"""What explanations need of Jobs, which a scheduler does not read: owners and deadlines."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import ApiObject, JsonObject, Object
from kubestow.api.owners import controller_of
from kubestow.errors import DecodeError
from kubestow.explain.cluster import StillCluster


class JobSpec(Object, frozen=True, kw_only=True):
    active_deadline_seconds: int | None = None


class JobStatus(Object, frozen=True, kw_only=True):
    start_time: datetime | None = None


class ListedJob(ApiObject, frozen=True, kw_only=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def end(self) -> datetime | None:
        """When it ends at the latest; None without a deadline, or before it has started."""
        seconds, start = self.spec.active_deadline_seconds, self.status.start_time
        if seconds is None or start is None:
            return None
        try:
            return start + timedelta(seconds=seconds)
        except OverflowError:
            return None


class JobList(msgspec.Struct):
    items: list[ListedJob]


def note_jobs(cluster: StillCluster, jobs: Iterable[ListedJob]) -> None:
    """Note owners and deadlines of Jobs."""
    for job in jobs:
        key, owner = (job.metadata.namespace, job.metadata.name), controller_of(job)
        if owner is not None:
            cluster.job_owners[key] = owner
        if job.end is not None:
            cluster.job_ends[key] = job.end


def jobs_in(documents: Iterable[JsonObject]) -> list[ListedJob]:
    """The Jobs among documents; those that cannot be read are left out."""
    found: list[ListedJob] = []
    for document in documents:
        if document.get("kind") != "Job":
            continue
        try:
            job = convert(ListedJob, document)
        except DecodeError:
            continue
        if not job.metadata.namespace:
            metadata = msgspec.structs.replace(job.metadata, namespace="default")
            job = msgspec.structs.replace(job, metadata=metadata)
        found.append(job)
    return found
