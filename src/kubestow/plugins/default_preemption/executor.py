"""Evicts the victims beside the scheduling loop (spec 08 A10).

    marked ── nominations cleared ── all victims but the last evicted ── the last ─── unmarked
       └────────────── any failure: unmarked and activated, to try again ─────────────────┘

While a pod is marked its PreEnqueue holds it back: tried too early, it would find its victims still
there and preempt elsewhere. The last victim is evicted alone and noted: its deletion is the event
that queues the pod again, and may arrive before the mark is removed. A pod that preempts again
while an earlier eviction is under way has one mark for both, as upstream: the last victim that was
noted counts, and the eviction that ends first removes it.

Beyond upstream, a pod is held back until the deletions that the API server has answered were seen.
Upstream's watches run in parallel with its cycles and are seldom behind the answers to its
requests; here both share one loop, and a preemptor that is tried in between evicts pods for the
second time. Where no watch is behind, this changes nothing.

An event that comes while the pod is held back is lost to it. Where the pod is only held back
because a watch is behind an answer, or an answer behind a watch, it is activated once both are in.
It is also activated if no event can follow: all victims are gone, and another preemptor had evicted
one of them, or one was on no node any more when it was deleted, since its binding had failed.

A scheduling cycle never waits. So without SchedulerAsyncPreemption victims are evicted beside the
loop as well, without a mark and in the order of that mode; a failure is then only logged, because
the cycle that would report it is over.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from kubestow.api.meta import ApiObject, Condition, object_ref
from kubestow.api.pod import Pod, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS
from kubestow.cluster.pod_status import changed_condition
from kubestow.cluster.status_writer import StatusPatch
from kubestow.errors import KubestowError
from kubestow.framework.handle import Handle
from kubestow.framework.victims import DeletionResult
from kubestow.logs import ObjectName, inform
from kubestow.plugins.default_preemption.deletions import Deletions
from kubestow.plugins.default_preemption.eligibility import (
    DISRUPTION_TARGET,
    PREEMPTION_BY_SCHEDULER,
)

log = logging.getLogger(__name__)

IN_MEMORY: Final = " (in kube-scheduler memory)."
CLEARED: Final = StatusPatch(nominated_node_name="")


class Preemptor(NamedTuple):
    """What pods are evicted for: a pod, or a group of pods."""

    kind: str
    uid: str
    name: str
    scheduler_name: str
    priority: int
    pods: Sequence[Pod]
    # The object that events on victims refer to. For a pod v1.36 names none (spec 09 §9).
    related: ApiObject | None = None
    # Members of groups come back with a sibling; no event has to be made up for them.
    is_member: bool = False

    @classmethod
    def of_pod(cls, pod: PodInfo, *, is_member: bool) -> "Preemptor":
        name = object_ref(pod.pod.metadata)
        scheduler_name = pod.pod.spec.scheduler_name
        return cls(
            "pod", pod.uid, name, scheduler_name, pod.priority, (pod.pod,), is_member=is_member
        )


class Eviction(NamedTuple):
    """Pods to evict from a node, and the preemptor. Victims that are leaving already are left out.

    `nominated` are less important pods, which are no longer nominated to the node then.
    """

    preemptor: Preemptor
    node_name: str
    victims: Sequence[Pod]
    nominated: Sequence[Pod]


class _Hold:
    """What holds a preemptor back, of all its evictions that are under way."""

    __slots__ = (
        "answered",
        "eviction_count",
        "is_marked",
        "last_victim",
        "may_lack_event",
        "refusal",
        "requested",
        "victims",
    )

    def __init__(self) -> None:
        self.eviction_count = 0
        # As upstream: marked until an eviction has ended, and the victim that was noted last.
        self.is_marked = False
        self.last_victim: Pod | None = None
        self.victims: list[Pod] = []  # of all of them
        # Victims whose deletion is requested, and those where the answer came before the watch.
        self.requested: list[Pod] = []
        self.answered: list[Pod] = []
        # Set where the queue was refused, for an event that is lost by that.
        self.refusal: LostEvent | None = None
        # Whether a victim has left, or will, without an event that comes after the evictions.
        self.may_lack_event = False


class LostEvent(Enum):
    EARLY = "a watch and an answer are not equally far"
    LOST = "evictions are under way"


class Executor:
    # A later version activates a preemptor whose last victim was not bound yet: no event follows.
    activates_after_memory: ClassVar[bool] = False

    def __init__(self, plugin_name: str, handle: Handle, *, is_async: bool) -> None:
        self._plugin_name = plugin_name
        self._handle = handle
        self._is_async = is_async
        self._holds: dict[str, _Hold] = {}  # by UID of the preemptor
        self._deletions = Deletions(handle.objects.pods)

    def evict(self, preemptor: Preemptor, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Start the eviction of the victims; returns at once."""
        eviction = self.plan(preemptor, node_name, victims)
        staying = eviction.victims
        if staying or not self._is_async:
            self._handle.metrics.preemption_actuated(preemptor.kind, len(victims))
        self._handle.groups.start_leaving(staying)
        if not self._is_async:
            self._handle.spawn(self._evict_at_once(eviction))
        elif staying:
            hold = self._holds.setdefault(preemptor.uid, _Hold())
            hold.is_marked = True
            hold.eviction_count += 1
            hold.victims += staying
            if len(staying) == 1 and not eviction.nominated:
                # Noted now: the pod goes back to the queue before the task begins.
                hold.last_victim = staying[0]
            self._handle.spawn(self._evict_in_background(eviction, hold))

    def plan(self, preemptor: Preemptor, node_name: str, victims: Sequence[PodInfo]) -> Eviction:
        """What there is to do; nothing if all victims are leaving, except without the gate."""
        staying = [victim.pod for victim in victims if not is_terminating(victim.pod)]
        if self._handle.in_pre_bind or len(self._handle.waiting_pods):
            staying = [victim for victim in staying if not self._is_stopped(victim)]
        nominated: Sequence[Pod] = ()
        if staying or not self._is_async:
            nominated = [
                pod.pod
                for pod in self._handle.nominator.nominated_pods_for_node(node_name)
                if pod.priority < preemptor.priority and pod.pod.status.nominated_node_name
            ]
        return Eviction(preemptor, node_name, staying, nominated)

    def _is_stopped(self, victim: Pod) -> bool:
        """Whether a victim was stopped on its way to the node.

        It keeps its place until its binding has ended, and the event of that is yet to come.
        Upstream evicts it again then: that deletes a pod which is on no node, and the event meets a
        preemptor that is held back.
        """
        uid = victim.metadata.uid
        waiting, in_pre_bind = self._handle.waiting_pods.get(uid), self._handle.in_pre_bind.get(uid)
        return (waiting is not None and waiting.is_rejected) or (
            in_pre_bind is not None and in_pre_bind.cancel_reason is not None
        )

    def is_preempting(self, uid: str) -> bool:
        """Whether this preemptor should wait; an event for which the queue asks is lost then."""
        hold = self._holds.get(uid)
        if hold is None:
            return False
        is_seen = self._deletions.is_seen
        if hold.is_marked and (hold.last_victim is None or not is_seen(hold.last_victim)):
            is_early = any(self._is_ahead(victim) for victim in hold.requested)
        elif not all(map(is_seen, hold.answered)):
            is_early = True
        else:
            hold.refusal = None
            return False
        if is_early:
            hold.refusal = LostEvent.EARLY
        elif hold.refusal is None:
            hold.refusal = LostEvent.LOST
        return True

    def _is_ahead(self, victim: Pod) -> bool:
        """Whether the watch has shown the deletion before the answer has come."""
        return self._handle.victims.is_sent(victim) and self._deletions.is_seen(victim)

    # --- the two orders ---

    async def _evict_in_background(self, eviction: Eviction, hold: _Hold) -> None:
        waiting: Sequence[Pod] = ()
        started_s = self._handle.clock.monotonic_s()
        is_success = False
        try:
            waiting, is_success = await self._evict_in_order(eviction, hold)
            hold.is_marked, hold.last_victim = False, None
            if not waiting:
                self._queue_again(eviction, hold)
                await self._deletions.wait_seen(hold.answered)
        finally:
            hold.eviction_count -= 1
            if not hold.eviction_count:
                del self._holds[eviction.preemptor.uid]
            self._handle.groups.stop_leaving(eviction.victims)
            duration_s = self._handle.clock.monotonic_s() - started_s
            self._handle.metrics.preemption_task_ended(
                eviction.preemptor.kind, duration_s, is_success=is_success
            )
        if waiting:
            self._handle.activate(waiting)
        else:
            self._queue_again(eviction, hold)

    async def _evict_in_order(self, eviction: Eviction, hold: _Hold) -> tuple[Sequence[Pod], bool]:
        """Evict all victims but the last, then the last; whether nothing failed.

        If anything fails, the pods that no event may queue again, because some victims stay.
        """
        *others, last = eviction.victims
        try:
            is_cleared = await self._clear_nominations(eviction)
            await self._all_or_first_error(
                self._evict_held(eviction, other, hold) for other in others
            )
            hold.last_victim = last
            self._queue_again(eviction, hold)
            deletion = await self._evict_held(eviction, last, hold)
        except Exception as error:  # After any failure the preemptor tries again.
            self._log(eviction, error)
            return [*eviction.preemptor.pods, *self._deferred(eviction)], False
        is_lost = deletion is None and self.activates_after_memory
        return (() if is_cleared and not is_lost else eviction.preemptor.pods), True

    def _deferred(self, eviction: Eviction) -> Iterable[Pod]:
        """The pods that may not have been allowed to preempt, because these victims would leave."""
        preemptors = {pod.metadata.uid for pod in eviction.preemptor.pods}
        for node_name in {victim.spec.node_name for victim in eviction.victims}:
            for pod in self._handle.nominator.nominated_pods_for_node(node_name):
                if pod.uid not in preemptors:
                    yield pod.pod

    def _queue_again(self, eviction: Eviction, hold: _Hold) -> None:
        """Activate the preemptor if it is held back no longer and has lost an event."""
        refusal = hold.refusal
        if refusal is None or eviction.preemptor.is_member:
            return
        if refusal is LostEvent.LOST:
            if hold.eviction_count or not hold.may_lack_event:
                return
            if not all(map(self._deletions.is_gone, hold.victims)):
                return  # The event of a victim that is still there will come.
        if not self.is_preempting(eviction.preemptor.uid):
            self._handle.activate(eviction.preemptor.pods)

    async def _evict_held(
        self, eviction: Eviction, victim: Pod, hold: _Hold
    ) -> DeletionResult | None:
        """Evict a victim; its preemptor is held back until the deletion was seen."""
        hold.requested.append(victim)
        try:
            deletion = await self._evict_one(eviction, victim)
        finally:
            hold.requested.remove(victim)
        hold.may_lack_event |= deletion is DeletionResult.SHARED or (
            deletion is DeletionResult.MADE and not self._deletions.is_on_node(victim)
        )
        if deletion is not None and not self._deletions.is_seen(victim):
            hold.answered.append(victim)
        return deletion

    async def _evict_at_once(self, eviction: Eviction) -> None:
        try:
            await self._all_or_first_error(
                self._evict_one(eviction, victim) for victim in eviction.victims
            )
        except Exception as error:  # As above, but it is not activated in this mode.
            self._log(eviction, error)
        else:
            await self._clear_nominations(eviction)
        finally:
            self._handle.groups.stop_leaving(eviction.victims)

    def _log(self, eviction: Eviction, error: Exception) -> None:
        log.error(
            "cannot evict all victims for %s %s on node %s: %s",
            eviction.preemptor.kind,
            eviction.preemptor.name,
            eviction.node_name,
            error,
            # An error from the API server needs no traceback.
            exc_info=None if isinstance(error, KubestowError) else error,
        )

    # --- one pod ---

    async def _clear_nominations(self, eviction: Eviction) -> bool:
        """Clear the nominations of less important pods; return whether all succeeded.

        A failed patch does not stop the other evictions.
        """
        is_cleared = True
        for pod in eviction.nominated:
            try:
                await self._handle.status_writer.write(pod, CLEARED)
            except Exception as error:  # As above.
                self._log(eviction, error)
                is_cleared = False
        return is_cleared

    async def _evict_one(self, eviction: Eviction, victim: Pod) -> DeletionResult | None:
        """Evict a victim; None if that needed no request."""
        preemptor, note = eviction.preemptor, self._note(eviction)
        deletion = None
        if self._stop_placing(victim):
            note += IN_MEMORY
            self._inform("Preemptor preempted a waiting pod", eviction, victim)
        else:
            deletion = await self._delete(eviction.preemptor, victim)
            if deletion is not DeletionResult.MADE:
                return deletion
            self._inform("Preemptor Pod preempted victim Pod", eviction, victim)
        self._handle.events.record(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=note,
            related=preemptor.related,
        )
        return deletion

    def _inform(self, message: str, eviction: Eviction, victim: Pod) -> None:
        """Log in the words of upstream, which operators search for when a pod has gone."""
        metadata = victim.metadata
        inform(
            log,
            message,
            v=2,
            preemptor=eviction.preemptor.name,
            victim=ObjectName(metadata.namespace, metadata.name),
            node=eviction.node_name,
        )

    def _note(self, eviction: Eviction) -> str:
        """The text of the event on a victim."""
        preemptor = eviction.preemptor
        return f"Preempted by {preemptor.kind} {preemptor.uid} on node {eviction.node_name}"

    def _stop_placing(self, victim: Pod) -> bool:
        """Stop a pod that is being placed but not bound; False if it is too late."""
        uid = victim.metadata.uid
        waiting = self._handle.waiting_pods.get(uid)
        if waiting is not None:
            return waiting.preempt(self._plugin_name, "preempted")
        in_pre_bind = self._handle.in_pre_bind.get(uid)
        return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {self._plugin_name}")

    async def _delete(self, preemptor: Preemptor, victim: Pod) -> DeletionResult:
        """Set the disruption condition, then delete the pod."""
        condition = Condition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{preemptor.scheduler_name}: preempting to accommodate a higher "
            f"priority {preemptor.kind}",
            observed_generation=victim.metadata.generation,
        )
        changed = changed_condition(victim, condition, now=self._now())
        return await self._handle.victims.delete(victim, changed)

    async def _all_or_first_error(self, calls: Iterable[Coroutine[Any, Any, object]]) -> None:
        """Run as many at the same time as the configuration allows; the first that fails cancels
        the others."""
        turns = asyncio.Semaphore(self._handle.parallelism)

        async def in_turn(call: Coroutine[Any, Any, object]) -> None:
            try:
                async with turns:
                    await call
            finally:
                call.close()

        tasks = [asyncio.ensure_future(in_turn(call)) for call in calls]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _now(self) -> datetime:
        # Times in the API have whole seconds.
        return datetime.fromtimestamp(self._handle.clock.now_ns() // NANOSECONDS, UTC)
