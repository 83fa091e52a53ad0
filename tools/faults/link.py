"""The network between one process and the API server."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from kubestow.errors import UnreachableError
from tools.faults.fault import Fault, FaultRates

# How long a request or an answer travels without any fault.
LATENCY_S: Final = 0.002
SLOW_S: Final = 3.0


class Link:
    def __init__(self, faults: FaultRates) -> None:
        self.faults: Final = faults
        # Bindings that were sent and are not answered yet: the node, by the UID of the pod.
        self.binding: dict[str, str] = {}
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_cut(self) -> bool:
        return not self._open.is_set()

    def cut(self) -> None:
        """Nothing arrives until `mend`."""
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    @contextmanager
    def under_way(self, uid: str, node_name: str) -> Generator[None]:
        """While the binding of this pod is sent and answered."""
        self.binding[uid] = node_name
        try:
            yield
        finally:
            self.binding.pop(uid, None)

    async def travel(self) -> None:
        """Wait as long as a message takes; a message on a cut link is lost when it is mended."""
        await asyncio.sleep(self._delay_s(Fault.SLOW))
        if self.is_cut:
            await self._open.wait()
            raise UnreachableError("connection reset by peer", cause="broken off")

    async def watch_travels(self) -> None:
        """Events are not lost, since the informer repeats its watch; they wait."""
        await asyncio.sleep(self._delay_s(Fault.WATCH_DELAYED))
        await self._open.wait()

    def _delay_s(self, fault: Fault) -> float:
        delay_s = LATENCY_S * (0.5 + self.faults.rng.random())
        if self.faults.happens(fault):
            delay_s += SLOW_S * self.faults.rng.random()
        return delay_s
