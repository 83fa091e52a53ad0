"""What is measured while a soak runs, on both event loops.

A timer that is due every few milliseconds shows how long a loop was busy with something else. The
scheduler's loop also runs the churn and the embedded API server, so its stalls include theirs. The
lease is written and measured on the control loop.
"""

import asyncio
from typing import Final

from kubestow.api.coordination import Lease
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock
from kubestow.service.soak.churn import Churn
from kubestow.service.soak.spread import Spread

# How often a loop is checked for stalls.
BEAT_S: Final = 0.01


class Measures:
    """Only `beat` of the control loop and `follow_lease` run on that loop, and write there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.latency, self.stalls = Spread(), Spread()
        self.control_stalls, self.lease_lateness = Spread(), Spread()
        # Set by what is done for the soak itself and takes long.
        self.is_disturbed = False
        self.bound_count = 0
        self.evicted_count = 0

    async def beat(self, stalls: Spread) -> None:
        """Measure the stalls of the loop this runs on."""
        while True:
            due_s = self._clock.monotonic_s() + BEAT_S
            await asyncio.sleep(BEAT_S)
            late_s = max(self._clock.monotonic_s() - due_s, 0.0)
            if not self.is_disturbed:
                stalls.add(late_s)
            elif stalls is self.stalls:
                self.is_disturbed = False

    async def follow_pods(self, cluster: MemoryCluster, churn: Churn) -> None:
        listing = await MemoryClient(cluster).list_and_watch(Pod)
        while batch := await listing.watch.next_batch():
            now_s = self._clock.monotonic_s()
            for event in batch:
                if event.type != "MODIFIED":
                    continue
                pod = event.object
                if any(each.type == "DisruptionTarget" for each in pod.status.conditions) and (
                    pod.metadata.deletion_timestamp is not None
                ):
                    self.evicted_count += 1
                if not pod.spec.node_name:
                    continue
                created_s = churn.created_s.pop(pod.metadata.name, None)
                if created_s is not None:
                    self.latency.add(now_s - created_s)
                    self.bound_count += 1

    async def follow_lease(self, cluster: MemoryCluster, period_s: float) -> None:
        """How much later than its period each renewal is."""
        listing = await MemoryClient(cluster).list_and_watch(Lease)
        last_s: float | None = None
        while await listing.watch.next_batch():
            now_s = self._clock.monotonic_s()
            if last_s is not None:
                self.lease_lateness.add(max(now_s - last_s - period_s, 0.0))
            last_s = now_s
