"""What `kubestow record` does: follow a cluster that another program schedules."""

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_group import PodGroup, PodGroupV1Beta1
from kubestow.api.workload import PriorityClass
from kubestow.cache.objects import GROUP_KINDS, ClusterObjects
from kubestow.clock import SystemClock
from kubestow.cluster.failure_log import FailureLog
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.cluster.informer import POD_FIELD_SELECTOR, Handler, Informer
from kubestow.cluster.resources import POD_GROUPS
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scalars import Duration
from kubestow.editions import NEWEST, edition_named, edition_of_server
from kubestow.editions.edition import Edition
from kubestow.errors import ApiError, InputError, UnreachableError
from kubestow.recording.format import FOREIGN_ORIGIN
from kubestow.recording.recording import RecordTo, RunRecording
from kubestow.service.commands.record.usage import UsageFollower, check_usage_file
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.measuring.metrics_api import MetricsApi
from kubestow.service.output import stderr
from kubestow.service.user_agent import user_agent

_READ_MAX_S: Final = 60.0


def record_cluster(
    path: Path,
    *,
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    duration: str,
    usage: Path | None = None,
    force: bool = False,
) -> int:
    """Record until the time is over or the process is interrupted; the exit code."""
    to = RecordTo(path, FOREIGN_ORIGIN, force=force)
    to.check("record")
    if usage is not None:
        check_usage_file(usage, force=force)
    seconds = _seconds(duration)
    server = Kubeconfig(kubeconfig, context).server(SystemClock())
    session = ApiSession(
        server, SystemClock(), user_agent=f"{user_agent()}/record", qps=-1, burst=1
    )
    with warnings_on_stderr():
        asyncio.run(_record(session, to, config_file, seconds, usage))
    return 0


def _seconds(duration: str) -> float | None:
    if not duration:
        return None
    try:
        seconds = Duration.parse(duration).seconds
    except ValueError as error:
        raise InputError(f"--for {duration}: {error}; for example 90s, 10m or 2h") from error
    if seconds <= 0:
        raise InputError(f"--for {duration}: a recording takes longer than no time")
    return seconds


async def _record(
    session: ApiSession,
    to: RecordTo,
    config_file: Path | None,
    seconds: float | None,
    usage: Path | None,
) -> None:
    rng = np.random.default_rng()
    client = HttpClient(session, rng=rng)
    try:
        gates = FeatureGates({}, await _edition_of(client))
        config = load_scheduler_config(config_file, gates=gates).config
        recording = RunRecording(to, SystemClock(), config, gates, rng=rng)
        objects = ClusterObjects()
        follower = None
        if usage is not None:
            source = MetricsApi(session, partial(_namespaces, objects))
            follower = UsageFollower(source, usage, objects, force=to.force)
        await _follow(client, recording, gates.edition, to.path, seconds, objects, follower)
    finally:
        client.close()


async def _edition_of(client: HttpClient) -> Edition:
    """The edition of the server; InputError if it does not answer."""
    try:
        version = await client.server_version()
    except UnreachableError as error:
        raise InputError(
            f"{client.host} does not answer: {error}; check the kubeconfig and its context"
        ) from error
    except ApiError as error:
        text = f"{client.host} does not tell its version: {error}; recorded as {NEWEST}"
        stderr().print(text, markup=False)
        return edition_named(NEWEST)
    edition, note = edition_of_server(version)
    if note:
        stderr().print(f"{note}: recorded as {edition.version}", markup=False)
    return edition


def _namespaces(objects: ClusterObjects) -> set[str]:
    """The namespaces that have pods on nodes."""
    return {pod.metadata.namespace for pod in objects.pods if pod.spec.node_name}


async def _follow(
    client: HttpClient,
    recording: RunRecording,
    edition: Edition,
    path: Path,
    seconds: float | None,
    objects: ClusterObjects,
    follower: UsageFollower | None,
) -> None:
    clock, rng = SystemClock(), np.random.default_rng()
    failures = FailureLog(clock, host=client.host)
    # Any: informers of different kinds in one list.
    informers: list[Informer[Any]] = [
        Informer(
            client,
            cls,
            objects.store(cls),
            clock,
            rng=rng,
            field_selector=POD_FIELD_SELECTOR if cls is Pod else "",
            failures=failures,
        )
        for cls in objects.types()
        # The API server writes priorities into pods.
        if cls is not PriorityClass and (cls not in GROUP_KINDS or _is_group_of(cls, edition))
    ]
    changes: Counter[str] = Counter()
    for informer in informers:
        informer.add_handler(recording.recorder.handler(informer.cls))
        informer.add_handler(_counting(informer, changes))
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    tasks = [asyncio.ensure_future(informer.run()) for informer in informers]
    tasks.append(asyncio.ensure_future(recording.flush_regularly()))
    if follower is not None:
        tasks.append(asyncio.ensure_future(follower.run()))
    stop = asyncio.ensure_future(stopping.wait())
    if seconds is not None:
        tasks.append(asyncio.ensure_future(_time_over(informers, seconds)))
    try:
        stderr().print(f"Recording {client.host} to {path}; Ctrl-C ends it.")
        await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in (stop, *tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(stop, *tasks, return_exceptions=True)
        recording.close()
        if follower is not None:
            follower.close()
    counted = ", ".join(f"{count:,} of {kind}" for kind, count in changes.items())
    stderr().print(
        f"{len(objects.pods):,} pods on {len(objects.nodes):,} nodes; changes: {counted or 'none'}"
    )
    if follower is not None:
        stderr().print(f"{follower.count:,} measurements of use")


async def _time_over(informers: Sequence[Informer[Any]], seconds: float) -> None:
    """Waits for the time of a recording, which begins when nodes and pods have been read."""
    # A server that never sends them does not make a recording endless.
    with suppress(TimeoutError):
        async with asyncio.timeout(_READ_MAX_S):
            for informer in informers:
                if informer.cls in (Node, Pod):
                    await informer.wait_synced()
    await asyncio.sleep(seconds)


def _is_group_of(cls: type[ApiObject], edition: Edition) -> bool:
    """Whether groups of an edition are of this kind; those of groups are not recorded."""
    is_oldest = edition.pod_group_version == POD_GROUPS.version
    return cls is (PodGroup if is_oldest else PodGroupV1Beta1)


def _counting(informer: Informer[Any], changes: "Counter[str]") -> Handler[Any]:
    """Counts what changes after the first list."""

    def changed(*_: object) -> None:
        if informer.has_synced:
            changes[informer.cls.__name__] += 1

    return Handler(changed, changed, changed)
