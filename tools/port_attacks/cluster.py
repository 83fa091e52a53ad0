"""The cluster of the scheduler: an API server in a process of its own.

It answers each review some seconds late, as a server does that has too much to do, and measures
the time between two renewals of the lease.
"""

import asyncio
import logging
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, Literal

import msgspec
from aiohttp import web

from kubestow.api.coordination import Lease
from kubestow.apiserver.http.server import ApiServer
from tools.https_cluster import TOKEN, HttpsCluster

REVIEW_S: Final = 5.0
_REVIEWS: Final = ("/tokenreviews", "/subjectaccessreviews")


class SeenLease(msgspec.Struct, frozen=True):
    """What the cluster saw since the last reading."""

    renewals: int
    longest_s: float  # between two renewals, or since the last one
    holder: str


class ClusterProcess:
    """A cluster in another process; its kubeconfig is in the folder."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_main, args=(theirs, folder), daemon=True)
        self._process.start()
        self.kubeconfig: Final = Path(self._pipe.recv())

    def read(self) -> SeenLease:
        self._pipe.send("read")
        return self._pipe.recv()

    def close(self) -> None:
        self._pipe.send("close")
        self._process.join()


def _main(pipe: Connection, folder: Path) -> None:
    logging.disable(logging.CRITICAL)
    asyncio.run(_Cluster(folder).run(pipe))


class _SlowReviews(ApiServer):
    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith(_REVIEWS):
            await asyncio.sleep(REVIEW_S)
        return await super()._handle(request)


class _Cluster(HttpsCluster):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = _SlowReviews(self.store, self.clock, token=TOKEN)
        self._renewals = 0
        self._longest_s = 0.0
        self._renewed_s: float | None = None

    async def run(self, pipe: Connection) -> None:
        loop = asyncio.get_running_loop()
        async with self.serving():
            following = loop.create_task(self._follow_lease())
            pipe.send(str(self.kubeconfig))
            while True:
                asked: Literal["read", "close"] = await loop.run_in_executor(None, pipe.recv)
                if asked == "close":
                    break
                pipe.send(await self._read())
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _read(self) -> SeenLease:
        waits_s = 0.0
        if self._renewed_s is not None:
            waits_s = self.clock.monotonic_s() - self._renewed_s
        seen = SeenLease(
            self._renewals,
            max(self._longest_s, waits_s),
            await self.holder() if self._renewed_s is not None else "",
        )
        self._renewals, self._longest_s = 0, 0.0
        return seen

    async def _follow_lease(self) -> None:
        listing = await self.client.list_and_watch(Lease)
        while batch := await listing.watch.next_batch():
            now_s = self.clock.monotonic_s()
            if self._renewed_s is not None:
                self._longest_s = max(self._longest_s, now_s - self._renewed_s)
            self._renewed_s = now_s
            self._renewals += len(batch)
