"""One soak: the service and the embedded API server in one process, in real time.

    scheduler's loop   scheduler, churn, controllers, API server
    control loop       the lease, and the API server that stores it

With `over_http` the scheduler talks to both servers by their sockets, else by function calls.
Memory is that of the whole process, so growth of any part shows.
"""

import asyncio
import secrets
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from kubestow import collector
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock
from kubestow.cluster.resources import NAMESPACES
from kubestow.service.connections import Connections, connect
from kubestow.service.loops import Loops, SharedLoops
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess
from kubestow.service.soak.churn import Churn
from kubestow.service.soak.gauges import Containers, rss_mib
from kubestow.service.soak.limits import limits
from kubestow.service.soak.measures import Measures
from kubestow.service.soak.report import (
    KeptSample,
    Sample,
    SoakReport,
    grown,
    growth,
    without_constants,
)
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.volume_controller import VolumeController

# At most this many samples, however long the run; and one a second at most.
SAMPLES: Final = 720
SAMPLE_S_MIN: Final = 1.0
# Everything that is kept is looked through each time this many samples were taken.
SAMPLES_PER_KEPT: Final = 15
# Changes that the API server keeps of each resource: few, so that it soon holds no more of them.
HISTORY: Final = 1_024
STOP_S: Final = 0.5


class Soak:
    """Made inside a running event loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        nodes: int,
        pods_per_s: float,
        over_http: bool,
        loops: Loops | None = None,
        seed: int = 0,
    ) -> None:
        self._clock = clock
        self._rng = np.random.default_rng(seed)
        self._nodes = nodes
        self._pods_per_s = pods_per_s
        self._over_http = over_http
        self._loops = loops or SharedLoops()
        self._control = self._loops.control
        self._cluster = MemoryCluster(clock, history_max=HISTORY)
        self._leases = MemoryCluster(clock, history_max=HISTORY)
        self._leases.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
        self._churn = Churn(self._cluster, clock, self._rng, nodes=nodes, pods_per_s=pods_per_s)
        self._measures = Measures(clock)
        self._controllers = (
            FakeKubelets(self._cluster, clock, starts_pods=False, stop_s=STOP_S),
            VolumeController(self._cluster),
            EphemeralVolumeController(self._cluster),
            ResourceClaimController(self._cluster),
        )
        self.samples: list[Sample] = []
        self.kept: list[KeptSample] = []

    async def run(self, seconds: float) -> SoakReport:
        async with self._connections() as (options, connections, metrics):
            process = SchedulerProcess(
                options,
                connections,
                metrics,
                self._clock,
                self._rng,
                hostname="soak",
                loops=self._loops,
                on_synced=collector.settle,
            )
            service: asyncio.Task[Any] = asyncio.create_task(process.run())
            await process.watcher.wait_synced()
            churn = asyncio.create_task(self._churn.run())
            period_s = process.config.leader_election.retry_period.seconds
            parts: list[asyncio.Task[Any]] = [
                asyncio.create_task(part)
                for part in (
                    *(controller.run() for controller in self._controllers),
                    self._measures.beat(self._measures.stalls),
                    self._measures.follow_pods(self._cluster, self._churn),
                    self._control.run(self._measures.beat(self._measures.control_stalls)),
                    self._control.run(self._measures.follow_lease(self._leases, period_s)),
                    self._sample(process, metrics, seconds),
                )
            ]
            try:
                # The last part ends by itself; each of the others only by a fault.
                done, _ = await asyncio.wait(
                    [churn, service, *parts], return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
            finally:
                # The controllers last: bindings under way wait for them.
                churn.cancel()
                process.request_stop()
                await asyncio.gather(churn, service, return_exceptions=True)
                for task in parts:
                    task.cancel()
                await asyncio.gather(*parts, return_exceptions=True)
        return self._report(seconds)

    @asynccontextmanager
    async def _connections(
        self,
    ) -> AsyncGenerator[tuple[SchedulerOptions, Connections, ProcessMetrics], None]:
        flags = ("--secure-port=0", "--kube-api-qps=-1")
        if not self._over_http:
            options = _parsed(flags)
            main, leases = MemoryClient(self._cluster), MemoryClient(self._leases)
            metrics = ProcessMetrics(options, self._clock, self._rng)
            yield options, Connections(main=main, events=main, election=leases), metrics
            return
        # A token, since other programs of the machine, and sites in its browsers, reach the ports.
        token = secrets.token_urlsafe(24)
        server = ApiServer(self._cluster, self._clock, token=token)
        lease_server = ApiServer(self._leases, self._clock, token=token)
        try:
            ports = (await server.start(), await self._control.run(lease_server.start()))
            with tempfile.TemporaryDirectory() as folder:
                options, lease_options = (
                    _parsed([*flags, _kubeconfig(Path(folder), port, token)]) for port in ports
                )
                metrics = ProcessMetrics(options, self._clock, self._rng)
                main, leases = (
                    connect(each, metrics.requests, self._clock, self._rng, post=self._loops.post)
                    for each in (options, lease_options)
                )
            yield (
                options,
                main._replace(election=leases.election, lease_events=leases.lease_events),
                metrics,
            )
        finally:
            await self._control.run(lease_server.close())
            await server.close()

    async def _sample(
        self, process: SchedulerProcess, metrics: ProcessMetrics, seconds: float
    ) -> None:
        roots = (process, metrics, self._cluster, *self._controllers)
        containers = Containers(roots, limits(nodes=self._nodes, history=HISTORY))
        started_s = self._clock.monotonic_s()
        interval_s = max(SAMPLE_S_MIN, seconds / SAMPLES)
        while (second := round(self._clock.monotonic_s() - started_s, 3)) < seconds:
            self.samples.append(self._one_sample(process, second))
            if len(self.samples) % SAMPLES_PER_KEPT == 1:
                self._look_through(containers, second)
            await asyncio.sleep(min(interval_s, seconds - second))
        self._look_through(containers, second)

    def _one_sample(self, process: SchedulerProcess, second: float) -> Sample:
        queue, measures = process.scheduler.queue.statistics(), self._measures
        return Sample(
            second=second,
            created=self._churn.created_count,
            bound=measures.bound_count,
            rss_mib=round(rss_mib(), 1),
            queued=queue.active + queue.backoff + queue.error_backoff,
            parked=queue.unschedulable + queue.gated,
            latency=measures.latency.end_interval(),
            stalls=measures.stalls.end_interval(),
            control_stalls=measures.control_stalls.end_interval(),
            lease_lateness=measures.lease_lateness.end_interval(),
        )

    def _look_through(self, containers: Containers, second: float) -> None:
        self._measures.is_disturbed = True
        self.kept.append(KeptSample(second=second, containers=containers.sizes()))

    def _report(self, seconds: float) -> SoakReport:
        measures = self._measures
        kept = without_constants(self.kept)
        still = dict(grown(kept))
        return SoakReport(
            seconds=seconds,
            over_http=self._over_http,
            nodes=self._nodes,
            pods_per_s=self._pods_per_s,
            created=self._churn.created_count,
            bound=measures.bound_count,
            evicted=measures.evicted_count,
            growth_mib_per_1000_pods=growth(self.samples),
            filling=[name for name, kept in still.items() if kept.limit is not None],
            growing=[name for name, kept in still.items() if kept.limit is None],
            latency=measures.latency.percentiles(),
            stalls=measures.stalls.percentiles(),
            control_stalls=measures.control_stalls.percentiles(),
            lease_lateness=measures.lease_lateness.percentiles(),
            queue_depth_max=max(sample.queued for sample in self.samples),
            samples=self.samples,
            kept=kept,
        )


def _parsed(flags: Sequence[str]) -> SchedulerOptions:
    options = parse_options(flags)
    assert isinstance(options, SchedulerOptions)
    return options


def _kubeconfig(folder: Path, port: int, token: str) -> str:
    """Written for the user alone, and named by a flag."""
    file = folder / f"kubeconfig-{port}"
    KubeconfigFile(file).add(kubeconfig(url=f"http://127.0.0.1:{port}", token=token))
    return f"--kubeconfig={file}"
