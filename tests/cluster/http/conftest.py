"""API servers with scripted answers, on real loopback sockets."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from ssl import SSLContext
from typing import Any, NamedTuple

import numpy as np
import pytest
from aiohttp import web

from kubestow.clock import SystemClock
from kubestow.cluster.http.credentials import Credentials, FixedCredentials, bearer
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = web.Response | Handler


class Seen(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any  # JSON


class ScriptedServer:
    """Gives its answers in order, the last one repeatedly; records the requests."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.requests: list[Seen] = []
        self.url = ""
        self._answers = list(answers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.body_exists and await request.read() else None
        query = dict(request.query)
        self.requests.append(Seen(request.method, request.path, query, dict(request.headers), body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, web.Response):
            return answer
        return await answer(request)


Serve = Callable[..., AbstractAsyncContextManager[ScriptedServer]]


@pytest.fixture
def serve() -> Serve:
    @asynccontextmanager
    async def start(
        *answers: Answer, tls: SSLContext | None = None
    ) -> AsyncIterator[ScriptedServer]:
        server = ScriptedServer(answers)
        runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"{'https' if tls else 'http'}://{host}:{port}"
        try:
            yield server
        finally:
            await runner.cleanup()
            await _settle()

    return start


class RawServer:
    """A server below HTTP: each connection is given to a function."""

    def __init__(self) -> None:
        self.port = 0
        self.connection_count = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ServeRaw = Callable[..., AbstractAsyncContextManager[RawServer]]


@pytest.fixture
def serve_raw() -> ServeRaw:
    @asynccontextmanager
    async def start(talk: Talk, tls: SSLContext | None = None) -> AsyncIterator[RawServer]:
        server = RawServer()
        tasks: set[asyncio.Task[Any]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server.connection_count += 1
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await talk(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass  # the client has closed the connection
            finally:
                tasks.discard(task)
                writer.close()

        listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
        server.port = listener.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            listener.close()
            for task in list(tasks):
                task.cancel()
            await _settle()

    return start


async def _settle() -> None:
    """Wait for closed connections, so that none is left when the loop ends."""
    for _ in range(5):
        await asyncio.sleep(0)


class Pauses:
    """Replaces sleeping: records the delay, and yields to other tasks."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    async def __call__(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)
        await asyncio.sleep(0)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


Connect = Callable[..., HttpClient]


@pytest.fixture
def connect(pauses: Pauses) -> Connect:
    """A client of a server's URL, by default without a rate limit."""

    def build(
        url: str,
        *,
        credentials: Credentials | None = None,
        config: ServerConfig | None = None,
        **options: Any,
    ) -> HttpClient:
        if config is None:
            config = ServerConfig(
                server=url, credentials=credentials or FixedCredentials(bearer("secret"))
            )
        session = ApiSession(config, SystemClock(), **{"qps": -1.0, "sleep": pauses, **options})
        return HttpClient(session, rng=np.random.default_rng(0), sleep=pauses)

    return build


class Certificates(NamedTuple):
    """Files of a small public key infrastructure."""

    ca: Path
    server: Path  # for localhost and 127.0.0.1
    server_key: Path
    client: Path  # for user "ann"
    client_key: Path
    other_ca: Path  # has signed nothing


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def _authority(folder: Path, name: str) -> None:
    _openssl(
        folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", "2",
        "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign",
    )  # fmt: skip


def _signed(folder: Path, name: str, subject: str, extension: str) -> None:
    (folder / f"{name}.ext").write_text(extension)
    _openssl(
        folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject,
    )  # fmt: skip
    _openssl(
        folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
        "-CAcreateserial", "-days", "2", "-out", f"{name}.crt", "-extfile", f"{name}.ext",
    )  # fmt: skip


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("pki")
    try:
        _authority(folder, "ca")
        _authority(folder, "other")
        _signed(folder, "server", "/CN=api", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        _signed(folder, "client", "/CN=ann/O=admins", "extendedKeyUsage=clientAuth")
    except FileNotFoundError:
        pytest.skip("these tests make certificates with the openssl command, which is not here")
    return Certificates(
        folder / "ca.crt",
        folder / "server.crt",
        folder / "server.key",
        folder / "client.crt",
        folder / "client.key",
        folder / "other.crt",
    )


@pytest.fixture
def deep_fields() -> bytes:
    """An entry of managedFields with as many levels as an API server stores."""
    levels = 9_995
    fields = b'{"f:a":' * levels + b"{}" + b"}" * levels
    return b'{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":%s}' % fields
