"""One soak: the service and the embedded API server in one process, in real time.

With `over_http` the scheduler talks to the API server by its socket, else by function calls. Memory
is that of the whole process, so growth of either part shows.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import numpy as np

from kubestow import collector
from kubestow.api.coordination import Lease
from kubestow.api.pod import Pod
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock
from kubestow.cluster.resources import NAMESPACES
from kubestow.service.connections import Connections, connect
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess
from kubestow.service.soak.churn import Churn
from kubestow.service.soak.gauges import KeptSize, containers, rss_mib
from kubestow.service.soak.spread import Percentiles, Spread

# Every sample; the second half of a run is judged.
SAMPLE_S: Final = 1.0
# How often the loop is checked for stalls.
BEAT_S: Final = 0.01
# Memory that grows by more than this for each 1,000 pods created does not settle: a pod that is
# never forgotten takes several KiB.
GROWTH_MIB_MAX: Final = 1.0
# The history of the embedded API server and the caches by shape are full after this many pods, and
# those that the cluster holds. Before that, growth says nothing.
FILLING_PODS: Final = 8_000


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    second: float
    created: int
    rss_mib: float
    queued: int


class SoakReport(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    over_http: bool
    nodes: int
    created: int
    bound: int
    # Of the second half; None if that has fewer than `judged_from` pods before it.
    growth_mib_per_1000_pods: float | None
    judged_from: int
    stalls: Percentiles
    lease_lateness: Percentiles
    latency: Percentiles  # from the creation of a pod to its binding
    queue_depth_max: int
    containers: Sequence[KeptSize]
    samples: Sequence[Sample]

    @property
    def is_growing(self) -> bool:
        growth = self.growth_mib_per_1000_pods
        return growth is not None and growth > GROWTH_MIB_MAX


class Soak:
    def __init__(
        self, clock: Clock, *, nodes: int, pods_per_s: int, over_http: bool, seed: int = 0
    ) -> None:
        self._clock = clock
        self._rng = np.random.default_rng(seed)
        self._nodes = nodes
        self._over_http = over_http
        self._cluster = MemoryCluster(clock)
        self._cluster.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
        self._churn = Churn(self._cluster, clock, self._rng, nodes=nodes, pods_per_s=pods_per_s)
        self._stalls, self._leases, self._latency = Spread(), Spread(), Spread()
        self._bound_count = 0
        self.samples: list[Sample] = []

    async def run(self, seconds: float) -> SoakReport:
        async with self._connections() as (options, connections, metrics):
            process = SchedulerProcess(
                options,
                connections,
                metrics,
                self._clock,
                self._rng,
                hostname="soak",
                on_synced=collector.settle,
            )
            service: asyncio.Task[Any] = asyncio.create_task(process.run())
            await process.watcher.wait_synced()
            parts: list[asyncio.Task[Any]] = [
                asyncio.create_task(part)
                for part in (
                    self._churn.run(),
                    self._beat(),
                    self._follow_pods(),
                    self._follow_lease(process.config.leader_election.retry_period.seconds),
                    self._sample(process, seconds),
                )
            ]
            try:
                # The last part ends by itself; each of the others only by a fault.
                done, _ = await asyncio.wait([*parts, service], return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                kept = containers(process)
            finally:
                process.request_stop()
                for task in parts:
                    task.cancel()
                await asyncio.gather(*parts, service, return_exceptions=True)
        return self._report(seconds, kept)

    @asynccontextmanager
    async def _connections(
        self,
    ) -> AsyncGenerator[tuple[SchedulerOptions, Connections, ProcessMetrics], None]:
        flags = ["--secure-port=0", "--kube-api-qps=-1"]
        server: ApiServer | None = None
        if self._over_http:
            server = ApiServer(self._cluster, self._clock)
            flags.append(f"--master=http://127.0.0.1:{await server.start()}")
        options = parse_options(flags)
        assert isinstance(options, SchedulerOptions)
        metrics = ProcessMetrics(options, self._clock, self._rng)
        try:
            if server is not None:
                connections = connect(
                    options, metrics.requests, self._clock, self._rng, post=_call_here
                )
                yield options, connections, metrics
            else:
                client = MemoryClient(self._cluster)
                yield options, Connections(main=client, events=client, election=client), metrics
        finally:
            if server is not None:
                await server.close()

    # --- what is measured ---

    async def _beat(self) -> None:
        while True:
            due_s = self._clock.monotonic_s() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self._stalls.add(max(self._clock.monotonic_s() - due_s, 0.0))

    async def _follow_pods(self) -> None:
        listing = await MemoryClient(self._cluster).list_and_watch(Pod)
        while batch := await listing.watch.next_batch():
            now_s = self._clock.monotonic_s()
            for event in batch:
                if event.type != "MODIFIED" or not event.object.spec.node_name:
                    continue
                created_s = self._churn.created_s.pop(event.object.metadata.name, None)
                if created_s is not None:
                    self._latency.add(now_s - created_s)
                    self._bound_count += 1

    async def _follow_lease(self, period_s: float) -> None:
        """How much later than its period each renewal is."""
        listing = await MemoryClient(self._cluster).list_and_watch(Lease)
        last_s: float | None = None
        while await listing.watch.next_batch():
            now_s = self._clock.monotonic_s()
            if last_s is not None:
                self._leases.add(max(now_s - last_s - period_s, 0.0))
            last_s = now_s

    async def _sample(self, process: SchedulerProcess, seconds: float) -> None:
        started_s = self._clock.monotonic_s()
        while (second := self._clock.monotonic_s() - started_s) < seconds:
            queue = process.scheduler.queue.statistics()
            self.samples.append(
                Sample(
                    second=round(second, 1),
                    created=self._churn.created_count,
                    rss_mib=round(rss_mib(), 1),
                    queued=queue.active + queue.backoff + queue.error_backoff,
                )
            )
            await asyncio.sleep(min(SAMPLE_S, seconds - second))

    def _report(self, seconds: float, kept: Sequence[KeptSize]) -> SoakReport:
        judged_from = self._churn.live_max + FILLING_PODS
        return SoakReport(
            seconds=seconds,
            over_http=self._over_http,
            nodes=self._nodes,
            created=self._churn.created_count,
            bound=self._bound_count,
            growth_mib_per_1000_pods=growth(self.samples, judged_from),
            judged_from=judged_from,
            stalls=self._stalls.percentiles(),
            lease_lateness=self._leases.percentiles(),
            latency=self._latency.percentiles(),
            queue_depth_max=max((sample.queued for sample in self.samples), default=0),
            containers=kept,
            samples=self.samples,
        )


def growth(samples: Sequence[Sample], judged_from: int) -> float | None:
    """MiB for each 1,000 pods: the slope of a line through the second half.

    None if fewer pods than `judged_from` were created before that.
    """
    half = samples[len(samples) // 2 :]
    if half[0].created < judged_from:
        return None
    created = np.array([sample.created for sample in half], float)
    memory = np.array([sample.rss_mib for sample in half])
    if len(half) < 2 or created[0] == created[-1]:
        return 0.0
    slope: Any = np.polyfit(created, memory, 1)[0]
    return round(float(slope) * 1000, 3)


def table_rows(report: SoakReport) -> Iterator[tuple[str, str]]:
    """The report without its samples and containers, as names and values."""
    first, last = report.samples[0], report.samples[-1]
    growing = report.growth_mib_per_1000_pods
    yield "pods created", f"{report.created} in {report.seconds:.0f} s on {report.nodes} nodes"
    yield "pods bound", str(report.bound)
    yield "memory", f"{first.rss_mib:.0f} MiB at the start, {last.rss_mib:.0f} MiB at the end"
    yield (
        "growth in the second half",
        f"too short to say: needs {2 * report.judged_from} pods"
        if growing is None
        else f"{growing:.3f} MiB for each 1,000 pods (at most {GROWTH_MIB_MAX})",
    )
    for name, spread in (
        ("creation to binding", report.latency),
        ("stalls of the event loop", report.stalls),
        ("lateness of the lease", report.lease_lateness),
    ):
        yield (
            name,
            f"p50 {spread.p50_ms:.1f} ms, p99 {spread.p99_ms:.1f} ms, max {spread.max_ms:.1f} ms",
        )
    yield "queue depth", f"at most {report.queue_depth_max}"


def _call_here(function: Callable[[], None]) -> None:
    """The lease and the scheduler share the loop here."""
    function()
