"""What a request costs this process: our own client beside a general one.

    python -m pytest tests/bench/test_http_request.py -s

prints microseconds of CPU for each binding, over TLS, sixteen at a time. The limit asserted is
wide, so that a busy machine does not fail it.
"""

import asyncio
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.cluster.http.credentials import FixedCredentials, bearer
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.http.tls import TlsSettings

REQUESTS = 3_000
AT_A_TIME = 16
LIMIT_US = 500.0

# Answers every request at once, so that what is measured is the client.
SERVER = """
import asyncio, ssl, sys
BODY = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
ANSWER = (b'HTTP/1.1 201 Created\\r\\nAudit-Id: 5a0bbd53-1f7c-4c6b-8f6f-5a0bbd531f7c\\r\\n'
          b'Cache-Control: no-cache, private\\r\\nContent-Type: application/json\\r\\n'
          b'Content-Length: %d\\r\\n\\r\\n%s' % (len(BODY), BODY))
class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.arrived = transport, b''
    def data_received(self, data):
        self.arrived += data
        while (end := self.arrived.find(b'\\r\\n\\r\\n')) >= 0:
            head = self.arrived[:end].lower()
            length = int(head.partition(b'content-length:')[2].split(b'\\r')[0] or 0)
            if len(self.arrived) < end + 4 + length:
                return
            self.arrived = self.arrived[end + 4 + length:]
            self.transport.write(ANSWER)
async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('cert.pem', 'key.pem')
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, '127.0.0.1', 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


class Target:
    def __init__(self, url: str, ca_file: str) -> None:
        self.url = url
        self.ca_file = ca_file


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
             "-days", "2", "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1"],
            cwd=tmp_path, check=True, capture_output=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("this benchmark makes a certificate with the openssl command, which is missing")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        yield Target(f"https://127.0.0.1:{port}", str(tmp_path / "cert.pem"))
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()


async def with_ours(target: Target, measure: Callable[..., Awaitable[float]]) -> float:
    config = ServerConfig(
        server=target.url,
        tls=TlsSettings(ca_file=target.ca_file),
        credentials=FixedCredentials(bearer("0123456789abcdef")),
    )
    client = HttpClient(ApiSession(config, SystemClock(), qps=-1.0), rng=np.random.default_rng(0))
    pod = Pod(metadata=ObjectMeta(name="pod-1", namespace="default", uid="u"))
    try:
        return await measure(lambda: client.bind(pod, "node-1"))
    finally:
        client.close()


async def with_aiohttp(target: Target, measure: Callable[..., Awaitable[float]]) -> float:
    body = (
        b'{"kind":"Binding","metadata":{"name":"pod-1","namespace":"default","uid":"u"},'
        b'"target":{"kind":"Node","name":"node-1"},"apiVersion":"v1"}'
    )
    context = ssl.create_default_context(cafile=target.ca_file)
    async with aiohttp.ClientSession(
        target.url,
        headers={"Authorization": "Bearer 0123456789abcdef", "Content-Type": "application/json"},
        connector=aiohttp.TCPConnector(ssl=context, limit=AT_A_TIME),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:

        async def bind() -> None:
            path = "/api/v1/namespaces/default/pods/pod-1/binding"
            async with session.post(path, data=body) as response:
                await response.read()

        return await measure(bind)


async def cpu_us(bind: Callable[[], Awaitable[None]]) -> float:
    async def work(count: int) -> None:
        for _ in range(count):
            await bind()

    await asyncio.gather(*(work(1) for _ in range(AT_A_TIME)))  # connect first
    started_s = time.process_time()
    await asyncio.gather(*(work(REQUESTS // AT_A_TIME) for _ in range(AT_A_TIME)))
    return (time.process_time() - started_s) / REQUESTS * 1e6


@pytest.mark.slow
@pytest.mark.parametrize("client", [with_ours, with_aiohttp])
def test_cpu_of_a_binding(target: Target, client: Callable[..., Awaitable[float]]):
    async def main() -> float:
        found = await client(target, cpu_us)
        await asyncio.sleep(0)
        return found

    found_us = asyncio.run(main())
    print(f"\n{client.__name__}: {found_us:.0f} us of CPU for each binding")
    if client is with_ours:
        assert found_us < LIMIT_US
