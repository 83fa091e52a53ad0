"""Assumed pods expire in v1.17 and v1.20 (spec 03 §14.2).

The end of a binding starts the time to live; a sweep beside the scheduling loop drops expired pods.
"""

import asyncio

from kubestow.cache.cache import Cache
from kubestow.editions.shared.cache import EXPIRY_SWEEP_S, CacheWithExpiry
from kubestow.engine.bind import Binder, Placement
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.status import Status


class ExpiringBinder(Binder):
    """Starts the time to live when Bind has ended, with success or not."""

    async def _write_binding(self, placement: Placement) -> Status | None:
        status = await super()._write_binding(placement)
        _expiring(self._cache).finish_binding(placement.pod.pod)
        return status


class ExpiringScheduler(Scheduler):
    """Drops expired pods while it runs."""

    async def run(self) -> None:
        sweep = asyncio.create_task(self._sweep())
        try:
            await super().run()
        finally:
            sweep.cancel()

    async def _sweep(self) -> None:
        while True:
            _expiring(self.cache).expire_assumed_pods()
            await asyncio.sleep(EXPIRY_SWEEP_S)


def _expiring(cache: Cache) -> CacheWithExpiry:
    assert isinstance(cache, CacheWithExpiry), cache
    return cache
