"""Builds the scheduler of v1.20.

It had plugins, so it uses today's profiles and cycles; queue, cache, the choice among the best
nodes and the texts of failures differ. v1.9 had neither plugins nor profiles, and is a scheduler of
its own (`editions.v1_9.engine.scheduler`).
"""

from collections.abc import Mapping

from kubestow.cache.cache import Cache
from kubestow.cache.groups import Groups
from kubestow.clock import NANOSECONDS
from kubestow.editions.v1_20.cache import Cache120
from kubestow.editions.v1_20.engine.expiry import ExpiringScheduler
from kubestow.editions.v1_20.engine.failure import Binder120, FailureHandler120
from kubestow.editions.v1_20.engine.reservoir import ReservoirSelector
from kubestow.editions.v1_20.queue import SchedulingQueue120
from kubestow.engine.factory import SchedulerFactory, sort_key_of
from kubestow.engine.select_host import HostSelector
from kubestow.framework.profile import Profile
from kubestow.queue import Queue


class FactoryV120(SchedulerFactory):
    binder_type = Binder120
    failures_type = FailureHandler120
    scheduler_type = ExpiringScheduler

    def make_cache(self) -> Cache:
        return Cache120(self.clock)

    def make_selector(self) -> HostSelector:
        return ReservoirSelector(self.rng)

    def make_queue(
        self, profiles: Mapping[str, Profile], groups: Groups, *, has_extenders: bool
    ) -> Queue:
        """Without hints: every event moves all parked pods (spec 02 §19.1)."""
        return SchedulingQueue120(
            clock=self.clock,
            sort_key=sort_key_of(profiles),
            pod_lister=self.objects.pods.get,
            initial_backoff_ns=self.config.pod_initial_backoff_seconds * NANOSECONDS,
            max_backoff_ns=self.config.pod_max_backoff_seconds * NANOSECONDS,
            metrics=self.queue_metrics,
        )
