"""Builds a scheduler: the half that decides (`engine.deciding`), and queue and bindings with it.

Where an older version differs, its factory (`editions.v1_20.engine.factory`) overrides a method of
this one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.pod_group import PodGroup
from kubestow.cache.cache import Cache
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import NANOSECONDS, Clock, SteadyClock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.status_writer import ClientStatusWriter, StatusWriter
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.bind import Binder, BindPermission
from kubestow.engine.deciding import DecidingHalf
from kubestow.engine.extenders import extender_chain
from kubestow.engine.failure import FailureHandler
from kubestow.engine.groups.collect import Collector
from kubestow.engine.groups.condition import ConditionWriter
from kubestow.engine.groups.cycle import GroupEngine, GroupScheduler
from kubestow.engine.groups.placements import PlacementTrials
from kubestow.engine.groups.submit import Submitter
from kubestow.engine.groups.trial import GroupTrials
from kubestow.engine.handlers import EventHandlers
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.engine.observer import DecisionListener, Observer
from kubestow.engine.placing import Placer
from kubestow.engine.profiles import Registry, gang_options
from kubestow.engine.scheduler import Scheduler
from kubestow.engine.select_host import HostSelector, PreorderSelector
from kubestow.engine.tasks import BackgroundTasks
from kubestow.engine.waiting_cycle import WaitingCycles
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.classify import POD_EVENTS
from kubestow.framework.handle import EventSink
from kubestow.framework.hints import build_hint_map
from kubestow.framework.plugin import SharedGatePlugin
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.victims import SharedVictims, VictimClient
from kubestow.framework.waiting import PodInPreBind, WaitingPods
from kubestow.plugins.priority_sort import PrioritySort
from kubestow.plugins.registry import REGISTRY
from kubestow.queue import NO_METRICS, Queue, QueueMetrics, SchedulingQueue
from kubestow.queue.active import SortKeyFunction, key_from_less
from kubestow.queue.queue import MAX_UNSCHEDULABLE_NS

if TYPE_CHECKING:
    from kubestow.engine.batching import Batches, BatchRules
    from kubestow.usage.view import UsageView


@dataclass(kw_only=True)
class SchedulerFactory:
    """What a scheduler is connected to; `build` makes one.

    `events` makes the event sink of a profile, because the reporter of an event is the profile. A
    pod that was rejected longer ago than `max_unschedulable_ns` is tried again without an event.
    Extenders bind in a thread, except in virtual time, which would not wait for it. `rng` breaks
    ties where extenders or older versions do so at random; with `leaves_to_chance` plugins, too, do
    at random what upstream's do, instead of the same in every run. `may_bind` is awaited before
    each binding is written. `tasks` run what is done beside the scheduling loop. `usage` is
    what nodes and pods use as measured, which plugins read; a source adds to it.
    """

    # Other versions have their own.
    binder_type = Binder
    cache_type = Cache
    failures_type = FailureHandler
    handlers_type = EventHandlers
    queue_type = SchedulingQueue
    scheduler_type = Scheduler
    pod_events = POD_EVENTS
    # Plugins that look at new nodes get every change of taints, too (spec 02 §7.1).
    adds_taint_events = True

    config: SchedulerConfig
    client: ClusterClient
    objects: ClusterObjects
    events: Callable[[str], EventSink]
    clock: Clock
    registry: Registry = field(default_factory=lambda: REGISTRY)
    gates: FeatureGates = DEFAULT_GATES
    queue_metrics: QueueMetrics = NO_METRICS
    metrics: SchedulerMetrics = NO_SCHEDULER_METRICS
    max_unschedulable_ns: int = MAX_UNSCHEDULABLE_NS
    listeners: Sequence[DecisionListener] = ()
    observers: Sequence[Observer] = ()
    may_bind: BindPermission | None = None
    leaves_to_chance: bool = False
    timer: AttemptTimer | None = None
    tasks: BackgroundTasks | None = None
    extenders_in_thread: bool = True
    usage: "UsageView | None" = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def build(self) -> Scheduler:
        """A scheduler that is not connected to watches yet; raises ConfigError."""
        config, clock = self.config, self.clock
        cache, groups = self.make_cache(), self.make_groups()
        if self.gates.enabled("GenericWorkload"):
            cache.groups = groups
        tasks = BackgroundTasks(clock) if self.tasks is None else self.tasks
        waiting_pods, writer = WaitingPods(), self.make_status_writer(tasks)
        in_pre_bind: dict[str, PodInPreBind] = {}
        names = [profile.scheduler_name for profile in config.profiles]
        events = {name: self.events(name) for name in names}
        cycles = WaitingCycles()
        if self.timer is not None and self.extenders_in_thread:
            self.timer.turns = cycles
        extenders = extender_chain(
            config.extenders, rng=self.rng, in_thread=self.extenders_in_thread, wait=cycles.wait
        )

        def make_queue(profiles: Mapping[str, Profile]) -> Queue:
            groups.configure(gang_options(profiles, self.gates))
            return self.make_queue(profiles, groups, has_extenders=extenders is not None)

        deciding = DecidingHalf(
            config=config,
            objects=self.objects,
            clock=clock,
            client=self.client,
            make_queue=make_queue,
            registry=self.registry,
            gates=self.gates,
            cache=cache,
            snapshot=self.make_snapshot(),
            events=events.__getitem__,
            spawn=tasks.spawn,
            groups=groups,
            waiting_pods=waiting_pods,
            in_pre_bind=in_pre_bind,
            status_writer=writer,
            victims=self.make_victims(),
            metrics=self.metrics,
            usage=self.usage,
            rng=self.rng if self.leaves_to_chance else None,
            extenders=extenders,
            selector=self.make_selector(),
            timer=self.timer,
            observers=self.observers,
        )
        profiles, queue = deciding.profiles, deciding.queue
        for handle in deciding.handles.values():
            handle.may_bind = self.may_bind
        failures = self.failures_type(
            queue, self.objects.pods, events, writer, clock, self.observers
        )
        binder = self.binder_type(
            cache,
            queue,
            waiting_pods,
            in_pre_bind,
            failures,
            events,
            writer,
            self.metrics,
            looks_ahead=self.gates.enabled("NominatedNodeNameForExpectation"),
            extenders=extenders,
            may_bind=self.may_bind,
            observers=self.observers,
        )
        scheduler = self.scheduler_type(
            profiles=profiles,
            objects=self.objects,
            cache=cache,
            snapshot=deciding.snapshot,
            queue=queue,
            waiting_pods=waiting_pods,
            decider=deciding.decider,
            binder=binder,
            placer=Placer(cache, queue, waiting_pods, binder, failures, tasks),
            failures=failures,
            handlers=self.handlers_type(
                cache,
                queue,
                waiting_pods,
                profiles.keys(),
                self.metrics,
                new_pods_wake_others=self.gates.enabled("GangScheduling"),
                pod_events=self.pod_events,
            ),
            events=events,
            tasks=tasks,
            metrics=self.metrics,
            listeners=self.listeners,
            observers=self.observers,
            # In virtual time nothing else may go on during a request over a real network.
            cycles=cycles if self._has_turns(has_extenders=extenders is not None) else None,
            extenders=extenders,
            batches=None if extenders is not None else self._make_batches(deciding),
            group_kinds=self.group_kinds(),
        )
        if cache.groups is not None:
            scheduler.groups = self.make_group_scheduler(scheduler, groups)
        return scheduler

    def _has_turns(self, *, has_extenders: bool) -> bool:
        """Whether cycles may wait or rest while the loop goes on."""
        return self.extenders_in_thread and (has_extenders or self.timer is not None)

    def _make_batches(self, deciding: DecidingHalf[Queue]) -> "Batches | None":
        """None if pods of no profile have signatures, as with the default profile."""
        profiles, queue = deciding.profiles.values(), deciding.queue
        # Older versions had queues of other kinds, and no signatures.
        if not self.gates.has("OpportunisticBatching") or not isinstance(queue, SchedulingQueue):
            return None
        signing = [profile for profile in profiles if profile.signers is not None]
        if not signing:
            return None
        # Loaded only where it is of use.
        from kubestow.engine.batching import Batches

        batches = Batches(signing, deciding.snapshot, self.batch_rules(), queue, self.clock)
        queue.sign = batches.sign
        return batches

    def batch_rules(self) -> "BatchRules":
        from kubestow.engine.batching import BatchRules

        return BatchRules()

    def make_group_scheduler(self, scheduler: Scheduler, groups: Groups) -> GroupEngine:
        queue, snapshot = scheduler.queue, scheduler.snapshot
        # Older versions had queues of other kinds, and no gate for groups.
        assert isinstance(queue, SchedulingQueue), queue
        options = groups.options
        trials = GroupTrials(
            snapshot,
            scheduler.decider,
            queue.nominator,
            self.metrics,
            self.listeners,
            self.observers,
            ignores_surplus=options.ignores_surplus,
            batches=scheduler.batches,
        )
        placements = None
        if self.gates.enabled("TopologyAwareWorkloadScheduling"):
            placements = PlacementTrials(snapshot, trials, self.metrics, self.observers)
        return GroupScheduler(
            groups,
            scheduler.cache,
            snapshot,
            Collector(
                groups,
                queue,
                scheduler.profiles,
                scheduler.failures,
                scheduler.skips,
                self.observers,
            ),
            trials,
            placements,
            Submitter(groups, scheduler.placer, scheduler.failures, queue.activate),
            self.make_condition_writer(groups, scheduler.tasks),
            self.metrics,
            preempts_for_groups=options.evicts_for_whole
            or self.gates.enabled("WorkloadAwarePreemption"),
        )

    def make_cache(self) -> Cache:
        return self.cache_type()

    def make_groups(self) -> Groups:
        return Groups(self.objects.pod_groups)

    def group_kinds(self) -> tuple[type[ApiObject], ...]:
        """The kinds of objects that have the rules of groups."""
        return (PodGroup,)

    def make_snapshot(self) -> Snapshot:
        return Snapshot()

    def make_selector(self) -> HostSelector:
        return PreorderSelector()

    def make_status_writer(self, tasks: BackgroundTasks) -> StatusWriter:
        return ClientStatusWriter(self.client, tasks.spawn)

    def make_condition_writer(self, groups: Groups, tasks: BackgroundTasks) -> ConditionWriter:
        return ConditionWriter(groups, self.client, self.clock, tasks.spawn)

    def make_victims(self) -> VictimClient:
        return SharedVictims(self.client, self.objects.pods)

    def make_queue(
        self, profiles: Mapping[str, Profile], groups: Groups, *, has_extenders: bool
    ) -> Queue:
        backs_off = self.gates.enabled("GenericWorkload") and not groups.options.waits_for_events
        return self.queue_type(
            is_member=(lambda pod: groups.key_of(pod) is not None) if backs_off else None,
            **self.queue_arguments(profiles, has_extenders=has_extenders),
        )

    # Any: they are arguments of different types.
    def queue_arguments(
        self, profiles: Mapping[str, Profile], *, has_extenders: bool
    ) -> dict[str, Any]:
        """What a queue is made with."""
        return {
            "clock": SteadyClock(self.clock),
            "sort_key": sort_key_of(profiles),
            "hint_maps": {
                name: build_hint_map(
                    profile.plugins.values(),
                    has_extenders=has_extenders,
                    adds_taint_events=self.adds_taint_events,
                )
                for name, profile in profiles.items()
            },
            "pod_lister": self.objects.pods.get,
            "pre_enqueue": {
                name: [(plugin_name(plugin), plugin.pre_enqueue) for plugin in profile.pre_enqueue]
                for name, profile in profiles.items()
            },
            "initial_backoff_ns": self.config.pod_initial_backoff_seconds * NANOSECONDS,
            "max_backoff_ns": self.config.pod_max_backoff_seconds * NANOSECONDS,
            "max_unschedulable_ns": self.max_unschedulable_ns,
            "pop_from_backoff": self.gates.enabled("SchedulerPopFromBackoffQ"),
            "shared_gates": {
                plugin_name(plugin): plugin
                for profile in profiles.values()
                for plugin in profile.pre_enqueue
                if isinstance(plugin, SharedGatePlugin)
            },
            "metrics": self.queue_metrics,
            "pod_events": self.pod_events,
            "info_of": self.cache_type.info_of,
        }


def sort_key_of(profiles: Mapping[str, Profile]) -> SortKeyFunction:
    """The order of the queue. `build_profiles` has checked that all profiles have the same."""
    plugin = next(iter(profiles.values())).queue_sort
    # By the class: the key of a plugin derived from it may order in another way than its `less`.
    if type(plugin) is PrioritySort:
        return plugin.sort_key
    return key_from_less(plugin.less, plugin_name(plugin))
