"""Writes pod statuses beside the scheduling loop, in order for each pod.

The next pod must not wait until the condition of a failed one is written. But an API server carries
out two requests that are under way together in any order: a pod that was bound would keep the
condition of the attempt before. So each pod has at most one write under way; later ones wait, and
so does its binding (`under_way`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec

from kubestow.api.meta import Condition, object_ref
from kubestow.api.pod import Pod
from kubestow.cluster.client import ClusterClient
from kubestow.errors import ApiError, ConflictError, NotFoundError

log = logging.getLogger(__name__)


class StatusPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written to a pod's status; None leaves that part as it is."""

    condition: Condition | None = None
    nominated_node_name: str | None = None


class StatusWriter(Protocol):
    def start_write(self, pod: Pod, patch: StatusPatch) -> Awaitable[None]:
        """Start a patch; the result is ready when it was written or has failed."""
        ...

    async def write(self, pod: Pod, patch: StatusPatch) -> None:
        """Write a patch; raises the ApiError family."""
        ...

    def under_way(self, uid: str) -> Awaitable[None] | None:
        """Ready when the last write of this pod has ended; None if there is none."""
        ...


class ClientStatusWriter:
    def __init__(
        self,
        client: ClusterClient,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._client = client
        self._spawn = spawn
        # By UID, the last write of each pod that has one under way.
        self._last: dict[str, asyncio.Future[None]] = {}

    def under_way(self, uid: str) -> asyncio.Future[None] | None:
        return self._last.get(uid)

    def start_write(self, pod: Pod, patch: StatusPatch) -> asyncio.Future[None]:
        before, ended = self._enter(pod.metadata.uid)
        self._spawn(self._write_or_log(pod, patch, before, ended))
        return ended

    async def write(self, pod: Pod, patch: StatusPatch) -> None:
        before, ended = self._enter(pod.metadata.uid)
        await self._write(pod, patch, before, ended)

    def _enter(self, uid: str) -> tuple[asyncio.Future[None] | None, asyncio.Future[None]]:
        """Take the place behind the last write of this pod."""
        before = self._last.get(uid)
        ended = self._last[uid] = asyncio.get_running_loop().create_future()
        return before, ended

    async def _write_or_log(
        self,
        pod: Pod,
        patch: StatusPatch,
        before: asyncio.Future[None] | None,
        ended: asyncio.Future[None],
    ) -> None:
        try:
            await self._write(pod, patch, before, ended)
        except NotFoundError:
            pass  # The pod is gone, and its status with it.
        except ApiError as error:
            if not (isinstance(error, ConflictError) and error.is_replaced):
                log.error("Error updating pod %s: %s", object_ref(pod.metadata), error)

    async def _write(
        self,
        pod: Pod,
        patch: StatusPatch,
        before: asyncio.Future[None] | None,
        ended: asyncio.Future[None],
    ) -> None:
        uid = pod.metadata.uid
        try:
            if before is not None:
                # Shielded: that write is another's, and goes on if this one is cancelled.
                await asyncio.shield(before)
            await self._client.patch_pod_status(
                pod,
                condition=patch.condition,
                nominated_node_name=patch.nominated_node_name,
            )
        finally:
            if self._last.get(uid) is ended:
                del self._last[uid]
            if not ended.done():
                ended.set_result(None)
