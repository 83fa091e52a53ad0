"""Enters what the engine and the queue report into the metrics (spec 09 §8.1, 02 §16, 04 §2.9).

Everything here is called many times for each pod, so series are looked up once and kept. Attempts
are measured by `meters`, the plugins that they ask counted by `evaluations`.

Upstream sends durations of plugins and hints through a buffer that may drop some; here they are
entered at once, which is cheaper and loses nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kubestow.clock import NANOSECONDS, Clock, SteadyClock
from kubestow.engine.decision import Decision
from kubestow.engine.metrics import ERROR, SCHEDULED, UNSCHEDULABLE
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.events import ClusterEvent
from kubestow.framework.metrics import label_of
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod
from kubestow.queue.metrics import ACTIVE, BACKOFF, GATED
from kubestow.queue.metrics import UNSCHEDULABLE as UNSCHEDULABLE_QUEUE
from kubestow.queue.moves import Place
from kubestow.queue.queue import SchedulingQueue
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.evaluations import Evaluations
from kubestow.service.metrics.instruments import (
    Counter,
    Family,
    Gauge,
    Histogram,
    KeptSeries,
)
from kubestow.service.metrics.meters import (
    SAMPLED_SHARE,
    KeepingMeter,
    Meter,
    PlacementMeter,
    ProfileSeries,
    samples,
)

if TYPE_CHECKING:
    from kubestow.engine.batching import BatchAttempt

# The label `attempts` of all higher counts.
ATTEMPTS_LABEL_MAX: Final = 15

_QUEUE_LABELS: Final = {
    Place.ACTIVE: ACTIVE,
    Place.BACKOFF: BACKOFF,
    Place.ERROR_BACKOFF: BACKOFF,
    Place.UNSCHEDULABLE: UNSCHEDULABLE_QUEUE,
    Place.GATED: GATED,
}

# Of v1.37: where pods wait for objects of their group, or for other members.
OUTSIDE_QUEUES: Final = ("incomplete", "pending")

# Values of the labels `type` and `preemptor`.
POD_ENTITY: Final = "pod"
GROUP_ENTITY: Final = "podgroup"

_PRE_ENQUEUE: Final = "PreEnqueue"


class SchedulerRecorder:
    """Implements `engine.metrics.SchedulerMetrics`."""

    def __init__(
        self,
        catalogue: SchedulerCatalogue,
        clock: Clock,
        rng: np.random.Generator,
        *,
        sampled_share: float = SAMPLED_SHARE,
    ) -> None:
        self.catalogue = catalogue
        self.now_s = clock.monotonic_s
        # The queue's times are steady, too.
        self._clock = SteadyClock(clock)
        self._samples = samples(rng, sampled_share)
        self._profiles: KeptSeries[str, ProfileSeries] = KeptSeries(
            lambda name: ProfileSeries(catalogue, name, self.now_s)
        )
        self._pod_attempts = catalogue.pod_attempts.only
        self._sli: KeptSeries[int, Histogram] = KeptSeries(
            lambda attempts: catalogue.sli_duration.labels(_attempts_label(attempts))
        )
        self._events: KeptSeries[str, Histogram] = KeptSeries(catalogue.event_duration.labels)
        self._evaluations: dict[str, Evaluations] = {}

    def observe(self, scheduler: Scheduler) -> None:
        """Publish the cache size and running bindings of this scheduler, too."""
        self.count_evaluations(scheduler.profiles)
        self.catalogue.cache_size.refresh = lambda: self._write_cache_size(scheduler)
        self.catalogue.goroutines.refresh = lambda: self.catalogue.goroutines.labels("binding").set(
            scheduler.binder.running_count
        )

        entities = self.catalogue.queued_entities
        if self.catalogue.for_groups is not None and entities is not None:
            for family in (self.catalogue.pending_pods, entities):
                family.refresh = lambda: self._write_queue(scheduler, entities)

    def count_evaluations(self, profiles: Mapping[str, Profile]) -> None:
        """Count how often each plugin of these profiles is asked."""
        for name, profile in profiles.items():
            self._evaluations[name] = Evaluations(profile)
            for result in (SCHEDULED, UNSCHEDULABLE, ERROR):
                _ = self._profiles[name].results[result]  # there from the start
        for family in self._counted_families():
            family.refresh = self._write_evaluations
            family.forget = self._forget_evaluations

    # --- attempts ---

    def start_attempt(self, profile_name: str, *, keeps_timings: bool) -> Meter:
        make = KeepingMeter if keeps_timings else Meter
        return make(self._profiles[profile_name], next(self._samples))

    def decided(self, decision: Decision) -> None:
        evaluations = self._evaluations.get(decision.profile_name)
        if evaluations is not None:
            evaluations.add(decision)
        if decision.batch is not None:
            self._rescored(decision.profile_name, decision.batch)

    def _rescored(self, profile_name: str, batch: "BatchAttempt") -> None:
        families, check = self.catalogue.rescoring, batch.check
        if families is not None and check is not None and check.rescoring_s is not None:
            families.attempts.labels(profile_name).inc()
            families.duration.labels(profile_name).observe(check.rescoring_s)

    def pod_bound(self, queued_pod: QueuedPod) -> None:
        attempts = queued_pod.attempts
        self._pod_attempts.observe(attempts)
        first_ns = queued_pod.initial_attempt_ns
        if first_ns is not None:
            duration_s = (self._clock.now_ns() - first_ns) / NANOSECONDS
            self._sli[min(attempts, ATTEMPTS_LABEL_MAX)].observe(duration_s)
        if queued_pod.was_flushed_from_unschedulable:
            self.catalogue.scheduled_after_flush.only.inc()

    def event_handled(self, event: ClusterEvent, started_s: float) -> None:
        self._events[event.label].observe(self.now_s() - started_s)

    # --- groups ---

    def start_group_point(self, profile_name: str) -> "PlacementMeter":
        return PlacementMeter(self._profiles[profile_name], is_sampled=True)

    def group_decided(self, started_s: float) -> None:
        self.catalogue.group_algorithm_duration.only.observe(self.now_s() - started_s)

    def group_ended(self, result: str, profile_name: str, started_s: float) -> None:
        labels = (result, profile_name)
        self.catalogue.group_attempts.labels(*labels).inc()
        self.catalogue.group_attempt_duration.labels(*labels).observe(self.now_s() - started_s)

    def placements_generated(self, profile_name: str, count: int) -> None:
        if self.catalogue.placements is not None:
            self.catalogue.placements.generated.labels(profile_name).inc(count)

    def placement_evaluated(
        self, profile_name: str, started_s: float, *, is_feasible: bool
    ) -> None:
        if self.catalogue.placements is not None:
            result = "feasible" if is_feasible else "infeasible"
            self.catalogue.placements.evaluations.labels(result, profile_name).inc()
            duration_s = self.now_s() - started_s
            self.catalogue.placements.evaluation_duration.only.observe(duration_s)

    # --- plugins ---

    def preemption_attempted(self) -> None:
        self.catalogue.preemption_attempts.only.inc()

    def preemption_actuated(self, preemptor: str, victim_count: int) -> None:
        for_groups = self.catalogue.for_groups
        if for_groups is None or preemptor == POD_ENTITY:
            self.catalogue.preemption_victims.only.observe(victim_count)
        else:
            for_groups.victims.only.observe(victim_count)

    def preemption_task_ended(self, preemptor: str, duration_s: float, *, is_success: bool) -> None:
        if not self.catalogue.times_evictions:
            # Spec 09 §8.1: v1.36 measures before the work begins, and always as a success.
            duration_s, is_success = 0.0, True
        result = "success" if is_success else "error"
        self.catalogue.preemption_tasks.labels(result).inc()
        self.catalogue.preemption_task_duration.labels(result).observe(duration_s)
        for_groups = self.catalogue.for_groups
        if for_groups is not None:
            for_groups.execution_duration.labels(preemptor, result).observe(duration_s)

    def preemption_evaluated(self, preemptor: str, status: Status, duration_s: float) -> None:
        for_groups = self.catalogue.for_groups
        if for_groups is None:
            return
        result = label_of(status)
        is_pod = preemptor == POD_ENTITY
        # Trees count as groups here (spec 12 §19).
        shown = POD_ENTITY if is_pod else GROUP_ENTITY
        for_groups.evaluation_duration.labels(shown, result).observe(duration_s)
        if not is_pod:
            for_groups.attempts.labels(result).inc()

    def preemption_disrupts(self, preemptor: str, units: int, violations: int) -> None:
        for_groups = self.catalogue.for_groups
        if for_groups is not None:
            for_groups.disruptions.labels(preemptor).observe(units)
            for_groups.budget_violations.labels(preemptor).inc(violations)

    def volume_stage_failed(self, operation: str) -> None:
        self.catalogue.volume_errors.labels(operation).inc()

    def claim_created(self, *, is_success: bool) -> None:
        status = "success" if is_success else "failure"
        self.catalogue.claim_creates.labels(status, *self.catalogue.claim_labels).inc()

    def device_wait_ended(
        self, profile_name: str, driver: str, status: str, duration_s: float
    ) -> None:
        labels = (profile_name, driver, status)
        self.catalogue.device_wait_duration.labels(*labels).observe(duration_s)

    def device_conditions_ended(self, profile_name: str, driver: str, status: str) -> None:
        self.catalogue.device_allocations.labels(profile_name, driver, status).inc()

    # --- inside ---

    def _counted_families(self) -> Sequence[Family[Counter]]:
        """What is counted by attempts, and written when it is read."""
        catalogue = self.catalogue
        return (catalogue.plugin_evaluations, catalogue.batch_attempts, catalogue.batch_flushes)

    def _write_evaluations(self) -> None:
        evaluations, hints, flushes = self._counted_families()
        for family in (evaluations, hints, flushes):
            for series in family.children().values():
                series.reset()
        # Labels that are not allowed share a series, so what is there is added to.
        for profile, counted in self._evaluations.items():
            for (plugin, point), count in counted.counts().items():
                evaluations.labels(plugin, point, profile).inc(count)
            if not self.catalogue.counts_hints:
                continue
            for result, count in counted.hints().items():
                hints.labels(profile, result).inc(count)
            for reason, count in counted.flushes().items():
                flushes.labels(profile, reason).inc(count)

    def _forget_evaluations(self) -> None:
        for evaluations in self._evaluations.values():
            evaluations.reset()

    def _write_queue(self, scheduler: Scheduler, entities: Family[Gauge]) -> None:
        """Where groups are queued: pods, and entities by their type (spec 12 §14.9, §19)."""
        queue = scheduler.queue
        assert isinstance(queue, SchedulingQueue), queue
        for family in (self.catalogue.pending_pods, entities):
            for series in family.children().values():
                series.set(0)
        for place, entry in queue.waiting():
            label = _QUEUE_LABELS[place]
            self.catalogue.pending_pods.labels(label).inc(len(entry.waiting_pods))
            entities.labels(label, entry.entity_type).inc()
        for label, members in zip(
            OUTSIDE_QUEUES, (queue.incomplete(), queue.pending()), strict=True
        ):
            count = sum(1 for _ in members)
            self.catalogue.pending_pods.labels(label).set(count)
            entities.labels(label, POD_ENTITY).set(count)

    def _write_cache_size(self, scheduler: Scheduler) -> None:
        statistics = scheduler.cache.statistics()
        for name in ("assumed_pods", "pods", "nodes"):
            self.catalogue.cache_size.labels(name).set(getattr(statistics, name))


def _attempts_label(attempts: int) -> str:
    return str(attempts) if attempts < ATTEMPTS_LABEL_MAX else f"{ATTEMPTS_LABEL_MAX}+"


class QueueRecorder:
    """Implements `queue.metrics.QueueMetrics`."""

    def __init__(self, catalogue: SchedulerCatalogue, rng: np.random.Generator) -> None:
        self._catalogue = catalogue
        self.samples_plugins = samples(rng).__next__
        self._pending = {
            queue: catalogue.pending_pods.labels(queue)
            for queue in (ACTIVE, BACKOFF, UNSCHEDULABLE_QUEUE, GATED)
        }
        self._incoming: KeptSeries[tuple[str, str], Counter] = KeptSeries(
            lambda key: catalogue.incoming_pods.labels(*key)
        )
        # Entities of v1.37 are counted as pods are, where no group is queued.
        entities, incoming = catalogue.queued_entities, catalogue.incoming_entities
        self._entities = (
            {}
            if entities is None
            else {queue: entities.labels(queue, POD_ENTITY) for queue in self._pending}
        )
        if entities is not None:
            # Shown as 0 as long as no group is queued.
            for queue in OUTSIDE_QUEUES:
                catalogue.pending_pods.labels(queue)
        self._incoming_entities: KeptSeries[tuple[str, str], Counter] | None = None
        if incoming is not None:
            self._incoming_entities = KeptSeries(lambda key: incoming.labels(*key, POD_ENTITY))
        self._in_flight: KeptSeries[str, Gauge] = KeptSeries(catalogue.inflight_events.labels)
        self._hints: KeptSeries[tuple[str, str, str], Histogram] = KeptSeries(
            lambda key: catalogue.hint_duration.labels(*key)
        )
        self._passes: KeptSeries[tuple[str, str], Histogram] = KeptSeries(
            lambda key: catalogue.point_duration.labels(_PRE_ENQUEUE, *key)
        )

    def pending_changed(self, queue: str, delta: int) -> None:
        self._pending[queue].value += delta
        if self._entities:
            self._entities[queue].value += delta

    def incoming(self, queue: str, event: str, count: int = 1) -> None:
        self._incoming[queue, event].value += count
        if self._incoming_entities is not None:
            self._incoming_entities[queue, event].value += count

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None:
        self._catalogue.unschedulable_pods.labels(plugin, profile).inc(delta)

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None:
        self._in_flight[event].value += delta

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        self._hints[plugin, event, hint].observe(duration_s)

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None:
        self._passes[status, profile].observe(duration_s)

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None:
        series = self._catalogue.plugin_duration.labels(plugin, _PRE_ENQUEUE, status)
        series.observe(duration_s)

    def event_narrowed(self, plugin: str, *, to_all: bool) -> None:
        evaluations = self._catalogue.narrowed_events
        if evaluations is not None:
            evaluations.labels(plugin, "all_pods" if to_all else "narrowed").inc()
