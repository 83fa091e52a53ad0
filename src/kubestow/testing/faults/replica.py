"""One scheduler of a simulated cluster: a process that is started again whenever it ends."""

import asyncio
from collections.abc import Callable
from typing import Final

import numpy as np

from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import NANOSECONDS
from kubestow.service.connections import Connections
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.testing.faults.client import FaultyClient, Link
from kubestow.testing.faults.replicas import SimulatedProcess

# How long the kubelet takes to start a process that ended.
RESTART_S: Final = 2.0


class MovedClock(VirtualClock):
    """The clock of one machine, whose wall time may be set to another."""

    offset_ns = 0

    def now_ns(self) -> int:
        return super().now_ns() + self.offset_ns

    def move(self, seconds: float) -> None:
        self.offset_ns += round(seconds * NANOSECONDS)


class Replica:
    """A place where a scheduler runs, with its link to the API server."""

    def __init__(
        self,
        name: str,
        cluster: MemoryCluster,
        rng: np.random.Generator,
        on_bind: "Callable[[Replica, Pod, str], None]",
    ) -> None:
        self.name = name
        self.link = Link(name, rng)
        self.clock = MovedClock(asyncio.get_running_loop())
        self.process: SchedulerProcess | None = None
        self.exit_codes: list[int | str] = []
        self._cluster = cluster
        self._rng = rng
        self._on_bind = on_bind
        self._machine: SimulatedProcess | None = None
        self._ended: asyncio.Future[int | str] = asyncio.get_running_loop().create_future()
        self._killed: list[SimulatedProcess] = []
        self._clients: list[FaultyClient] = []
        self._is_closed = False

    @property
    def is_up(self) -> bool:
        """Whether the process runs: not being started again, not paused."""
        return self._machine is not None and self._machine.is_running

    @property
    def identity(self) -> str:
        """The identity in the lease."""
        process = self.process
        assert process is not None
        assert process.leadership is not None
        return process.leadership.identity

    @property
    def is_leading(self) -> bool:
        return self.process is not None and self.process.is_active

    async def run(self) -> None:
        """Start the process again and again."""
        while not self._is_closed:
            machine = self._machine = SimulatedProcess(self.name)
            self._ended = asyncio.get_running_loop().create_future()
            machine.call(lambda: self._start(self._ended))
            code = await self._ended
            self.exit_codes.append(code)
            self._close_connections()
            self.process = self._machine = None
            if not self._is_closed:
                await asyncio.sleep(RESTART_S)

    def _start(self, ended: "asyncio.Future[int | str]") -> None:
        """Build the process and let it run; called in its own context."""
        options = parse_options(["--secure-port=0"])
        assert isinstance(options, SchedulerOptions)
        main, events, election = (self._client(timeout_s) for timeout_s in (None, None, 5.0))
        process = self.process = SchedulerProcess(
            options,
            Connections(main=main, events=events, election=election, lease_events=election),
            ProcessMetrics(options, self.clock, self._rng),
            self.clock,
            self._rng,
            hostname=self.name,
        )

        async def run() -> None:
            try:
                code: int | str = await process.run()
            except Exception as error:  # What ends the process is judged afterwards.
                code = repr(error)
            if not ended.done():
                ended.set_result(code)

        asyncio.get_running_loop().create_task(run())

    def _client(self, timeout_s: float | None) -> FaultyClient:
        client = FaultyClient(
            self._cluster,
            self.link,
            lambda pod, node_name: self._on_bind(self, pod, node_name),
            timeout_s=timeout_s,
        )
        self._clients.append(client)
        return client

    def _close_connections(self) -> None:
        for client in self._clients:
            client.close_watches()
        self._clients.clear()

    # --- what happens to it ---

    def kill(self) -> None:
        if self._machine is not None and not self._ended.done():
            self._machine.kill()
            self._killed.append(self._machine)
            self._ended.set_result("killed")

    def pause(self) -> None:
        if self._machine is not None:
            self._machine.pause()

    def resume(self) -> None:
        if self._machine is not None:
            self._machine.resume()

    def stop(self) -> None:
        """End the process as SIGTERM does, for good."""
        self._is_closed = True
        for machine in self._killed:
            machine.bury()
        if self.process is not None:
            self.process.request_stop()
