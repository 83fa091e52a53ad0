"""Writes pod statuses beside the scheduling loop, in order for each pod.

The next pod must not wait until the condition of a failed one is written. Writes of one pod must
not overtake each other, so each pod has at most one write under way; later ones wait.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.cluster.client import ClusterClient
from kubestow.engine.failure import StatusPatch
from kubestow.errors import ApiError, NotFoundError

log = logging.getLogger(__name__)


class _Write(NamedTuple):
    pod: Pod
    patch: StatusPatch
    ended: asyncio.Future[None]


class ClientStatusWriter:
    def __init__(
        self,
        client: ClusterClient,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._client = client
        self._spawn = spawn
        self._waiting: dict[str, deque[_Write]] = {}

    def write_status(self, pod: Pod, patch: StatusPatch) -> asyncio.Future[None]:
        """Start a patch; the result is ready when it was written or has failed."""
        write = _Write(pod, patch, asyncio.get_running_loop().create_future())
        waiting = self._waiting.get(pod.metadata.uid)
        if waiting is not None:
            waiting.append(write)
            return write.ended
        self._waiting[pod.metadata.uid] = deque([write])
        self._spawn(self._write_all(pod.metadata.uid))
        return write.ended

    async def _write_all(self, uid: str) -> None:
        waiting = self._waiting[uid]
        try:
            while waiting:
                write = waiting.popleft()
                try:
                    await self._write(write.pod, write.patch)
                finally:
                    if not write.ended.done():
                        write.ended.set_result(None)
        finally:
            del self._waiting[uid]

    async def _write(self, pod: Pod, patch: StatusPatch) -> None:
        try:
            await self._client.patch_pod_status(
                pod,
                condition=patch.condition,
                nominated_node_name=patch.nominated_node_name,
            )
        except NotFoundError:
            pass  # The pod is gone, and its status with it.
        except ApiError as error:
            log.error("Error updating pod %s: %s", object_ref(pod.metadata), error)
