"""Enters what the engine and the queue report into the metrics (spec 09 §8.1, 02 §16, 04 §2.9).

Everything here is called many times for each pod, so series are looked up once and kept, and counts
of all plugins of a profile are computed when they are read (`_Evaluations`).

Upstream sends durations of plugins and hints through a buffer that may drop some; here they are
entered at once, which is cheaper and loses nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kubestow.arrays import IntArray
from kubestow.clock import NANOSECONDS, Clock, SteadyClock
from kubestow.engine.decision import Decision
from kubestow.engine.metrics import ERROR, SCHEDULED, UNSCHEDULABLE
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.events import ClusterEvent
from kubestow.framework.metrics import FILTER, PRE_FILTER, PRE_SCORE, SCORE, Timing, label_of
from kubestow.framework.placements import PLACEMENT_GENERATE, PLACEMENT_SCORE
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod
from kubestow.queue.metrics import ACTIVE, BACKOFF, GATED
from kubestow.queue.metrics import UNSCHEDULABLE as UNSCHEDULABLE_QUEUE
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.instruments import Counter, Gauge, Histogram

# The share of attempts in which single plugin calls are timed.
SAMPLED_SHARE: Final = 0.1
# The label `attempts` of all higher counts.
ATTEMPTS_LABEL_MAX: Final = 15

_PRE_ENQUEUE: Final = "PreEnqueue"
_SUCCESS: Final = label_of(None)


class Sampler:
    """True at random, for the given share of calls."""

    def __init__(self, rng: np.random.Generator, share: float = SAMPLED_SHARE) -> None:
        self._rng = rng
        self._share = share
        # Calls until the next True: one random number per True instead of per call.
        self._left = self._next()

    def __call__(self) -> bool:
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._next()
        return True

    def _next(self) -> int:
        return int(self._rng.geometric(self._share))


class Meter:
    """Measures one attempt (`framework.metrics.CycleMeter`)."""

    __slots__ = ("_last_s", "_plugin_last_s", "_profile", "_recorder", "is_sampled", "started_s")

    def __init__(
        self, recorder: "SchedulerRecorder", profile_name: str, now_s: float, *, is_sampled: bool
    ) -> None:
        self._recorder = recorder
        self._profile = profile_name
        self.is_sampled = is_sampled
        self.started_s = self._last_s = self._plugin_last_s = now_s

    @property
    def timings(self) -> Sequence[Timing]:
        return ()

    def resume(self) -> None:
        self._last_s = self._plugin_last_s = self._recorder.now_s()

    def skip_pause(self) -> None:
        now_s = self._recorder.now_s()
        self.started_s += now_s - self._last_s
        self._last_s = self._plugin_last_s = now_s

    def point_ended(self, point: str, status: Status | None = None) -> None:
        now_s = self._recorder.now_s()
        key = (point, _SUCCESS if status is None else status.code.label, self._profile)
        found = self._recorder.points.get(key) or self._recorder.point(key)
        found.observe(now_s - self._last_s)
        self._last_s = self._plugin_last_s = now_s

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        now_s = self._recorder.now_s()
        series = self._recorder.catalogue.plugin_duration.labels(plugin, point, label_of(answer))
        series.observe(now_s - self._plugin_last_s)
        self._plugin_last_s = now_s

    def wait_ended(self, status: Status) -> None:
        now_s = self._recorder.now_s()
        series = self._recorder.catalogue.permit_wait_duration.labels(label_of(status))
        series.observe(now_s - self._last_s)
        self._last_s = self._plugin_last_s = now_s

    def algorithm_ended(self) -> None:
        self._recorder.algorithm.observe(self._recorder.now_s() - self.started_s)

    def attempt_ended(self, result: str) -> None:
        count, duration = self._recorder.attempt(result, self._profile)
        count.inc()
        duration.observe(self._recorder.now_s() - self.started_s)


class KeepingMeter(Meter):
    """Keeps the timings, for listeners that freeze decisions."""

    __slots__ = ("_timings",)

    def __init__(
        self, recorder: "SchedulerRecorder", profile_name: str, now_s: float, *, is_sampled: bool
    ) -> None:
        super().__init__(recorder, profile_name, now_s, is_sampled=is_sampled)
        self._timings: list[Timing] = []

    @property
    def timings(self) -> Sequence[Timing]:
        return self._timings

    def point_ended(self, point: str, status: Status | None = None) -> None:
        started_s = self._last_s
        super().point_ended(point, status)
        self._timings.append(Timing(point, self._last_s - started_s))

    def plugin_ended(self, plugin: str, point: str, answer: object = None) -> None:
        started_s = self._plugin_last_s
        super().plugin_ended(plugin, point, answer)
        self._timings.append(Timing(point, self._plugin_last_s - started_s, plugin))


class PlacementMeter(Meter):
    """Measures the plugins for placements; their single calls always (spec 11 §7.7)."""

    __slots__ = ()

    def generated(self, status: Status | None) -> None:
        self.point_ended(PLACEMENT_GENERATE, status)

    def scored(self, status: Status | None) -> None:
        self.point_ended(PLACEMENT_SCORE, status)


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
        self.algorithm = catalogue.algorithm_duration.only
        self.now_s = clock.monotonic_s
        # The queue's times are steady, too.
        self._clock = SteadyClock(clock)
        self._samples = Sampler(rng, sampled_share)
        self.points: dict[tuple[str, str, str], Histogram] = {}
        self._attempts: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._events: dict[str, Histogram] = {}
        self._sli: dict[int, Histogram] = {}
        self._evaluations: dict[str, _Evaluations] = {}
        self._no_hints: dict[str, Counter] = {}

    def observe(self, scheduler: Scheduler) -> None:
        """Publish the cache size and running bindings of this scheduler, too."""
        self.count_evaluations(scheduler.profiles)
        self.catalogue.cache_size.refresh = lambda: self._write_cache_size(scheduler)
        self.catalogue.goroutines.refresh = lambda: self.catalogue.goroutines.labels("binding").set(
            scheduler.binder.running_count
        )

    def count_evaluations(self, profiles: Mapping[str, Profile]) -> None:
        """Count how often each plugin of these profiles is asked."""
        for name, profile in profiles.items():
            self._evaluations[name] = _Evaluations(profile)
            self._no_hints[name] = self.catalogue.batch_attempts.labels(name, "no_hint")
            for result in (SCHEDULED, UNSCHEDULABLE, ERROR):
                self.attempt(result, name)
        self.catalogue.plugin_evaluations.refresh = self._write_evaluations
        self.catalogue.plugin_evaluations.forget = self._forget_evaluations

    # --- attempts ---

    def start_attempt(self, profile_name: str, *, keeps_timings: bool) -> Meter:
        make = KeepingMeter if keeps_timings else Meter
        return make(self, profile_name, self.now_s(), is_sampled=self._samples())

    def point(self, key: tuple[str, str, str]) -> Histogram:
        """The series of an extension point, a status and a profile, for the first time."""
        found = self.points[key] = self.catalogue.point_duration.labels(*key)
        return found

    def attempt(self, result: str, profile: str) -> tuple[Counter, Histogram]:
        key = (result, profile)
        found = self._attempts.get(key)
        if found is None:
            found = self._attempts[key] = (
                self.catalogue.schedule_attempts.labels(*key),
                self.catalogue.attempt_duration.labels(*key),
            )
        return found

    def decided(self, decision: Decision) -> None:
        evaluations = self._evaluations.get(decision.profile_name)
        if evaluations is not None:
            evaluations.add(decision)
            # Reuse works without hints on single nodes, so there is never one to use.
            self._no_hints[decision.profile_name].inc()

    def pod_bound(self, queued_pod: QueuedPod) -> None:
        attempts = queued_pod.attempts
        self.catalogue.pod_attempts.only.observe(attempts)
        first_ns = queued_pod.initial_attempt_ns
        if first_ns is not None:
            duration_s = (self._clock.now_ns() - first_ns) / NANOSECONDS
            self._sli_of(attempts).observe(duration_s)
        if queued_pod.was_flushed_from_unschedulable:
            self.catalogue.scheduled_after_flush.only.inc()

    def event_handled(self, event: ClusterEvent, started_s: float) -> None:
        label = event.label
        found = self._events.get(label)
        if found is None:
            found = self._events[label] = self.catalogue.event_duration.labels(label)
        found.observe(self.now_s() - started_s)

    # --- groups ---

    def start_group_point(self, profile_name: str) -> "PlacementMeter":
        return PlacementMeter(self, profile_name, self.now_s(), is_sampled=True)

    def group_decided(self, started_s: float) -> None:
        self.catalogue.group_algorithm_duration.only.observe(self.now_s() - started_s)

    def group_ended(self, result: str, profile_name: str, started_s: float) -> None:
        labels = (result, profile_name)
        self.catalogue.group_attempts.labels(*labels).inc()
        self.catalogue.group_attempt_duration.labels(*labels).observe(self.now_s() - started_s)

    # --- plugins ---

    def preemption_attempted(self) -> None:
        self.catalogue.preemption_attempts.only.inc()

    def preemption_actuated(self, victim_count: int) -> None:
        self.catalogue.preemption_victims.only.observe(victim_count)

    def preemption_task_ended(self) -> None:
        # Spec 09 §8.1: upstream measures before the work begins, and always as a success.
        self.catalogue.preemption_tasks.labels("success").inc()
        self.catalogue.preemption_task_duration.labels("success").observe(0.0)

    def volume_stage_failed(self, operation: str) -> None:
        self.catalogue.volume_errors.labels(operation).inc()

    def claim_created(self, *, is_success: bool) -> None:
        self.catalogue.claim_creates.labels("success" if is_success else "failure").inc()

    def device_wait_ended(
        self, profile_name: str, driver: str, status: str, duration_s: float
    ) -> None:
        labels = (profile_name, driver, status)
        self.catalogue.device_wait_duration.labels(*labels).observe(duration_s)

    def device_conditions_ended(self, profile_name: str, driver: str, status: str) -> None:
        self.catalogue.device_allocations.labels(profile_name, driver, status).inc()

    # --- inside ---

    def _sli_of(self, attempts: int) -> Histogram:
        attempts = min(attempts, ATTEMPTS_LABEL_MAX)
        found = self._sli.get(attempts)
        if found is None:
            label = f"{ATTEMPTS_LABEL_MAX}+" if attempts == ATTEMPTS_LABEL_MAX else str(attempts)
            found = self._sli[attempts] = self.catalogue.sli_duration.labels(label)
        return found

    def _write_evaluations(self) -> None:
        for profile, evaluations in self._evaluations.items():
            for (plugin, point), count in evaluations.counts().items():
                series = self.catalogue.plugin_evaluations.labels(plugin, point, profile)
                series.value = count

    def _forget_evaluations(self) -> None:
        for evaluations in self._evaluations.values():
            evaluations.reset()

    def _write_cache_size(self, scheduler: Scheduler) -> None:
        statistics = scheduler.cache.statistics()
        for name in ("assumed_pods", "pods", "nodes"):
            self.catalogue.cache_size.labels(name).set(getattr(statistics, name))


class _Evaluations:
    """How often each plugin of a profile was asked.

    Usually the same plugins skip one pod and the next, so attempts are counted by the set of
    skipped plugins; the counts of each plugin are computed when they are read.
    """

    def __init__(self, profile: Profile) -> None:
        self._pre_filters = [name for name, _ in profile.pre_filter_steps]
        self._filters = [step.name for step in profile.filter_steps]
        self._pre_scores = [name for name, _ in profile.pre_score_steps]
        self._scores = [step.name for step in profile.score_steps]
        self.reset()

    def reset(self) -> None:
        self._filtering: dict[frozenset[str], _Asked] = {}
        self._scoring: dict[frozenset[str], _Asked] = {}
        # Plugin and point → how often it was not asked, because an earlier plugin had rejected.
        self._not_asked: dict[tuple[str, str], int] = {}

    def add(self, decision: Decision) -> None:
        state, evaluated = decision.state, decision.evaluated_count
        asked = _asked(self._filtering, state.skip_filter)
        asked.add(evaluated)
        if decision.pre_filter.status is not None:
            self._count_behind(decision.pre_filter.status.plugin)
        if evaluated != decision.feasible_count:
            asked.rejected = asked.rejected + decision.diagnosis.rejected_counts()
        if decision.scores is not None:
            _asked(self._scoring, state.skip_score).add(decision.feasible_count)

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Per plugin and extension point; every series exists from the start."""
        not_asked = dict(self._not_asked)
        for skipped, asked in self._filtering.items():
            self._subtract_rejected(not_asked, skipped, asked)
        listed = (
            (PRE_FILTER, self._pre_filters, self._filtering, "attempts"),
            (FILTER, self._filters, self._filtering, "nodes"),
            (PRE_SCORE, self._pre_scores, self._scoring, "attempts"),
            (SCORE, self._scores, self._scoring, "nodes"),
        )
        return {
            (name, point): sum(
                getattr(asked, what) for skipped, asked in tally.items() if name not in skipped
            )
            - not_asked.get((name, point), 0)
            for point, names, tally, what in listed
            for name in names
        }

    def _count_behind(self, rejecting: str) -> None:
        """A PreFilter plugin ended the attempt: those behind it were not asked."""
        if rejecting in self._pre_filters:
            for name in self._pre_filters[self._pre_filters.index(rejecting) + 1 :]:
                self._not_asked[name, PRE_FILTER] = self._not_asked.get((name, PRE_FILTER), 0) + 1

    def _subtract_rejected(
        self, not_asked: dict[tuple[str, str], int], skipped: frozenset[str], asked: "_Asked"
    ) -> None:
        """Behind a filter that rejects a node, no other filter is asked about it."""
        rejected = 0
        counts: list[int] = np.broadcast_to(asked.rejected, len(self._filters)).tolist()
        for name, count in zip(self._filters, counts, strict=True):
            if name not in skipped:
                not_asked[name, FILTER] = not_asked.get((name, FILTER), 0) + rejected
            rejected += count


class _Asked:
    """Attempts in which the same plugins were skipped, and the nodes evaluated in them.

    rejected   int64[filter], how many of these nodes each filter rejected; 0 for none
    """

    __slots__ = ("attempts", "nodes", "rejected")

    def __init__(self) -> None:
        self.attempts = 0
        self.nodes = 0
        self.rejected: IntArray | int = 0

    def add(self, nodes: int) -> None:
        self.attempts += 1
        self.nodes += nodes


def _asked(tally: dict[frozenset[str], _Asked], skipped: set[str]) -> _Asked:
    key = frozenset(skipped)
    found = tally.get(key)
    if found is None:
        found = tally[key] = _Asked()
    return found


class QueueRecorder:
    """Implements `queue.metrics.QueueMetrics`."""

    def __init__(self, catalogue: SchedulerCatalogue, rng: np.random.Generator) -> None:
        self._catalogue = catalogue
        self.samples_plugins = Sampler(rng)
        self._pending = {
            queue: catalogue.pending_pods.labels(queue)
            for queue in (ACTIVE, BACKOFF, UNSCHEDULABLE_QUEUE, GATED)
        }
        self._incoming: dict[tuple[str, str], Counter] = {}
        self._in_flight: dict[str, Gauge] = {}
        self._hints: dict[tuple[str, str, str], Histogram] = {}
        self._passes: dict[tuple[str, str], Histogram] = {}

    def pending_changed(self, queue: str, delta: int) -> None:
        self._pending[queue].value += delta

    def incoming(self, queue: str, event: str, count: int = 1) -> None:
        key = (queue, event)
        found = self._incoming.get(key)
        if found is None:
            found = self._incoming[key] = self._catalogue.incoming_pods.labels(queue, event)
        found.value += count

    def unschedulable_changed(self, plugin: str, profile: str, delta: int) -> None:
        self._catalogue.unschedulable_pods.labels(plugin, profile).inc(delta)

    def in_flight_changed(self, event: str, delta: int, *, flush: bool) -> None:
        found = self._in_flight.get(event)
        if found is None:
            found = self._in_flight[event] = self._catalogue.inflight_events.labels(event)
        found.value += delta

    def hint_executed(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        key = (plugin, event, hint)
        found = self._hints.get(key)
        if found is None:
            found = self._hints[key] = self._catalogue.hint_duration.labels(*key)
        found.observe(duration_s)

    def pre_enqueue_passed(self, profile: str, status: str, duration_s: float) -> None:
        key = (status, profile)
        found = self._passes.get(key)
        if found is None:
            found = self._catalogue.point_duration.labels(_PRE_ENQUEUE, status, profile)
            self._passes[key] = found
        found.observe(duration_s)

    def pre_enqueue_executed(self, plugin: str, status: str, duration_s: float) -> None:
        series = self._catalogue.plugin_duration.labels(plugin, _PRE_ENQUEUE, status)
        series.observe(duration_s)
