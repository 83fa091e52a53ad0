"""The scheduling queue: every known, unassigned pod of our profiles is here or in flight (spec 02).

It decides which pod is tried next, and when and after which events a rejected pod is tried again.
`contents` has the containers and reads them, `moves` decides; this file moves pods.

Everything runs on one event loop: the methods are plain functions, only `pop` and `run_timers`
wait, and hints and PreEnqueue checks must not call back into the queue.

Invariants: a key is in at most one of active, backoff and parked; a UID is in flight at most once.
A pod that was added again during its attempt is in flight and in a container: `pop` drops that
record if the attempt is still going on. Events are applied in their order; one that takes long, for
the number of waiting pods or the size of their specs, is continued in later turns of the loop.
Not here: gates and hints (plugins pass functions), the handling of failed attempts (`engine`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod, key_of
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import QueueError
from kubestow.framework.classify import POD_EVENTS, PodEvents
from kubestow.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent
from kubestow.framework.hints import HintMap
from kubestow.framework.plugin import SharedGatePlugin
from kubestow.queue.active import SortKeyFunction
from kubestow.queue.backoff import (
    INITIAL_BACKOFF_NS,
    MAX_BACKOFF_NS,
    BackoffPolicy,
)
from kubestow.queue.contents import QueueContents, parked_since_ns
from kubestow.queue.gating import Gatekeeper, PreEnqueueChecks
from kubestow.queue.hint_call import hint_caller
from kubestow.queue.in_flight import LoggedEvent
from kubestow.queue.interest import Audience, Interest
from kubestow.queue.late_events import LateEvents, Move
from kubestow.queue.metrics import (
    ACTIVE,
    BACKOFF,
    BACKOFF_COMPLETE,
    NO_METRICS,
    POP_FROM_BACKOFF,
    SCHEDULE_ATTEMPT_FAILURE,
    QueueMetrics,
)
from kubestow.queue.moves import Judge, Place, Verdict, judge, judge_missed, place_after
from kubestow.queue.nominator import PodLister
from kubestow.queue.parked import ParkedPod
from kubestow.queue.protocol import PreCheck
from kubestow.queue.queued_pod import QueuedPod, Signature
from kubestow.queue.timers import Occupancy, flush_after_each_pause, flush_each_second

_LOG: Final = logging.getLogger(__name__)

MAX_UNSCHEDULABLE_NS: Final = 300 * NANOSECONDS
# How long hints are asked before the loop has its turn. In virtual time they take none.
HINTS_S: Final = 0.02


class SchedulingQueue(QueueContents):
    """The queue of all profiles.

                       refused
               ┌───────────────────► GATED ──────────────────────┐
               │                                                 │ event, own update,
        add    │    passed             pop                       │ leftover flush
       ─────► gates ────────► ACTIVE ───────► IN FLIGHT ─► gone  │
               ▲                ▲                ▲ │             │
               │                │ backoff over,  │ │ failed      │
               │                │ activate       │ ├───────► UNSCHEDULABLE
               │                │                │ │             │
               │              BACKOFF ───────────┘ └──┐ ┌────────┘
               │              ERROR BACKOFF           │ │
               │                ▲  pop, if none       ▼ ▼
               │                │  is active         gates, if the backoff lasts
               │                └──────── passed ─────┘ │
               └──────────── if the backoff is over ────┘

    GATED and UNSCHEDULABLE pods are both parked. With `pop_from_backoff` a pop that finds nothing
    active takes from BACKOFF before the backoff is over, and the gates are asked on entering the
    backoff queue instead of on leaving it.

    `pre_enqueue` and `hint_maps` are given per scheduler name; `sort_key` orders the active queue;
    `pod_lister` finds the newest version of a pod. `is_member` says which pods are members of a
    group: after a failed attempt these wait for their backoff, never for an event (spec 11 §5.3).
    `shared_gates` are the plugins that refuse pods in sets, by name. `pod_events` names the events
    of pods, `info_of` makes what is derived from a pod.
    """

    # Other versions have their own.
    policy_type = BackoffPolicy
    gatekeeper_type = Gatekeeper

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: SortKeyFunction,
        hint_maps: Mapping[str, HintMap],
        pod_lister: PodLister,
        pre_enqueue: PreEnqueueChecks | None = None,
        initial_backoff_ns: int = INITIAL_BACKOFF_NS,
        max_backoff_ns: int = MAX_BACKOFF_NS,
        max_unschedulable_ns: int = MAX_UNSCHEDULABLE_NS,
        pop_from_backoff: bool = True,
        is_member: Callable[[Pod], bool] | None = None,
        shared_gates: Mapping[str, SharedGatePlugin] = MappingProxyType({}),
        metrics: QueueMetrics = NO_METRICS,
        pod_events: PodEvents = POD_EVENTS,
        info_of: Callable[[Pod], PodInfo] = PodInfo,
    ) -> None:
        self.hint_maps: Final = hint_maps
        self._interest = Interest(hint_maps)
        super().__init__(
            sort_key=sort_key,
            policy=self.policy_type(
                initial_ns=initial_backoff_ns, max_ns=max_backoff_ns, is_aligned=pop_from_backoff
            ),
            interest=self._interest,
            max_unschedulable_ns=max_unschedulable_ns,
            pod_lister=pod_lister,
            shared_gates=shared_gates,
            metrics=metrics,
        )
        self._clock = clock
        self._events = pod_events
        self._info_of = info_of
        self._added_label = pod_events.added.label
        self._updated_label = pod_events.added_by_update.label
        self._pop_from_backoff = pop_from_backoff
        self._is_member = is_member
        self._metrics = metrics
        self._ask = hint_caller(metrics, clock)
        self._judge: Judge = judge
        self._gatekeeper = self.gatekeeper_type(
            pre_enqueue or {}, events_of=self._interest.events_of, clock=clock, metrics=metrics
        )
        self._backing_off, self._left_over = Occupancy(self._backoff), Occupancy(self._parked)
        self._late = LateEvents(self._apply)
        # Called with the key of each pod that was put somewhere else; must not call back.
        self.on_moved: Callable[[str], None] | None = None
        # Gives pods their signatures, if pods of some profile have one.
        self.sign: Callable[[PodInfo], Signature | None] | None = None
        # How many attempts have begun.
        self.scheduling_cycle = 0
        self._is_closed = False
        self._poppable = asyncio.Event()
        self._timers: list[asyncio.Task[None]] = []

    # --- Adding and deleting ------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """Add a new pod.

        It replaces a record with its key, unless that is active or backing off and a gate refuses
        the new one.
        """
        if self._move_to_active(self._new_record(pod), self._added_label):
            self._wake_pops()

    def update(self, old: Pod, new: Pod) -> None:
        """Replace the pod by a newer version, which may make a parked pod schedulable."""
        if new.metadata.uid in self._in_flight:
            for event in self._events.of_own_update(old, new):
                self._in_flight.log(self._interest.audience_of(event), old, new)
            return
        key = key_of(old)
        if (queued_pod := self._active.get(key)) is not None:
            self._swap_pod(queued_pod, old, new)
            self._active.update(queued_pod)
        elif (queued_pod := self._backoff.get(key)) is not None:
            self._swap_pod(queued_pod, old, new)
            self._backoff.update(queued_pod)
        elif (queued_pod := self._parked.get(key_of(new))) is not None:
            self._swap_pod(queued_pod, old, new)
            self._requeue_updated(queued_pod, old, new)
        elif self._move_to_active(self._new_record(new), self._updated_label):
            self._wake_pops()

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound. If it is in flight, its attempt goes on."""
        self.nominator.delete(pod)
        key = key_of(pod)
        if self._active.discard(key) is not None or self._backoff.discard(key) is not None:
            # Spec 02 §9.8: the gauge of rejected pods stays as it is.
            return
        parked = self._parked.discard(key)
        if parked is not None:
            self._count_rejectors(parked, -1)

    # --- Attempts -----------------------------------------------------------------------------

    async def pop(self) -> QueuedPod | None:
        """Wait for the next pod to try; None once the queue is closed and has nothing left."""
        while True:
            queued_pod = self.pop_nowait()
            if queued_pod is not None:
                return queued_pod
            if self._is_closed:
                _LOG.info("Scheduling queue is closed")
                return None
            self._poppable.clear()
            await self._poppable.wait()

    def pop_nowait(self) -> QueuedPod | None:
        """The next pod to try, if any; it still has the rejectors of its last attempt."""
        while True:
            queued_pod = self._active.pop()
            if queued_pod is None:
                queued_pod = self._pop_from_backoff_queue()
                if queued_pod is None:
                    return None
            if self._start_attempt(queued_pod):
                return queued_pod

    def pop_member(self, pod: Pod) -> QueuedPod | None:
        """Start an attempt of this waiting pod, too, because its group is tried.

        None if a gate refuses it, or if it is not in a container (spec 11 §5.2).
        """
        key = key_of(pod)
        queued_pod = self._take_from_backoff(key)
        if queued_pod is None:
            self._activate(pod)
            queued_pod = self._active.discard(key)
        if queued_pod is None or not self._start_attempt(queued_pod):
            return None
        return queued_pod

    def _take_from_backoff(self, key: str) -> QueuedPod | None:
        """The pod as if it had been active for an instant; None if it has to be made active."""
        # Through the active queue a pod would change the order of equal ones there, and without
        # `pop_from_backoff` gates are asked on the way.
        if self._active or not self._pop_from_backoff:
            return None
        queued_pod = self._backoff.discard(key)
        if queued_pod is not None:
            # A pod in backoff was active before, so its first attempt has its time.
            self._metrics.incoming(ACTIVE, FORCE_ACTIVATE.label)
        return queued_pod

    def done(self, uid: str) -> None:
        """The attempt of that pod needs no more events: it succeeded or was abandoned."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(self, queued_pod: QueuedPod) -> None:
        """Requeue a pod after a failed attempt; its rejectors say why it failed.

        Raises QueueError if the pod is in the queue already; the attempt is done in any case.
        """
        try:
            self._refuse_if_present(queued_pod)
            self._note_failure(queued_pod)
            place = self._requeue(
                queued_pod, self._verdict_on_attempt(queued_pod), SCHEDULE_ATTEMPT_FAILURE
            )
            if self._is_poppable(place):
                self._wake_pops()
        finally:
            self.done(queued_pod.uid)

    # --- Moves --------------------------------------------------------------------------------

    def move_all(
        self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None
    ) -> None:
        """Move the parked pods that the event may make schedulable.

        `pre_check` excludes parked pods; the event is logged for pods in flight in any case.
        """
        audience = self._interest.audience_of(event)
        if not audience.is_interesting:
            return
        entries: Sequence[ParkedPod] = ()
        if self._parked:
            entries = self._parked.candidates(audience, new)
            if pre_check is not None:
                entries = [
                    entry
                    for entry in entries
                    if any(pre_check(each.pod) for each in entry.queued_pod.waiting_pods)
                ]
        self._move_parked(entries, audience, old, new)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Make these pods active without waiting for their backoff; gates still apply.

        Those in flight are marked, so that they do not park when their attempt fails.
        """
        any_activated = False
        for pod in pods:
            if self._activate(pod):
                any_activated = True
            elif pod.metadata.uid in self._in_flight:
                self._in_flight.log(self._interest.audience_of(FORCE_ACTIVATE), None, pod)
        if any_activated:
            self._wake_pops()

    def flush_backoff_completed(self) -> None:
        """Make the pods active whose backoff is over."""
        any_activated = False
        while (queued_pod := self._backoff.pop_completed(self._clock.now_ns())) is not None:
            any_activated |= self._move_to_active(
                queued_pod, BACKOFF_COMPLETE, is_from_backoff=True
            )
        if any_activated:
            self._wake_pops()

    def flush_unschedulable_leftover(self) -> None:
        """Retry the pods parked for longer than `max_unschedulable_ns`, in case an event was missed
        or a hint was wrong."""
        now_ns = self._clock.now_ns()
        entries = [
            entry
            for entry in self._parked.entries()
            if now_ns - parked_since_ns(entry.queued_pod) > self._max_unschedulable_ns
        ]
        if not entries:
            return
        for entry in entries:
            entry.queued_pod.was_flushed_from_unschedulable = True
            entry.queued_pod.flush_timestamp_ns = now_ns
        self._move_parked(entries, self._interest.audience_of(UNSCHEDULABLE_TIMEOUT), None, None)

    # --- Running ------------------------------------------------------------------------------

    async def run_timers(self) -> None:
        """Flush periodically until the queue is closed."""
        if self._is_closed:
            return
        async with asyncio.TaskGroup() as group:
            self._timers = [
                group.create_task(
                    flush_each_second(
                        self.flush_backoff_completed,
                        self._backing_off,
                        first_ns=self._policy.first_flush_ns(self._clock.now_ns()),
                        clock=self._clock,
                    )
                ),
                group.create_task(
                    flush_after_each_pause(self.flush_unschedulable_leftover, self._left_over)
                ),
            ]

    def close(self) -> None:
        """Stop the timers; `pop` returns None when nothing is left to pop."""
        if self._is_closed:
            raise QueueError("cannot close the scheduling queue: it is closed already")
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        for uid in self._in_flight.uids():
            self._in_flight.done(uid)
        self._late.clear()
        self._wake_pops()

    # --- Records ------------------------------------------------------------------------------

    def _new_record(self, pod: Pod) -> QueuedPod:
        queued_pod = QueuedPod(self._info_of(pod), timestamp_ns=self._clock.now_ns())
        if self.sign is not None:
            queued_pod.signature = self.sign(queued_pod.pod_info)
        return queued_pod

    def _swap_pod(self, queued_pod: QueuedPod, old: Pod, new: Pod) -> None:
        queued_pod.pod_info.update(new)
        if self.sign is not None:
            queued_pod.signature = self.sign(queued_pod.pod_info)
        self.nominator.update(old, new)

    def _count_rejectors(self, queued_pod: QueuedPod, delta: int) -> None:
        for plugin in queued_pod.rejectors:
            self._metrics.unschedulable_changed(plugin, queued_pod.scheduler_name, delta)

    # --- Starting and ending attempts -----------------------------------------------------------

    def _pop_from_backoff_queue(self) -> QueuedPod | None:
        """Nothing is active, so a pod in backoff delays no other."""
        if not self._pop_from_backoff:
            return None
        queued_pod = self._backoff.pop_rejected()
        if queued_pod is not None:
            self._metrics.incoming(ACTIVE, POP_FROM_BACKOFF)
        return queued_pod

    def _start_attempt(self, queued_pod: QueuedPod) -> bool:
        """Mark the pod as in flight; False if it is already, then this record is dropped."""
        queued_pod.attempts += 1
        if not self._in_flight.start(queued_pod.uid):
            _LOG.error(
                "the same pod is tracked in multiple places in the scheduler: %s",
                object_ref(queued_pod.pod.metadata),
            )
            return False
        self.scheduling_cycle += 1
        if queued_pod.has_rejectors:
            self._count_rejectors(queued_pod, -1)
        if self.on_moved is not None:
            self.on_moved(queued_pod.key)
        return True

    def _refuse_if_present(self, queued_pod: QueuedPod) -> None:
        key = queued_pod.key
        if key in self._parked:
            place = "unschedulable queue"
        elif key in self._active:
            place = "the active queue"
        elif key in self._backoff:
            place = "the backoff queue"
        else:
            return
        name = object_ref(queued_pod.pod.metadata)
        raise QueueError(f"Pod {name} is already present in {place}")

    def _note_failure(self, queued_pod: QueuedPod) -> None:
        if queued_pod.has_rejectors:
            queued_pod.unschedulable_count += 1
            queued_pod.consecutive_errors_count = 0
        else:
            queued_pod.consecutive_errors_count += 1
        queued_pod.timestamp_ns = self._clock.now_ns()
        queued_pod.backoff_expiry_ns = None
        queued_pod.was_flushed_from_unschedulable = False
        queued_pod.flush_timestamp_ns = None
        self._count_rejectors(queued_pod, 1)

    def _verdict_on_attempt(self, queued_pod: QueuedPod) -> Verdict:
        """The verdict of the events during the attempt."""
        if not queued_pod.has_rejectors:
            return Verdict.AFTER_BACKOFF
        if self._is_member is not None and self._is_member(queued_pod.pod):
            return Verdict.AFTER_BACKOFF
        events = self._in_flight.events_since_pop(queued_pod.uid)
        if events is None:
            _LOG.error(
                "pod %r failed but is not in flight; trying it again after backoff", queued_pod.key
            )
            return Verdict.AFTER_BACKOFF
        return judge_missed(queued_pod, self._verdicts_on(queued_pod, events))

    def _verdicts_on(
        self, queued_pod: QueuedPod, events: Iterable[LoggedEvent]
    ) -> Iterator[Verdict]:
        mask = self._interest.mask_of(queued_pod.rejectors)
        until_s = self._clock.monotonic_s() + HINTS_S
        for audience, old, new in events:
            yield self._judge(queued_pod, mask, audience, old, new, self._ask)
            if self._clock.monotonic_s() > until_s:
                yield Verdict.AFTER_BACKOFF

    # --- Moving -------------------------------------------------------------------------------

    def _move_parked(
        self, entries: Sequence[ParkedPod], audience: Audience, old: object, new: object
    ) -> None:
        """Apply an event to these parked pods and log it for those in flight."""
        if entries:
            move = Move(iter(entries), audience, old, new)
            # One event after the other, as they came.
            if self._late.waiting or not self._apply(move):
                self._late.put_off(move)
        self._in_flight.log(audience, old, new)

    def _apply(self, move: Move, *, asks: bool = True) -> bool:
        """Apply an event to its pods that are still parked; False if the time of a turn is over.

        Without `asks` every pod is queued. `pop` is woken at the end only: the first pod it returns
        must be the best of all that moved.
        """
        entries, audience, old, new = move
        any_poppable = is_over = False
        until_s = self._clock.monotonic_s() + HINTS_S
        for entry in entries:
            if not self._parked.has(entry):
                continue
            queued_pod, verdict = entry.queued_pod, Verdict.AFTER_BACKOFF
            if asks:
                verdict = self._judge(
                    queued_pod, entry.rejector_mask, audience, old, new, self._ask
                )
            if verdict is not Verdict.SKIP:
                # Removed first: if a gate refuses it, it counts as incoming again.
                self._parked.discard(queued_pod.key)
                place = self._requeue(queued_pod, verdict, audience.label)
                any_poppable |= self._is_poppable(place)
            if asks and self._clock.monotonic_s() > until_s:
                is_over = True
                break
        if any_poppable:
            self._wake_pops()
        return not is_over

    def _requeue_updated(self, queued_pod: QueuedPod, old: Pod, new: Pod) -> None:
        """Apply a parked pod's own update, event by event, until one moves it.

        The events that its gate registered for do not matter here: the pod itself has changed.
        """
        for event in self._events.of_own_update(old, new):
            audience = self._interest.audience_of(event)
            mask = self._interest.mask_of(queued_pod.rejectors)
            verdict = self._judge(queued_pod, mask, audience, old, new, self._ask)
            place = self._requeue(queued_pod, verdict, audience.label)
            if place is not Place.UNSCHEDULABLE:
                if self._is_poppable(place):
                    self._wake_pops()
                return

    def _requeue(self, queued_pod: QueuedPod, verdict: Verdict, label: str) -> Place:
        """Put a pod where the verdict and the gates send it, and return where that is.

        UNSCHEDULABLE includes gated, BACKOFF includes both kinds.
        """
        is_backing_off = verdict is Verdict.AFTER_BACKOFF and self._policy.is_backing_off(
            queued_pod, self._clock.now_ns()
        )
        place = place_after(verdict, is_backing_off=is_backing_off)
        if place is Place.ACTIVE:
            is_moved = self._move_to_active(queued_pod, label)
        elif place is Place.BACKOFF:
            is_moved = self._move_to_backoff(queued_pod, label)
        else:
            self._park(queued_pod, label)
            return place
        return place if is_moved else Place.UNSCHEDULABLE

    def _move_to_active(
        self, queued_pod: QueuedPod, label: str, *, is_from_backoff: bool = False
    ) -> bool:
        """Make the pod active if its gates admit it; else park it."""
        # Spec 02 §5: with `pop_from_backoff`, gates were asked when it entered the backoff queue.
        is_admitted = (is_from_backoff and self._pop_from_backoff) or self._gatekeeper.admit(
            queued_pod
        )
        key = queued_pod.pod_info.key
        if not is_admitted:
            if key not in self._active and key not in self._backoff:
                self._park_gated(queued_pod, label)
            return False
        if queued_pod.initial_attempt_ns is None:
            queued_pod.initial_attempt_ns = self._clock.now_ns()
        self._parked.discard(key)
        self._backoff.discard(key)
        self._active.add(queued_pod, label)
        if self.on_moved is not None:
            self.on_moved(key)
        if label in (self._added_label, self._updated_label):
            self.nominator.add(queued_pod.pod_info.pod)
        return True

    def _move_to_backoff(self, queued_pod: QueuedPod, label: str) -> bool:
        """Put the pod into backoff if its gates admit it; else park it."""
        if self._pop_from_backoff and not self._gatekeeper.admit(queued_pod):
            self._park_gated(queued_pod, label)
            return False
        self._parked.discard(queued_pod.key)
        if self._backoff.add(queued_pod):
            self._metrics.incoming(BACKOFF, label)
        self._backing_off.added()
        if self.on_moved is not None:
            self.on_moved(queued_pod.key)
        return True

    def _park_gated(self, queued_pod: QueuedPod, label: str) -> None:
        queued_pod.was_flushed_from_unschedulable = False
        self._park(queued_pod, label)

    def _park(self, queued_pod: QueuedPod, label: str) -> None:
        self._parked.put(queued_pod, label)
        self._left_over.added()
        if self.on_moved is not None:
            self.on_moved(queued_pod.key)

    def _activate(self, pod: Pod) -> bool:
        key = key_of(pod)
        parked = self._parked.get(key)
        if parked is not None:
            return self._move_to_active(parked, FORCE_ACTIVATE.label)
        waiting = self._backoff.discard(key)
        if waiting is None:
            return False
        return self._move_to_active(waiting, FORCE_ACTIVATE.label, is_from_backoff=True)

    # --- Waking `pop` ---------------------------------------------------------------------------

    def _is_poppable(self, place: Place) -> bool:
        return place is Place.ACTIVE or (place is Place.BACKOFF and self._pop_from_backoff)

    def _wake_pops(self) -> None:
        self._poppable.set()
