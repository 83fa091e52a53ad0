"""The embedded server on a loopback socket, and a plain HTTP client."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import aiohttp
import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NAMESPACES
from kubestow.testing.clock import ManualClock

T = TypeVar("T")


class Reply(NamedTuple):
    status: int
    body: Any  # the JSON of the answer, or its text
    content_type: str
    warnings: tuple[str, ...] = ()


class Client:
    def __init__(self, session: aiohttp.ClientSession, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.server: ApiServer | None = None
        self._session = session

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        is_raw = isinstance(body, bytes | io.BytesIO | None)
        data = body if is_raw else json.dumps(body).encode()
        sent = {**(headers or {})}
        if data is not None:
            sent["Content-Type"] = content_type
        async with self._session.request(
            method, path, data=data, headers=sent, params={k: str(v) for k, v in query.items()}
        ) as response:
            text = await response.text()
            kind = response.headers["Content-Type"]
            sent_back = json.loads(text) if "json" in kind else text
            warnings = tuple(map(_warning, response.headers.getall("Warning", [])))
            return Reply(response.status, sent_back, kind, warnings)

    async def get(self, path: str, accept: str = "", **query: Any) -> Reply:
        return await self.call("GET", path, headers={"Accept": accept or "*/*"}, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Reply:
        return await self.call("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, kind: str = "merge", **query: Any) -> Reply:
        content_type = f"application/{kind}-patch+json"
        return await self.call("PATCH", path, body, content_type=content_type, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Reply:
        return await self.call("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, accept: str = "", **query: Any) -> AsyncIterator["Lines"]:
        parameters = {"watch": "true", **{k: str(v) for k, v in query.items()}}
        headers = {"Accept": accept or "*/*"}
        async with self._session.get(path, params=parameters, headers=headers) as response:
            yield Lines(response)


def _warning(header: str) -> str:
    """The text in `299 - "text"`."""
    return json.loads(header.removeprefix("299 - "))


class Lines:
    """The events of a watch, one at a time."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._response = response

    async def next(self) -> JsonObject | None:
        """The next event; None when the watch has ended."""
        async with asyncio.timeout(300):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    def leave(self) -> None:
        """Close the connection without ending the request, as a client that crashes."""
        self._response.close()


Work = Callable[[Client], Awaitable[T]]
Serve = Callable[..., Any]


@pytest.fixture
def cluster(clock: ManualClock) -> MemoryCluster:
    """A cluster with the default namespace."""
    cluster = MemoryCluster(clock, namespace_lifecycle=True)
    cluster.create(NAMESPACES, {"metadata": {"name": "default"}})
    return cluster


@pytest.fixture
def serve(cluster: MemoryCluster, clock: ManualClock) -> Serve:
    """Runs a coroutine function with a client of the cluster's server."""

    def run(work: Work[T], *, token: str = "", headers: dict[str, str] | None = None) -> T:
        async def with_server() -> T:
            server = ApiServer(cluster, clock, token=token)
            port = await server.start()
            try:
                async with aiohttp.ClientSession(
                    f"http://127.0.0.1:{port}", headers=headers
                ) as session:
                    client = Client(session, cluster)
                    client.server = server
                    return await work(client)
            finally:
                await server.close()

        return asyncio.run(with_server())

    return run
