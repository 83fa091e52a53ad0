"""A watch of one lease, for a candidate that waits for it.

A candidate that only reads the lease sees a renewal up to one reading late, and counts the lease
from then on. One that watches it sees every renewal at once: it takes over as soon as the lease of
a leader that is gone has expired, and at once when it was released.

Beyond upstream, whose candidates only read. It needs the right to watch the lease, which
kube-scheduler's role has, too; without it, and while the watch fails, the readings go on alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from kubestow.api.coordination import Lease
from kubestow.cluster.client import ClusterClient
from kubestow.errors import ApiError

logger = logging.getLogger(__name__)

# Between two watches: the first ended in time, or was refused.
AGAIN_S: Final = 2.0
REFUSED_S: Final = 60.0


class LeaseWatch:
    def __init__(
        self,
        client: ClusterClient,
        *,
        namespace: str,
        name: str,
        on_change: Callable[[Lease], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._on_change = on_change
        self._sleep = sleep

    async def run(self, version: Callable[[], str]) -> None:
        """Watch until cancelled, from the version that is known; none while that is empty."""
        while True:
            delay_s = AGAIN_S
            if known := version():
                try:
                    await self._watch(known)
                except ApiError as error:
                    logger.debug("cannot watch the lease: %s", error)
                    if error.code == 403:
                        delay_s = REFUSED_S
            await self._sleep(delay_s)

    async def _watch(self, version: str) -> None:
        watch = await self._client.watch(
            Lease,
            namespace=self._namespace,
            field_selector=f"metadata.name={self._name}",
            resource_version=version,
        )
        try:
            while batch := await watch.next_batch():
                for event in batch:
                    if event.type in ("ADDED", "MODIFIED"):
                        self._on_change(event.object)
        finally:
            watch.close()
