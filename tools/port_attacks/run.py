"""One run: a scheduler with the page, one attack after the other, and all of them together."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec

from kubestow.clock import SystemClock
from tools.free_port import free_port
from tools.port_attacks.attacks import LOOPBACK, NAMES, Attacker
from tools.port_attacks.cluster import ClusterProcess
from tools.port_attacks.probes import Probes
from tools.scheduler_process import SchedulerProcessRun, running_scheduler

NOTHING: Final = "nothing"
EVERYTHING: Final = "all together"
AND: Final = " + "  # between the names of attacks that are made at the same time
ALL: Final = (NOTHING, *NAMES, EVERYTHING)
# What an attack may delay.
LEASE_S_MAX: Final = 2.0
PROBE_S_MAX: Final = 1.0
# Attackers have machines of their own: here they take the CPU time that the scheduler leaves.
NICE: Final = 10
# The lease is renewed this often.
RENEWAL_S: Final = 2.0


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one attack did."""

    name: str
    connections: int
    renewals: int
    lease_delay_s: float  # of a renewal, the longest
    probes: int
    failed_probes: int
    probe_s: float  # the longest
    log_lines: int
    tracebacks: int
    rss_mib: float
    is_leading: bool  # afterwards, without an interruption

    @property
    def is_harmless(self) -> bool:
        return (
            self.is_leading
            and self.probes > 0
            and not self.failed_probes
            and not self.tracebacks
            and self.lease_delay_s <= LEASE_S_MAX
            and self.probe_s <= PROBE_S_MAX
        )


class AttackRun:
    def __init__(self, folder: Path, *, seconds: float, nice: int = NICE) -> None:
        """The cluster's files go to the folder; each attack lasts `seconds`.

        `nice` is by how much the CPU priority of attackers is below that of the scheduler.
        """
        self._nice = nice
        self._folder = folder
        self._seconds = seconds
        self._clock = SystemClock()

    async def run(self, names: Sequence[str], report: Callable[[Measured], None]) -> None:
        """Report each attack as soon as it is measured."""
        cluster = await asyncio.to_thread(ClusterProcess, self._folder)
        port = free_port()
        try:
            async with AsyncExitStack() as stack:
                scheduler = await stack.enter_async_context(
                    running_scheduler(*_flags(cluster, port))
                )
                await scheduler.wait_for_line("Successfully acquired lease")
                probes = Probes(port, self._clock)
                await probes.wait_ready()
                asking = asyncio.create_task(probes.run())
                try:
                    for name in names:
                        report(await self._measure(name, cluster, scheduler, probes, port))
                finally:
                    asking.cancel()
                    await asyncio.gather(asking, return_exceptions=True)
                if scheduler.process.returncode is None:
                    await scheduler.end()
        finally:
            await asyncio.to_thread(cluster.close)

    async def _measure(
        self,
        name: str,
        cluster: ClusterProcess,
        scheduler: SchedulerProcessRun,
        probes: Probes,
        port: int,
    ) -> Measured:
        chosen = NAMES if name == EVERYTHING else () if name == NOTHING else name.split(AND)
        attackers = [
            await asyncio.to_thread(Attacker, each, port, nice=self._nice) for each in chosen
        ]
        for attacker in attackers:
            await asyncio.to_thread(attacker.start)
        before = await asyncio.to_thread(cluster.read)
        probes.read()
        line_count = len(scheduler.lines)
        await asyncio.sleep(self._seconds)
        asked = probes.read()
        seen = await asyncio.to_thread(cluster.read)
        connections = sum([await asyncio.to_thread(attacker.stop) for attacker in attackers])
        lines = scheduler.lines[line_count:]
        return Measured(
            name=name,
            connections=connections,
            renewals=seen.renewals,
            lease_delay_s=round(max(0.0, seen.longest_s - RENEWAL_S), 3),
            probes=asked.count,
            failed_probes=asked.failed,
            probe_s=round(asked.longest_s, 3),
            log_lines=len(lines),
            tracebacks=sum("Traceback" in line for line in lines),
            rss_mib=_rss_mib(scheduler.process.pid),
            is_leading=seen.holder == before.holder != "",
        )


def _flags(cluster: ClusterProcess, port: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={cluster.kubeconfig}",
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        "--page",
        "--v=2",
    )


def _rss_mib(pid: int) -> float:
    """The memory of another process; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    kib = next((line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")), "0")
    return round(int(kib) / 1024, 1)
