"""Attacks on a port. Each keeps a number of connections open, and opens what was closed again.

An attack runs in a process of its own: its work is not that of the scheduler, nor of the probes.
"""

import asyncio
import multiprocessing
import os
import secrets
import ssl
import zlib
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

import msgspec

LOOPBACK: Final = "127.0.0.1"
_PACKED_MIB: Final = 1024
_CHUNK_BYTES: Final = 65_536
# A client that is refused tries again after this time.
_REFUSED_S: Final = 0.01


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """So many clients, each of which sends something and waits until it is closed."""

    name: str
    clients: int
    has_tls: bool
    # Called once; what it returns makes what a client sends on one connection.
    prepare: Callable[[], Callable[[], bytes]]
    # Whether a client leaves at once instead of waiting for an answer.
    leaves: bool = False
    # Whether a client reads what it is answered.
    reads: bool = True


def _request(path: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: scheduler", *headers)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def _packed() -> Callable[[], bytes]:
    """A body of a megabyte, that would be a gigabyte unpacked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1024**2)
    body = b"".join([*(packer.compress(zeros) for _ in range(_PACKED_MIB)), packer.flush()])
    head = ("Content-Encoding: gzip", f"Content-Length: {len(body)}")
    request = _request("/healthz", *head, body=body)
    return lambda: request


def _half_hello() -> bytes:
    """The first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="scheduler")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def _form() -> bytes:
    head = ("Content-Type: application/x-www-form-urlencoded", "Content-Length: 100")
    return _request("/page/session", *head, method="POST", body=b"token=")


def _unknown_token() -> bytes:
    return _request("/metrics", f"Authorization: Bearer {secrets.token_hex(16)}")


def _unknown_path() -> bytes:
    return _request(f"/{secrets.token_hex(16)}")


def client_context() -> ssl.SSLContext:
    """Trusts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _half_handshake() -> Callable[[], bytes]:
    hello = _half_hello()
    return lambda: hello


def _once(sent: bytes) -> Callable[[], Callable[[], bytes]]:
    return lambda: lambda: sent


ATTACKS: Final = (
    Attack(name="silent connections", clients=1000, has_tls=False, prepare=_once(b"")),
    Attack(name="half handshakes", clients=1000, has_tls=False, prepare=_half_handshake),
    Attack(name="half forms", clients=512, has_tls=True, prepare=_once(_form())),
    Attack(name="unknown tokens", clients=512, has_tls=True, prepare=lambda: _unknown_token),
    Attack(name="unknown paths", clients=512, has_tls=True, prepare=lambda: _unknown_path),
    Attack(name="packed bodies", clients=24, has_tls=True, prepare=_packed),
    Attack(
        name="pipelined requests",
        clients=16,
        has_tls=True,
        prepare=_once(_request("/healthz") * 8000),
        reads=False,
    ),
    Attack(
        name="requests",
        clients=64,
        has_tls=True,
        prepare=_once(_request("/healthz") * 8000),
    ),
    Attack(
        name="clients that leave", clients=64, has_tls=True, prepare=_once(_form()), leaves=True
    ),
)
NAMES: Final = tuple(attack.name for attack in ATTACKS)


class Attacker:
    """A process that attacks until it is stopped."""

    def __init__(self, name: str, port: int, *, nice: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, name, port, nice), daemon=True)
        self._process.start()

    def start(self) -> None:
        """Wait until the process is ready, and let it begin."""
        self._pipe.recv()
        self._pipe.send(None)

    def stop(self) -> int:
        """How many connections it has made."""
        self._pipe.send(None)
        count: int = self._pipe.recv()
        self._process.join()
        return count


def _main(pipe: Connection, name: str, port: int, nice: int) -> None:
    attack = next(attack for attack in ATTACKS if attack.name == name)
    os.nice(nice)
    clients = _Clients(attack, port)
    pipe.send(None)
    pipe.recv()
    asyncio.run(clients.run(pipe))


class _Clients:
    def __init__(self, attack: Attack, port: int) -> None:
        self._attack = attack
        self._port = port
        self._sent = attack.prepare()
        self._tls = client_context() if attack.has_tls else None
        self._count = 0

    async def run(self, pipe: Connection) -> None:
        loop = asyncio.get_running_loop()
        clients = [loop.create_task(self._attack_again()) for _ in range(self._attack.clients)]
        await loop.run_in_executor(None, pipe.recv)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        pipe.send(self._count)

    async def _attack_again(self) -> None:
        while True:
            try:
                await self._attack_once()
            except OSError:
                await asyncio.sleep(_REFUSED_S)

    async def _attack_once(self) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port, ssl=self._tls)
        try:
            self._count += 1
            writer.write(self._sent())
            if self._attack.leaves:
                return
            await writer.drain()
            if not self._attack.reads:
                # The buffers fill, and then nothing more is read from the connection.
                await asyncio.Event().wait()
            while await reader.read(_CHUNK_BYTES):
                pass
        finally:
            writer.transport.abort()
