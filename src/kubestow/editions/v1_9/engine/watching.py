"""The informers of a v1.9 scheduler: the kinds that its rules read, and no others.

They fill the object stores, which the scheduler follows. PodDisruptionBudgets, which v1.9 watched,
too, were read for preemption only.
"""

from typing import Final

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.workload import ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.informer import POD_FIELD_SELECTOR
from kubestow.editions.v1_9.engine.scheduler import SchedulerV19
from kubestow.engine.informers import Informers

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


class WatcherV19(Informers):
    def __init__(
        self,
        client: ClusterClient,
        scheduler: SchedulerV19,
        clock: Clock,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(
            client, clock, rng, None if scheduler.cycles is None else scheduler.cycles.are_idle
        )
        for cls in WATCHED:
            selector = POD_FIELD_SELECTOR if cls is Pod else ""
            self.add(cls, scheduler.objects.store(cls), selector)
