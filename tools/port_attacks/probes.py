"""Probes as a kubelet sends them, each on a connection of its own, but more often."""

import asyncio
from typing import Final

import msgspec

from kubestow.clock import Clock
from tools.port_attacks.attacks import LOOPBACK, client_context

PATHS: Final = ("/livez", "/readyz", "/healthz")
PERIOD_S: Final = 0.2
# A kubelet's limit in `deploy/`.
LIMIT_S: Final = 15.0


class SeenProbes(msgspec.Struct, frozen=True):
    """What was measured since the last reading."""

    count: int
    failed: int
    longest_s: float


class Probes:
    def __init__(self, port: int, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._tls = client_context()
        self._count = self._failed = 0
        self._longest_s = 0.0
        self._started_s: dict[str, float] = {}  # of those that wait for their answer

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as group:
            for path in PATHS:
                group.create_task(self._ask_again(path))

    async def wait_ready(self) -> None:
        """Return when the scheduler is ready for the first time."""
        while not await self._is_good("/readyz"):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(PERIOD_S)

    def read(self) -> SeenProbes:
        # What still waits counts with the time until now.
        now_s = self._clock.monotonic_s()
        waiting_s = [now_s - started_s for started_s in self._started_s.values()]
        seen = SeenProbes(self._count, self._failed, max(self._longest_s, *waiting_s, 0.0))
        self._count = self._failed = 0
        self._longest_s = 0.0
        return seen

    async def _ask_again(self, path: str) -> None:
        while True:
            self._started_s[path] = started_s = self._clock.monotonic_s()
            is_good = await self._is_good(path)
            passed_s = self._clock.monotonic_s() - started_s
            del self._started_s[path]
            self._count += 1
            self._failed += not is_good
            self._longest_s = max(self._longest_s, passed_s)
            await asyncio.sleep(max(0.0, PERIOD_S - passed_s))

    async def _is_good(self, path: str) -> bool:
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._ask(path)
        except (OSError, asyncio.IncompleteReadError):
            return False

    async def _ask(self, path: str) -> bool:
        """Whether the answer is that all is well."""
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port, ssl=self._tls)
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: scheduler\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            return (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        finally:
            writer.transport.abort()
