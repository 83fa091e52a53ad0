"""One run: the whole service, ordinary pods, and one hostile case after the other.

The service runs in this process as `kubestow run` builds it, with its threads; the API
server is another process (`cluster`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import numpy as np

from kubestow import collector
from kubestow.clock import Clock, SystemClock, process_cpu_s
from kubestow.service.connections import connect
from kubestow.service.loops import LoopThreads
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess
from kubestow.service.soak.gauges import rss_mib
from tools.hostile.cluster import GATES, ClusterProcess, Seen
from tools.hostile.objects import NOTHING, Case
from tools.hostile.stretches import TimedSelector

# What an object may cost other pods.
STRETCH_S_MAX: Final = 0.25
RENEWAL_S: Final = 0.5
# A gap is measured, also one that would end a leader: this one keeps its lease on a machine that
# runs it seldom.
RENEW_DEADLINE_S: Final = 600
_POLL_S: Final = 0.05
_QUIET_S: Final = 0.3


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one size of a case cost. Without objects: what the ordinary pods cost by themselves."""

    name: str
    size: int
    stretch_cpu_ms: float  # the longest stretch of the loop
    stretch_wall_ms: float
    loop_cpu_ms: float  # all turns of the loop while the objects existed
    loop_cpu_share: float  # of that time
    canary_count: int
    canary_delay_ms: float  # from creation to binding, the longest
    lease_gap_ms: float  # between two renewals, the longest
    process_cpu_ms: float  # of all threads while the objects existed
    is_settled: bool  # bound, refused or evicted within the time limit
    evicted_count: int
    rss_mib: float  # of the process afterwards


class HostileRun:
    """Runs cases in one scheduler. `watch_s`: how long retries of each case are observed.

    With `halves`, half of each size is measured as well, which shows how costs grow.
    """

    def __init__(
        self,
        *,
        nodes: int,
        watch_s: float,
        halves: bool = True,
        attempt_budget_s: float = 10.0,
        limit_s: float = 120.0,
    ) -> None:
        self._clock: Clock = SystemClock()
        self._selector = TimedSelector(self._clock)
        self._nodes = nodes
        self._watch_s = watch_s
        self._halves = halves
        self._limit_s = limit_s
        self._attempt_budget_s = attempt_budget_s

    def run(self, cases: Sequence[Case], scale: float, report: Callable[[Measured], None]) -> None:
        """Report each size of each case when it is measured, the ordinary pods by themselves first.

        The service starts once: what an object leaves behind is there for the next ones.
        """
        with asyncio.Runner(
            loop_factory=lambda: asyncio.SelectorEventLoop(self._selector)
        ) as runner:
            runner.run(self._run(cases, scale, report))

    async def _run(
        self, cases: Sequence[Case], scale: float, report: Callable[[Measured], None]
    ) -> None:
        cluster = await asyncio.to_thread(ClusterProcess, self._nodes)
        try:
            async with self._service(cluster.port) as service:
                for case in (NOTHING, *cases):
                    sizes = case.sizes(scale)
                    for size in sizes if self._halves else sizes[-1:]:
                        report(await self._measure(cluster, service, case, size))
        finally:
            await asyncio.to_thread(cluster.close)

    async def _measure(
        self, cluster: ClusterProcess, service: "asyncio.Task[int]", case: Case, size: int
    ) -> Measured:
        await asyncio.to_thread(cluster.read)
        self._selector.reset()
        started_s, started_cpu_s = self._clock.monotonic_s(), process_cpu_s()
        await asyncio.to_thread(cluster.create, case, size)
        is_settled = await self._wait_settled(cluster, service)
        if service.done():
            # Every case that follows would wait in vain until its limit.
            raise RuntimeError(f"{case.name}, size {size}: the service ended")
        await asyncio.sleep(self._watch_s)
        seen: Seen = await asyncio.to_thread(cluster.read)
        passed_s = self._clock.monotonic_s() - started_s
        cpu_s = process_cpu_s() - started_cpu_s
        await asyncio.to_thread(cluster.remove)
        await asyncio.sleep(_QUIET_S)
        selector = self._selector
        return Measured(
            name=case.name,
            size=size,
            stretch_cpu_ms=_ms(selector.longest_cpu_s),
            stretch_wall_ms=_ms(selector.longest_wall_s),
            loop_cpu_ms=_ms(selector.total_cpu_s),
            loop_cpu_share=round(selector.total_cpu_s / passed_s, 2),
            canary_count=seen.canary_count,
            canary_delay_ms=_ms(seen.canary_longest_s),
            lease_gap_ms=_ms(seen.lease_longest_s),
            process_cpu_ms=_ms(cpu_s),
            is_settled=is_settled,
            evicted_count=seen.evicted_count,
            rss_mib=round(rss_mib(), 1),
        )

    async def _wait_settled(self, cluster: ClusterProcess, service: "asyncio.Task[int]") -> bool:
        deadline_s = self._clock.monotonic_s() + self._limit_s
        while not await asyncio.to_thread(cluster.is_settled):
            if service.done() or self._clock.monotonic_s() > deadline_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    @asynccontextmanager
    async def _service(self, port: int) -> AsyncGenerator["asyncio.Task[int]", None]:
        flags = (
            "--secure-port=0",
            "--kube-api-qps=-1",
            f"--master=http://127.0.0.1:{port}",
            f"--leader-elect-retry-period={RENEWAL_S}s",
            f"--leader-elect-renew-deadline={RENEW_DEADLINE_S}s",
            f"--leader-elect-lease-duration={2 * RENEW_DEADLINE_S}s",
            f"--attempt-budget={self._attempt_budget_s}s",
            f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}",
        )
        options = parse_options(flags)
        assert isinstance(options, SchedulerOptions)
        rng = np.random.default_rng(0)
        metrics = ProcessMetrics(options, self._clock, rng)
        loops = LoopThreads(self._clock)
        try:
            connections = connect(options, metrics.requests, self._clock, rng, post=loops.post)
            process = SchedulerProcess(
                options,
                connections,
                metrics,
                self._clock,
                rng,
                hostname="hostile",
                loops=loops,
                on_synced=collector.settle,
            )
            cycles = process.scheduler.cycles
            assert cycles is not None
            cycles.on_turn = self._selector.note_turn
            service = asyncio.create_task(process.run())
            try:
                await process.watcher.wait_synced()
                await asyncio.sleep(1.0)
                yield service
            finally:
                process.request_stop()
                await asyncio.gather(service, return_exceptions=True)
        finally:
            loops.close()


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
