"""What `kubestow record` does: follow a cluster that another program schedules."""

import asyncio
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kubestow.api.pod import Pod
from kubestow.api.workload import PriorityClass
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import SystemClock
from kubestow.cluster.failure_log import FailureLog
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.http.users_kubeconfig import Kubeconfig
from kubestow.cluster.informer import POD_FIELD_SELECTOR, Handler, Informer
from kubestow.config.scalars import Duration
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.recording.format import FOREIGN_ORIGIN
from kubestow.recording.recording import RecordTo, RunRecording
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import stderr
from kubestow.service.user_agent import user_agent


def record_cluster(
    path: Path,
    *,
    kubeconfig: str,
    context: str,
    config_file: Path | None,
    duration: str,
    force: bool = False,
) -> int:
    """Record until the time is over or the process is interrupted; the exit code."""
    to = RecordTo(path, FOREIGN_ORIGIN, force=force)
    to.check("record")
    seconds = _seconds(duration)
    config = load_scheduler_config(config_file).config
    server = Kubeconfig(kubeconfig, context).server(SystemClock())
    session = ApiSession(
        server, SystemClock(), user_agent=f"{user_agent()}/record", qps=-1, burst=1
    )
    with warnings_on_stderr():
        asyncio.run(_record(session, to, config, seconds))
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
    session: ApiSession, to: RecordTo, config: SchedulerConfig, seconds: float | None
) -> None:
    clock, rng = SystemClock(), np.random.default_rng()
    client = HttpClient(session, rng=rng)
    recording = RunRecording(to, clock, config, rng=rng)
    objects, failures = ClusterObjects(), FailureLog(clock, host=client.host)
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
        if cls is not PriorityClass  # The API server writes priorities into pods.
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
    stop = asyncio.ensure_future(stopping.wait())
    try:
        stderr().print(f"Recording {client.host} to {to.path}; Ctrl-C ends it.")
        await asyncio.wait([stop, *tasks], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in (stop, *tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(stop, *tasks, return_exceptions=True)
        recording.close()
        client.close()
    counted = ", ".join(f"{count:,} of {kind}" for kind, count in changes.items())
    stderr().print(
        f"{len(objects.pods):,} pods on {len(objects.nodes):,} nodes; changes: {counted or 'none'}"
    )


def _counting(informer: Informer[Any], changes: "Counter[str]") -> Handler[Any]:
    """Counts what changes after the first list."""

    def changed(*_: object) -> None:
        if informer.has_synced:
            changes[informer.cls.__name__] += 1

    return Handler(changed, changed, changed)
