"""Two replicas under load on a bad network: connections stall, are reset, or end in the middle.

The network is a relay of bytes between the schedulers and the API server. TLS ends in the API
server, so any part of any request or answer may be lost, but none altered.
"""

import asyncio
import contextlib
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

PAUSE_S: Final = (0.0, 0.05)
# Far less than a lease lasts: a binding that was sent in time also arrives in time.
STALL_S: Final = (0.5, 3.0)
# How many bytes a connection carries before its fault, small and large ones equally often: a list
# of all pods has some millions.
BYTES: Final = (5e3, 2e7)
FAULTS: Final = ("reset", "close", "freeze", "stall")
# Resets the connection when it is closed, instead of sending what is left.
LINGER: Final = struct.pack("ii", 1, 0)
FAULT_COUNT_MIN: Final = 20


def test_a_bad_network_loses_no_pod(run_load: Any, seed: int) -> None:
    async def main(load: Any) -> None:
        faults = load.network.faults
        await load.wait_all_bound()
        codes = [place.exit_codes for place in load.places]
        print(f"seed {seed}: {dict(faults)}; schedulers ended with {codes}")
        assert faults.total() >= FAULT_COUNT_MIN

    run_load(main, limit_s=900, between=lambda url: bad_network(url, seed))


@contextlib.asynccontextmanager
async def bad_network(url: str, seed: int) -> AsyncIterator["BadNetwork"]:
    target = urlsplit(url)
    assert target.hostname is not None
    assert target.port is not None
    network = BadNetwork(target.hostname, target.port, np.random.default_rng(seed))
    server = await asyncio.start_server(network.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    network.url = f"{target.scheme}://127.0.0.1:{port}"
    try:
        yield network
    finally:
        server.close()
        await network.end()


class BadNetwork:
    """A relay. Each connection gets one fault after a number of bytes; after a stall, another."""

    def __init__(self, host: str, port: int, rng: np.random.Generator) -> None:
        self.url = ""
        self.faults: Counter[str] = Counter()
        self._host = host
        self._port = port
        self._rng = rng
        self._carrying: set[asyncio.Task[None]] = set()

    async def end(self) -> None:
        """Close the connections that are left, a frozen one never ends by itself."""
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with closing(writer):
            try:
                away_reader, away_writer = await asyncio.open_connection(self._host, self._port)
            except OSError:  # the server is full or away
                return
            async with closing(away_writer):
                await self._carry_both_ways(reader, writer, away_reader, away_writer)

    async def _carry_both_ways(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        away_reader: asyncio.StreamReader,
        away_writer: asyncio.StreamWriter,
    ) -> None:
        connection = _Connection(self, self._rng)
        ways = [
            asyncio.create_task(connection.copy(reader, away_writer)),
            asyncio.create_task(connection.copy(away_reader, writer)),
        ]
        # A frozen way never ends by itself: the other one ends when its end of the connection is
        # closed by a process that has waited long enough.
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
        if connection.fault == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)


@contextlib.asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close a connection at the end; at once, with what is left to be written, if cancelled."""
    try:
        yield
    except asyncio.CancelledError:
        writer.transport.abort()
        await asyncio.sleep(0)  # the socket is closed in the next turn of the loop
        raise
    finally:
        writer.close()


class _Connection:
    def __init__(self, network: BadNetwork, rng: np.random.Generator) -> None:
        self._network = network
        self._rng = rng
        self._is_frozen = False
        self._choose()

    def _choose(self) -> None:
        self.fault = str(self._rng.choice(FAULTS))
        self._left = int(np.exp(self._rng.uniform(*np.log(BYTES))))

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one end is closed, or the fault ends the connection."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if self._is_frozen:
                    continue  # Both ends are open, and nothing arrives any more.
                await asyncio.sleep(self._rng.uniform(*PAUSE_S))
                if len(data) < self._left:
                    self._left -= len(data)
                    writer.write(data)
                    await writer.drain()
                    continue
                writer.write(data[: self._left])
                if await self._fail():
                    return
                writer.write(b"" if self._is_frozen else data[self._left :])
                self._choose()

    async def _fail(self) -> bool:
        """Whether the connection ends."""
        self._network.faults[self.fault] += 1
        if self.fault == "stall":
            await asyncio.sleep(self._rng.uniform(*STALL_S))
        self._is_frozen = self.fault == "freeze"
        return self.fault in ("reset", "close")
