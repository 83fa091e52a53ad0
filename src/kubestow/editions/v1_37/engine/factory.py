"""Builds the scheduler of v1.37."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubestow.api.meta import ApiObject
from kubestow.api.pod_group import CompositePodGroup, PodGroupV1Beta1
from kubestow.cache.groups import Groups
from kubestow.editions.v1_37.api.deferred import DEFERRED_RESIZES
from kubestow.editions.v1_37.cache import CacheV137
from kubestow.editions.v1_37.engine.deferred import (
    DeferredFailures,
    DeferredHandlers,
    is_asked_for,
    skip_if_deferred,
)
from kubestow.editions.v1_37.engine.group_handlers import GroupHandlers
from kubestow.editions.v1_37.engine.groups.cycle import TreeScheduler
from kubestow.editions.v1_37.engine.groups.submit import TreeSubmitter
from kubestow.editions.v1_37.engine.groups.trial import TreeTrials
from kubestow.editions.v1_37.framework.pod_events import POD_EVENTS_V137
from kubestow.editions.v1_37.groups.state import GroupsV137
from kubestow.editions.v1_37.queue.group_queue import GroupQueue
from kubestow.editions.v1_37.queue.narrowing import Narrowings
from kubestow.editions.v1_37.queue.pod_queue import PodQueueV137
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.groups.cycle import GroupEngine
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.profile import Profile
from kubestow.queue import Queue

if TYPE_CHECKING:
    from kubestow.engine.batching import BatchRules


@dataclass(kw_only=True)
class FactoryV137(SchedulerFactory):
    """As the factory of the core, with the parts of v1.37."""

    cache_type = CacheV137
    handlers_type = GroupHandlers
    pod_events = POD_EVENTS_V137
    queue_type = PodQueueV137
    # Spec 12 §3.2.
    adds_taint_events = False

    def build(self) -> Scheduler:
        if not self.gates.enabled(DEFERRED_RESIZES):
            return super().build()
        self.handlers_type, self.failures_type = DeferredHandlers, DeferredFailures
        scheduler = super().build()
        for profile in scheduler.profiles.values():
            skip_if_deferred(profile)
        scheduler.decider.is_asked_for = is_asked_for
        return scheduler

    def batch_rules(self) -> "BatchRules":
        from kubestow.editions.v1_37.engine.batching import BatchRulesV137

        shares_cycles = self.gates.enabled("GenericWorkload")
        return BatchRulesV137(self.clock.monotonic_s, shares_cycles=shares_cycles)

    def make_groups(self) -> Groups:
        return GroupsV137(self.objects, has_trees=self.gates.enabled("CompositePodGroup"))

    def group_kinds(self) -> tuple[type[ApiObject], ...]:
        if self.gates.enabled("CompositePodGroup"):
            return (PodGroupV1Beta1, CompositePodGroup)
        return (PodGroupV1Beta1,)

    def make_queue(
        self, profiles: Mapping[str, Profile], groups: Groups, *, has_extenders: bool
    ) -> Queue:
        queue = self._make_queue(profiles, groups, has_extenders=has_extenders)
        gates = self.gates
        if gates.enabled("SchedulerPreQueueingHints") and not gates.enabled("CompositePodGroup"):
            assert isinstance(queue, PodQueueV137), queue
            plugins = (each for profile in profiles.values() for each in profile.plugins.values())
            queue.narrowings = Narrowings(plugins, self.queue_metrics)
        return queue

    def _make_queue(
        self, profiles: Mapping[str, Profile], groups: Groups, *, has_extenders: bool
    ) -> Queue:
        if not self.gates.enabled("GenericWorkload"):
            return super().make_queue(profiles, groups, has_extenders=has_extenders)
        assert isinstance(groups, GroupsV137), groups
        arguments = self.queue_arguments(profiles, has_extenders=has_extenders)
        return GroupQueue(groups=groups, **arguments)

    def make_group_scheduler(self, scheduler: Scheduler, groups: Groups) -> GroupEngine:
        queue = scheduler.queue
        assert isinstance(groups, GroupsV137), groups
        assert isinstance(queue, GroupQueue), queue
        trials = TreeTrials(
            groups,
            scheduler.snapshot,
            scheduler.decider,
            queue.nominator,
            self.metrics,
            self.listeners,
            self.observers,
            has_placements=self.gates.enabled("TopologyAwareWorkloadScheduling"),
            batches=scheduler.batches,
        )
        return TreeScheduler(
            groups,
            scheduler.cache,
            scheduler.snapshot,
            queue,
            scheduler.profiles,
            trials,
            TreeSubmitter(scheduler.placer, scheduler.failures),
            scheduler.failures,
            self.make_condition_writer(groups, scheduler.tasks),
            self.metrics,
            scheduler.skips,
            self.observers,
            has_policies=self.gates.enabled("PodGroupPreemptionPolicy"),
        )
