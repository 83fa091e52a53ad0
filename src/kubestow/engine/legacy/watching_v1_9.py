"""The informers of a v1.9 scheduler: the kinds that its rules read, and no others.

They fill the object stores, which the scheduler follows. PodDisruptionBudgets, which v1.9 watched,
too, were read for preemption only.
"""

import asyncio
from typing import Any, Final

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.failure_log import FailureLog
from kubestow.cluster.informer import POD_FIELD_SELECTOR, Informer
from kubestow.engine.legacy.scheduler_v1_9 import SchedulerV19

WATCHED: Final[tuple[type[ApiObject], ...]] = (
    Pod,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    Service,
)


class WatcherV19:
    def __init__(
        self,
        client: ClusterClient,
        scheduler: SchedulerV19,
        clock: Clock,
        rng: np.random.Generator,
    ) -> None:
        failures = FailureLog(clock, host=client.host)
        # Any: informers of different kinds in one list.
        self.informers: list[Informer[Any]] = [
            Informer(
                client,
                cls,
                scheduler.objects.store(cls),
                clock,
                rng=rng,
                field_selector=POD_FIELD_SELECTOR if cls is Pod else "",
                failures=failures,
                gate=None if scheduler.cycles is None else scheduler.cycles.are_idle,
            )
            for cls in WATCHED
        ]

    async def run(self) -> None:
        """Watch all kinds until cancelled; an error that ends one informer ends all."""
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                group.create_task(informer.run())

    async def wait_synced(self) -> None:
        """Return once every object of the first lists has reached cache and queue."""
        for informer in self.informers:
            await informer.wait_synced()

    @property
    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self.informers)
