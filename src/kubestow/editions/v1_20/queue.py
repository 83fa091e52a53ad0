"""The queue of v1.17 to v1.20: two counters decide where a failed pod goes (spec 02 §19.1).

    add ──► ACTIVE ── pop ──► (being tried) ── fails ──► moved meanwhile?
              ▲                                            │ yes      │ no
              ├──── the wait is over ───── BACKOFF ◄───────┤          ▼
              └──── any event, an update, 60 s ────────────┴── UNSCHEDULABLE

The scheduling cycle counts pops. Every move request stores the cycle it came in, also if it moves
no pod. A pod that fails in cycle c while the stored cycle is c or later missed a move, so it only
backs off; otherwise it parks. The failure of a binding comes in a later cycle and may miss its move
until the next event, as in that release.

No gates, no hints, no tracking of pods in flight: any event moves every parked pod. Methods of the
protocol that did not exist then do nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, cast

import msgspec

from kubestow.api.meta import object_ref
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodStatus, key_of
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import StorageClass
from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import QueueError
from kubestow.framework.events import Action, ClusterEvent, Resource
from kubestow.queue.active import SortKeyFunction
from kubestow.queue.backoff import INITIAL_BACKOFF_NS, MAX_BACKOFF_NS, BackoffPolicy
from kubestow.queue.heap import KeyedHeap
from kubestow.queue.metrics import (
    ACTIVE,
    BACKOFF,
    BACKOFF_COMPLETE,
    NO_METRICS,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE,
    QueueMetrics,
)
from kubestow.queue.moves import Place
from kubestow.queue.nominator import Nominator, PodLister
from kubestow.queue.protocol import PreCheck, QueueStatistics
from kubestow.queue.queued_pod import QueuedPod

_LOG: Final = logging.getLogger(__name__)

MAX_UNSCHEDULABLE_NS: Final = 60 * NANOSECONDS
BACKOFF_FLUSH_S: Final = 1
LEFTOVER_FLUSH_S: Final = 30

_POD_ADD: Final = "PodAdd"
_TIMEOUT: Final = "UnschedulableTimeout"


class SchedulingQueue120:
    """Containers: active, backing off, parked. A key is in at most one of them."""

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: SortKeyFunction,
        pod_lister: PodLister,
        initial_backoff_ns: int = INITIAL_BACKOFF_NS,
        max_backoff_ns: int = MAX_BACKOFF_NS,
        metrics: QueueMetrics = NO_METRICS,
    ) -> None:
        self._clock = clock
        self._metrics = metrics
        self._policy = BackoffPolicy(initial_ns=initial_backoff_ns, max_ns=max_backoff_ns)
        self._active: KeyedHeap[QueuedPod] = KeyedHeap(
            sort_key=sort_key, count_changed=lambda delta: metrics.pending_changed(ACTIVE, delta)
        )
        self._backoff: KeyedHeap[QueuedPod] = KeyedHeap(
            sort_key=self.backoff_expiry_ns,
            count_changed=lambda delta: metrics.pending_changed(BACKOFF, delta),
        )
        self._parked: dict[str, QueuedPod] = {}
        self.nominator = Nominator120(find=self._find_pod_info, pod_lister=pod_lister)
        self._scheduling_cycle = 0
        self._move_request_cycle = -1
        self._is_closed = False
        self._poppable = asyncio.Event()
        self._timers: list[asyncio.Task[None]] = []

    # --- Adding and deleting ------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        if pod.spec.scheduling_gates:
            return  # Later than these versions: the API server refuses to bind such a pod.
        key = key_of(pod)
        self._active.add_or_update(key, self._new_record(pod))
        if self._unpark(key) is not None:
            _LOG.error("pod %s is already in the unschedulable queue", key)
        if self._backoff.discard(key) is not None:
            _LOG.error("pod %s is already in the podBackoff queue", key)
        self._metrics.incoming(ACTIVE, _POD_ADD)
        self.nominator.add(pod)
        self._poppable.set()

    def update(self, old: Pod, new: Pod) -> None:
        """Replace the pod by a newer version; a parked pod moves unless only its status changed."""
        key = key_of(new)
        if (queued_pod := self._active.get(key)) is not None:
            self._swap_pod(queued_pod, old, new)
            self._active.add_or_update(key, queued_pod)
        elif (queued_pod := self._backoff.discard(key)) is not None:
            self._swap_pod(queued_pod, old, new)
            self._activate(queued_pod)
        elif (queued_pod := self._parked.get(key)) is not None:
            self._swap_pod(queued_pod, old, new)
            if _without_status(old) != _without_status(new):
                self._unpark(key)
                self._activate(queued_pod)
        elif not new.spec.scheduling_gates:
            self._active.add_or_update(key, self._new_record(new))
            self.nominator.add(new)
            self._poppable.set()

    def delete(self, pod: Pod) -> None:
        self.nominator.delete(pod)
        key = key_of(pod)
        if self._active.discard(key) is None:
            self._backoff.discard(key)
            self._unpark(key)

    # --- Attempts -----------------------------------------------------------------------------

    async def pop(self) -> QueuedPod | None:
        """Wait for the next pod to try; None once the queue is closed.

        Upstream returns an error then, `scheduling queue is closed`; its caller only logs it.
        """
        while not self._is_closed:
            queued_pod = self.pop_nowait()
            if queued_pod is not None:
                return queued_pod
            self._poppable.clear()
            await self._poppable.wait()
        _LOG.info("scheduling queue is closed")
        return None

    def pop_nowait(self) -> QueuedPod | None:
        if not self._active:
            return None
        queued_pod = self._active.pop()
        queued_pod.attempts += 1
        self._scheduling_cycle += 1
        return queued_pod

    def done(self, uid: str) -> None:
        """Pods being tried are not tracked."""

    def add_unschedulable_if_not_present(self, queued_pod: QueuedPod) -> None:
        key, name = queued_pod.key, object_ref(queued_pod.pod.metadata)
        if key in self._parked:
            raise QueueError(f"pod: {name} is already present in unschedulable queue")
        # Before the other checks, a known defect of that release: a pod that is active already
        # loses its place in the order.
        queued_pod.timestamp_ns = self._clock.now_ns()
        if key in self._active:
            raise QueueError(f"pod: {name} is already present in the active queue")
        if key in self._backoff:
            raise QueueError(f"pod {name} is already present in the backoff queue")
        if self._move_request_cycle >= self._scheduling_cycle:
            self._backoff.add_or_update(key, queued_pod)
            self._metrics.incoming(BACKOFF, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._park(queued_pod)
            self._metrics.incoming(UNSCHEDULABLE, SCHEDULE_ATTEMPT_FAILURE)
        self.nominator.add(queued_pod.pod)

    # --- Moves --------------------------------------------------------------------------------

    def move_all(
        self, event: ClusterEvent, old: object, new: object, pre_check: PreCheck | None = None
    ) -> None:
        """Move all parked pods, if the event moved pods in that release."""
        label = label_1_20(event, old, new)
        if label is None:
            return
        if label in _ASSIGNED_LABELS:
            self._move_with_affinity_to(cast(Pod, new), label)
            return
        parked = list(self._parked.values())
        if pre_check is not None:
            parked = [queued_pod for queued_pod in parked if pre_check(queued_pod.pod)]
        self._move(parked, label)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Plugins could not request it then."""

    def flush_backoff_completed(self) -> None:
        while (head := self._backoff.peek()) is not None:
            if self.backoff_expiry_ns(head) > self._clock.now_ns():
                return
            queued_pod = self._backoff.pop()
            self._metrics.incoming(ACTIVE, BACKOFF_COMPLETE)
            self._activate(queued_pod)

    def flush_unschedulable_leftover(self) -> None:
        now_ns = self._clock.now_ns()
        parked = [
            queued_pod
            for queued_pod in self._parked.values()
            if now_ns - queued_pod.timestamp_ns > MAX_UNSCHEDULABLE_NS
        ]
        if parked:
            self._move(parked, _TIMEOUT)

    # --- Running ------------------------------------------------------------------------------

    async def run_timers(self) -> None:
        """Flush periodically until the queue is closed."""
        if self._is_closed:
            return
        async with asyncio.TaskGroup() as group:
            self._timers = [
                group.create_task(_flush_periodically(flush, pause_s))
                for flush, pause_s in (
                    (self.flush_backoff_completed, BACKOFF_FLUSH_S),
                    (self.flush_unschedulable_leftover, LEFTOVER_FLUSH_S),
                )
            ]

    def close(self) -> None:
        if self._is_closed:
            raise QueueError("cannot close the scheduling queue: it is closed already")
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        self._poppable.set()

    # --- Reading ------------------------------------------------------------------------------

    @property
    def scheduling_cycle(self) -> int:
        """How many pods were popped."""
        return self._scheduling_cycle

    @property
    def move_request_cycle(self) -> int:
        """The cycle in which pods were last asked to move; -1 before that."""
        return self._move_request_cycle

    def backoff_expiry_ns(self, queued_pod: QueuedPod) -> int:
        """When the pod's wait ends; every attempt counts, also those with errors."""
        if not queued_pod.attempts:
            return queued_pod.timestamp_ns
        return queued_pod.timestamp_ns + self._policy.duration_ns(queued_pod.attempts)

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            active=len(self._active),
            backoff=len(self._backoff),
            error_backoff=0,
            unschedulable=len(self._parked),
            gated=0,
            in_flight=0,
            in_flight_events=0,
            nominated=len(self.nominator),
        )

    def pending_pods(self) -> tuple[list[Pod], str]:
        """All waiting pods. There was no summary then."""
        waiting = (*self._active, *self._backoff, *self._parked.values())
        return [queued_pod.pod for queued_pod in waiting], ""

    def get_pod(self, name: str, namespace: str) -> QueuedPod | None:
        key = f"{namespace}/{name}"
        return self._backoff.get(key) or self._parked.get(key) or self._active.get(key)

    def place_of(self, pod: Pod) -> Place | None:
        key = key_of(pod)
        if key in self._active:
            return Place.ACTIVE
        if key in self._backoff:
            return Place.BACKOFF
        return Place.UNSCHEDULABLE if key in self._parked else None

    # --- Inside -------------------------------------------------------------------------------

    def _new_record(self, pod: Pod) -> QueuedPod:
        queued_pod = QueuedPod(PodInfo(pod), timestamp_ns=self._clock.now_ns())
        queued_pod.initial_attempt_ns = queued_pod.timestamp_ns
        return queued_pod

    def _swap_pod(self, queued_pod: QueuedPod, old: Pod, new: Pod) -> None:
        self.nominator.update(old, new)
        queued_pod.pod_info = PodInfo(new)

    def _find_pod_info(self, key: str) -> PodInfo | None:
        found = self._active.get(key) or self._parked.get(key) or self._backoff.get(key)
        return None if found is None else found.pod_info

    def _activate(self, queued_pod: QueuedPod) -> None:
        self._active.add_or_update(queued_pod.key, queued_pod)
        self._poppable.set()

    def _park(self, queued_pod: QueuedPod) -> None:
        self._parked[queued_pod.key] = queued_pod
        self._metrics.pending_changed(UNSCHEDULABLE, 1)

    def _unpark(self, key: str) -> QueuedPod | None:
        queued_pod = self._parked.pop(key, None)
        if queued_pod is not None:
            self._metrics.pending_changed(UNSCHEDULABLE, -1)
        return queued_pod

    def _move(self, parked: Iterable[QueuedPod], label: str) -> None:
        for queued_pod in parked:
            self._unpark(queued_pod.key)
            # Unlike today, the wait is over at the expiry itself.
            if self.backoff_expiry_ns(queued_pod) > self._clock.now_ns():
                self._backoff.add_or_update(queued_pod.key, queued_pod)
                self._metrics.incoming(BACKOFF, label)
            else:
                self._metrics.incoming(ACTIVE, label)
                self._activate(queued_pod)
        self._move_request_cycle = self._scheduling_cycle

    def _move_with_affinity_to(self, pod: Pod, label: str) -> None:
        """Move the parked pods with a required affinity term that selects this assigned pod."""
        matching = [
            queued_pod
            for queued_pod in self._parked.values()
            if _has_affinity_to(queued_pod.pod_info, pod)
        ]
        self._move(matching, label)


class Nominator120(Nominator):
    """An empty override means the status; if that is empty, too, there is no nomination."""

    def add(self, pod: Pod, *, override: str | None = None) -> None:
        self.delete(pod)
        node_name = override or pod.status.nominated_node_name
        meta = pod.metadata
        # The pod must exist; unlike today it may already have a node.
        if node_name and self._pod_lister(meta.namespace, meta.name) is not None:
            self._put(pod, node_name)


def label_1_20(event: ClusterEvent, old: object, new: object) -> str | None:
    """The name of an event in v1.20; None for one that moved no pods."""
    if event.resource == Resource.NODE and isinstance(old, Node) and isinstance(new, Node):
        return _node_update_label(old, new)
    if event.resource == Resource.STORAGE_CLASS:
        waits = isinstance(new, StorageClass) and new.volume_binding_mode == "WaitForFirstConsumer"
        return "StorageClassAdd" if event.action == Action.ADD and waits else None
    kind = _KINDS.get(event.resource)
    if kind is None:
        return None
    for action, word in _ACTIONS:
        if event.action & action and word in kind.words:
            return kind.prefix + word
    return None


class _Kind(msgspec.Struct, frozen=True):
    prefix: str
    words: tuple[str, ...]


_ACTIONS: Final = ((Action.ADD, "Add"), (Action.UPDATE, "Update"), (Action.DELETE, "Delete"))
_KINDS: Final = {
    Resource.ASSIGNED_POD: _Kind("AssignedPod", ("Add", "Update", "Delete")),
    Resource.NODE: _Kind("Node", ("Add",)),
    Resource.PERSISTENT_VOLUME: _Kind("Pv", ("Add", "Update")),
    Resource.PERSISTENT_VOLUME_CLAIM: _Kind("Pvc", ("Add", "Update")),
    Resource.CSI_NODE: _Kind("CSINode", ("Add", "Update")),
    "Service": _Kind("Service", ("Add", "Update", "Delete")),
}
_ASSIGNED_LABELS: Final = frozenset(("AssignedPodAdd", "AssignedPodUpdate"))


def _node_update_label(old: Node, new: Node) -> str | None:
    """One event per update, the first of these that holds."""
    if old.spec.unschedulable and not new.spec.unschedulable:
        return "NodeSpecUnschedulableChange"
    if old.status.allocatable != new.status.allocatable:
        return "NodeAllocatableChange"
    if old.metadata.labels != new.metadata.labels:
        return "NodeLabelChange"
    if old.spec.taints != new.spec.taints:
        return "NodeTaintChange"
    old_conditions = {entry.type: entry.status for entry in old.status.conditions}
    if old_conditions != {entry.type: entry.status for entry in new.status.conditions}:
        return "NodeConditionChange"
    return None


def _has_affinity_to(waiting: PodInfo, pod: Pod) -> bool:
    return any(
        pod.metadata.namespace in term.namespaces and term.selector.matches(pod.metadata.labels)
        for term in waiting.required_affinity_terms
    )


def _without_status(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(
        pod.metadata, resource_version="", generation=0, finalizers=()
    )
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())


async def _flush_periodically(flush: Callable[[], None], pause_s: float) -> None:
    while True:
        flush()
        await asyncio.sleep(pause_s)
