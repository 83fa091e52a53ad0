"""Evicts the victims beside the scheduling loop (spec 08 A10).

    marked ── nominations cleared ── all victims but the last evicted ── the last ─┬─ unmarked
       │                                                 deletions not seen yet:   │      ▲
       │                                                 wait for the watch        └──────┤
       └────────────── any failure: the preemptor is activated, to try again ─────────────┘

While a pod is marked its PreEnqueue holds it back: tried too early, it would find its victims still
there and preempt elsewhere. The last victim is evicted alone and noted: its deletion is the event
that queues the pod again, and may arrive before the mark is removed.

Beyond upstream, a pod stays marked until its victims' deletions were seen. Upstream's watches run
in parallel with its cycles and are seldom behind the answers to its requests; here both share one
loop, and a preemptor that is tried in between evicts pods for the second time.

An event that came while the pod was held back is lost to it. So at the end the pod is activated if
no other can follow: all victims are gone, for example because another preemptor had evicted them.

A scheduling cycle never waits. So without SchedulerAsyncPreemption victims are evicted beside the
loop as well, without a mark and in the order of that mode; a failure is then only logged, because
the cycle that would report it is over.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from itertools import compress
from typing import Any, Final, NamedTuple

from kubestow.api.meta import ApiObject, Condition, object_ref
from kubestow.api.pod import Pod, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS
from kubestow.cluster.pod_status import changed_condition
from kubestow.errors import KubestowError, NotFoundError
from kubestow.framework.handle import Handle
from kubestow.plugins.default_preemption.deletions import Deletions
from kubestow.plugins.default_preemption.eligibility import (
    DISRUPTION_TARGET,
    PREEMPTION_BY_SCHEDULER,
)

log = logging.getLogger(__name__)

IN_MEMORY: Final = " (in kube-scheduler memory)."


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
    """Pods to evict from a node, and the preemptor. Victims being deleted already are left out."""

    preemptor: Preemptor
    node_name: str
    victims: Sequence[Pod]


class _Mark:
    """A preemptor is held back until the deletion of the pods awaited was seen.

    None are awaited yet (`awaited` is None) as long as some evictions were not requested.
    """

    __slots__ = ("awaited", "has_held_back")

    def __init__(self) -> None:
        self.awaited: Sequence[Pod] | None = None
        # Whether the last event that would have queued the preemptor came too early.
        self.has_held_back = False


class Executor:
    def __init__(self, plugin_name: str, handle: Handle, *, is_async: bool) -> None:
        self._plugin_name = plugin_name
        self._handle = handle
        self._is_async = is_async
        self._marks: dict[str, _Mark] = {}  # by UID of the preemptor
        self._deletions = Deletions(handle.objects.pods)

    def evict(self, preemptor: Preemptor, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Start the eviction of the victims; returns at once."""
        staying = [victim.pod for victim in victims if not is_terminating(victim.pod)]
        if staying or not self._is_async:
            self._handle.metrics.preemption_actuated(len(victims))
        eviction = Eviction(preemptor, node_name, staying)
        self._handle.groups.start_leaving(staying)
        if not self._is_async:
            self._handle.spawn(self._evict_at_once(eviction))
        elif staying:
            mark = self._marks[preemptor.uid] = _Mark()
            self._handle.spawn(self._evict_in_background(eviction, mark))

    def is_preempting(self, uid: str) -> bool:
        """Whether this preemptor should wait: the deletion of some victim was not seen yet."""
        mark = self._marks.get(uid)
        if mark is None:
            return False
        mark.has_held_back = mark.awaited is None or not all(
            map(self._deletions.is_seen, mark.awaited)
        )
        return mark.has_held_back

    # --- the two orders ---

    async def _evict_in_background(self, eviction: Eviction, mark: _Mark) -> None:
        *others, last = eviction.victims
        must_activate = True
        try:
            is_cleared = await self._clear_nominations(eviction)
            are_deleted = await _all_or_first_error(
                self._evict_one(eviction, victim) for victim in others
            )
            mark.awaited = (last,)
            are_deleted.append(await self._evict_one(eviction, last))
            if is_cleared:
                mark.awaited = [*compress(eviction.victims, are_deleted)]
                must_activate = await self._has_lost_event(mark, eviction.victims)
                must_activate &= not eviction.preemptor.is_member
        except Exception as error:  # After any failure the preemptor tries again.
            self._log(eviction, error)
        finally:
            uid = eviction.preemptor.uid
            # Held back no longer, the preemptor may have begun another eviction meanwhile.
            if self._marks.get(uid) is mark:
                del self._marks[uid]
            self._handle.groups.stop_leaving(eviction.victims)
            self._handle.metrics.preemption_task_ended()
        if must_activate:
            # Some victims stay, or all are gone: no event may come that would queue the pod again.
            self._handle.activate(eviction.preemptor.pods)

    async def _has_lost_event(self, mark: _Mark, victims: Sequence[Pod]) -> bool:
        """Wait until all deletions were seen; whether an event was lost that no other replaces."""
        assert mark.awaited is not None
        if all(map(self._deletions.is_seen, mark.awaited)):
            # The event of a victim that is still there will come.
            return mark.has_held_back and all(map(self._deletions.is_gone, victims))
        # So will those of the deletions that were not seen yet.
        mark.has_held_back = False
        await self._deletions.wait_seen(mark.awaited)
        return mark.has_held_back

    async def _evict_at_once(self, eviction: Eviction) -> None:
        try:
            await _all_or_first_error(
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
        """Clear the nominations of less important pods to this node; return whether all succeeded.

        A failed patch does not stop the other evictions.
        """
        nominated = self._handle.nominator.nominated_pods_for_node(eviction.node_name)
        less_important = [
            pod.pod for pod in nominated if pod.priority < eviction.preemptor.priority
        ]
        is_cleared = True
        for pod in less_important:
            if not pod.status.nominated_node_name:
                continue
            try:
                await self._handle.client.patch_pod_status(pod, nominated_node_name="")
            except Exception as error:  # As above.
                self._log(eviction, error)
                is_cleared = False
        return is_cleared

    async def _evict_one(self, eviction: Eviction, victim: Pod) -> bool:
        """Evict a victim; whether the API server deletes it or has done so already."""
        preemptor, note = eviction.preemptor, self._note(eviction)
        is_stopped = self._stop_placing(victim)
        if is_stopped:
            note += IN_MEMORY
        elif not await self._delete(eviction.preemptor, victim):
            return True
        self._handle.events.record(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=note,
            related=preemptor.related,
        )
        return not is_stopped

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

    async def _delete(self, preemptor: Preemptor, victim: Pod) -> bool:
        """Set the disruption condition, then delete the pod; False if it is gone already."""
        condition = Condition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{preemptor.scheduler_name}: preempting to accommodate a higher "
            f"priority {preemptor.kind}",
            observed_generation=victim.metadata.generation,
        )
        changed = changed_condition(victim, condition, now=self._now())
        client = self._handle.client
        try:
            if changed is not None:
                await client.patch_pod_status(victim, condition=changed)
            await client.delete_pod(victim)
        except NotFoundError:
            return False
        return True

    def _now(self) -> datetime:
        # Times in the API have whole seconds.
        return datetime.fromtimestamp(self._handle.clock.now_ns() // NANOSECONDS, UTC)


async def _all_or_first_error(calls: Iterable[Coroutine[Any, Any, bool]]) -> list[bool]:
    """The results of all, run at the same time; the first that fails cancels the others."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
