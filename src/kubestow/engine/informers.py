"""Informers of several kinds, which start and end together."""

import asyncio
from typing import Any, TypeVar

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.cache.objects import ObjectStore
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.failure_log import FailureLog
from kubestow.cluster.informer import Informer

T = TypeVar("T", bound=ApiObject)


class Informers:
    def __init__(
        self,
        client: ClusterClient,
        clock: Clock,
        rng: np.random.Generator,
        gate: asyncio.Event | None,
    ) -> None:
        """While the gate is not set, events wait."""
        self._client = client
        self._clock = clock
        self._rng = rng
        self._gate = gate
        self._failures = FailureLog(clock, host=client.host)
        # Any: informers of different kinds in one list.
        self.informers: list[Informer[Any]] = []

    def add(self, cls: type[T], store: ObjectStore[T], field_selector: str = "") -> Informer[T]:
        """Watch a kind into this store."""
        informer = Informer(
            self._client,
            cls,
            store,
            self._clock,
            rng=self._rng,
            field_selector=field_selector,
            failures=self._failures,
            gate=self._gate,
        )
        self.informers.append(informer)
        return informer

    async def run(self) -> None:
        """Watch all kinds until cancelled; an error that ends one informer ends all."""
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                group.create_task(informer.run())

    async def wait_synced(self) -> None:
        """Return once every object of the first lists has reached stores, cache and queue."""
        for informer in self.informers:
            await informer.wait_synced()

    async def wait_following(self) -> None:
        """Return once pods and nodes are known as they are now.

        A standby has synced long ago, and its watches may be down when it takes the lease over: it
        would place pods without those that the leader before it has bound. Other kinds are not
        waited for: rights on one of them may be gone for good, and no node gets too much by that.
        """
        for informer in self.informers:
            if informer.cls in (Pod, Node):
                await informer.wait_following()

    @property
    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self.informers)
