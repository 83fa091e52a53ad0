"""A small cluster in virtual time, and the page that follows its scheduler."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.web.page_model import PageModel, as_json

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.service.page import page_metrics
from kubestow.service.page_facts import page_facts
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.testing import ManualClock
from kubestow.web.follower import FollowedParts, PageFollower
from kubestow.web.picture import NOW, PageFacts, PastMoment, state_of, take_picture
from kubestow.web.protocol import Batch


class FollowedCluster:
    def __init__(self, *objects: ApiObject, share: float = 1.0) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.store = MemoryCluster(self.clock)
        self.add(*objects)
        self.embedded = EmbeddedCluster(
            self.store,
            SchedulerConfig(),
            self.clock,
            controllers=[FakeKubelets(self.store, self.clock)],
            metrics=page_metrics(DEFAULT_GATES),
        )
        self.scheduler = self.embedded.scheduler
        self.follower = PageFollower(
            FollowedParts(
                self.scheduler,
                self.embedded.listeners,
                self.clock,
                # Copies take no time on this clock, so that none is left out.
                real=ManualClock(),
                share=share,
                is_stepwise=True,
            )
        )

    @property
    def facts(self) -> PageFacts:
        return page_facts("demo", self.scheduler, SchedulerConfig(), DEFAULT_GATES)

    def add(self, *objects: ApiObject) -> None:
        self.store.load([to_document(each) for each in objects])

    async def settle(self) -> None:
        assert await self.embedded.settle(limit_s=100)

    async def batch(self) -> dict[str, Any]:
        collected = await self.follower.collect()
        assert isinstance(collected, Batch)
        return as_json(collected)

    def state(
        self, moment: PastMoment = NOW, *, follower: PageFollower | None = None
    ) -> dict[str, Any]:
        picture = take_picture(follower or self.follower, moment)
        assert picture is not None
        return as_json(state_of(picture, self.facts))

    def model(self, moment: PastMoment = NOW) -> PageModel:
        return PageModel(self.state(moment))


@asynccontextmanager
async def followed_cluster(
    *objects: ApiObject, **options: Any
) -> AsyncGenerator[FollowedCluster, None]:
    """Running; the page is not open yet."""
    cluster = FollowedCluster(*objects, **options)
    async with cluster.embedded.running():
        await cluster.settle()
        yield cluster
