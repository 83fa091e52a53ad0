"""Leader election of this process: the elector, its metrics and its events (spec 09 §6).

The elector runs on the control loop, what the leader does on the scheduler's.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

import numpy as np

from kubestow.api.coordination import Lease
from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.election import ElectionSettings, LeaderElector
from kubestow.config.connection import LeaderElectionConfig, check_election
from kubestow.errors import ApiError
from kubestow.service.connections import Connections
from kubestow.service.loops import OtherLoop
from kubestow.service.metrics.component import ElectionMetrics

log = logging.getLogger(__name__)


class Leadership:
    def __init__(
        self,
        config: LeaderElectionConfig,
        connections: Connections,
        metrics: ElectionMetrics,
        control: OtherLoop,
        clock: Clock,
        rng: np.random.Generator,
        *,
        identity: str,
        component: str,
    ) -> None:
        """`component` is the source of events. Raises ConfigError for settings that cannot work."""
        check_election(config)
        self._events = connections.lease_events
        self._metrics = metrics
        self._control = control
        self._clock = clock
        self._component = component
        self._event_tasks: set[asyncio.Task[None]] = set()
        self.identity = identity
        self._elector = LeaderElector(
            connections.election,
            clock,
            identity=identity,
            rng=rng,
            settings=ElectionSettings(
                namespace=config.resource_namespace,
                name=config.resource_name,
                lease_duration_s=config.lease_duration.seconds,
                renew_deadline_s=config.renew_deadline.seconds,
                retry_period_s=config.retry_period.seconds,
            ),
            on_change=self._changed,
        )
        metrics.changed(is_leading=False)
        metrics.slow_path.refresh = lambda: metrics.slow_path_counted(
            self._elector.statistics().slow_path_count
        )

    @property
    def is_leading(self) -> bool:
        return self._elector.is_leading

    async def wait_valid(self) -> None:
        """Return as soon as no other process can hold the lease."""
        # Again after each wait: the answer comes from another loop and may be late.
        while not self._elector.is_lease_valid:
            await self._control.run(self._elector.wait_valid())

    async def give_up(self) -> None:
        """Called on the control loop: release the lease without waiting for the work."""
        await self._elector.give_up()

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Wait for the lease and lead; True if the work ended by itself, False if the lease was
        lost. The lease is released in any case."""
        return await self._control.run(self._elect(lead))

    async def _elect(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        try:
            outcome = await self._elector.run(lambda: self._control.run_on_scheduler(lead()))
            return outcome == "finished"
        finally:
            await asyncio.gather(*self._event_tasks, return_exceptions=True)

    def _changed(self, is_leading: bool) -> None:
        self._metrics.changed(is_leading=is_leading)
        task = asyncio.get_running_loop().create_task(self._write_event(is_leading=is_leading))
        self._event_tasks.add(task)
        task.add_done_callback(self._event_tasks.discard)

    async def _write_event(self, *, is_leading: bool) -> None:
        lease = self._elector.lease
        if self._events is None or lease is None:
            return
        event = leadership_event(
            lease,
            identity=self._elector.identity,
            is_leading=is_leading,
            component=self._component,
            now_ns=self._clock.now_ns(),
        )
        try:
            await self._events.create_document(events_path(lease), event)
        except ApiError as error:
            log.debug("cannot write an event about the lease: %s", error)  # Nothing depends on it.


REASON: Final = "LeaderElection"


def leadership_event(
    lease: Lease, *, identity: str, is_leading: bool, component: str, now_ns: int
) -> JsonObject:
    """The event that reports a change of the leader (spec 09 §9.1), to post to `events_path`.

    It is about the lease and of the older kind (core `v1`), which needs no action; newer servers
    list it with the others. `component` is the name of the first profile.
    """
    metadata = lease.metadata
    now = whole_seconds(now_ns)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata.name}.{now_ns:x}", "namespace": metadata.namespace},
        "involvedObject": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "reason": REASON,
        "message": f"{identity} {'became leader' if is_leading else 'stopped leading'}",
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": "Normal",
        "reportingComponent": component,
    }


def events_path(lease: Lease) -> str:
    return f"/api/v1/namespaces/{lease.metadata.namespace}/events"
