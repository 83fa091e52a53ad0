"""What happens when the API server reports a change (spec 03 §11).

Each handler first brings the cache up to date, then passes the event to the queue. A cache error is
logged, and the queue still gets the event. Handlers run on the event loop, one event at a time, in
the order of each watch.
"""

import logging
from collections.abc import Collection, Iterable

from kubestow.api.meta import ApiObject, object_ref
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_assigned, is_terminating, priority_of
from kubestow.cache.cache import Cache
from kubestow.engine.metrics import NO_SCHEDULER_METRICS, SchedulerMetrics
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.framework.classify import POD_EVENTS, PodEvents
from kubestow.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    NODE_ADD,
    NODE_DELETE,
    Action,
    ClusterEvent,
)
from kubestow.framework.waiting import WaitingPods
from kubestow.queue import Queue

log = logging.getLogger(__name__)


class EventHandlers:
    def __init__(
        self,
        cache: Cache,
        queue: Queue,
        waiting_pods: WaitingPods,
        profile_names: Collection[str],
        metrics: SchedulerMetrics = NO_SCHEDULER_METRICS,
        *,
        new_pods_wake_others: bool = False,
        pod_events: PodEvents = POD_EVENTS,
    ) -> None:
        """`new_pods_wake_others`: a pod without a node may complete a gang that waits."""
        self._events = pod_events
        self._cache = cache
        self._queue = queue
        self._waiting_pods = waiting_pods
        self._profile_names = profile_names
        self._metrics = metrics
        self._new_pods_wake_others = new_pods_wake_others

    # --- pods (§11.4) ---

    def pod_added(self, pod: Pod) -> None:
        if is_assigned(pod):
            self._cache_add(pod)
        elif self._is_responsible(pod):
            started_s = self._metrics.now_s()
            if self._cache.groups is not None:
                self._cache.groups.add(pod)
            self._queue.add(pod)
            if self._new_pods_wake_others:
                self._queue.move_all(self._events.added, None, pod)
            self._metrics.event_handled(self._events.added, started_s)

    def pod_updated(self, old: Pod, new: Pod) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Deleted and made again under its name while the watch was broken. Upstream updates
            # one with the other, and ends its process if their nodes differ.
            self.pod_deleted(old)
            self.pod_added(new)
        elif is_assigned(old):
            self._cache_update(old, new)
        elif is_assigned(new):
            self._cache_add(new)
            if self._is_responsible(old):
                started_s = self._metrics.now_s()
                self._queue.delete(old)
                self._metrics.event_handled(self._events.deleted, started_s)
        elif self._is_responsible(old):
            self._queue_update(old, new)

    def pod_deleted(self, pod: Pod) -> None:
        if is_assigned(pod):
            self._cache_delete(pod)
        elif self._is_responsible(pod):
            self._queue_delete(pod)

    def pod_deleted_unseen(self, last_known: Pod) -> None:
        """The pod was deleted while the watch was broken: its final state is not known."""
        self._cache_delete(last_known)
        if self._is_responsible(last_known):
            self._queue_delete(last_known)

    def _is_responsible(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profile_names

    def _cache_add(self, pod: Pod) -> None:
        started_s = self._metrics.now_s()
        try:
            self._cache.add_pod(self._cache.info_of(pod))
        except CacheError as error:
            _report("AddPod", error)
        self._queue.move_all(ASSIGNED_POD_ADD, None, pod)
        self._metrics.event_handled(ASSIGNED_POD_ADD, started_s)

    def _cache_update(self, old: Pod, new: Pod) -> None:
        started_s = self._metrics.now_s()
        try:
            self._cache.update_pod(old, self._cache.info_of(new))
        except CacheError as error:
            _report("UpdatePod", error)
        self._move_for_each(self._events.of_update(old, new), old, new, started_s)
        self._metrics.event_handled(ASSIGNED_POD_UPDATE, started_s)

    def _cache_delete(self, pod: Pod) -> None:
        started_s = self._metrics.now_s()
        try:
            self._cache.remove_pod(pod)
        except CacheError as error:
            _report("RemovePod", error)
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        self._metrics.event_handled(ASSIGNED_POD_DELETE, started_s)

    def _queue_update(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        started_s = self._metrics.now_s()
        self._apply_queue_update(old, new)
        for event in self._events.of_update(old, new):
            if event != self._events.updated:
                self._metrics.event_handled(event, started_s)
        self._metrics.event_handled(self._events.updated, started_s)

    def _apply_queue_update(self, old: Pod, new: Pod) -> None:
        if self._cache.groups is not None:
            self._cache.groups.update(old, new)
        if self._is_assumed(new):
            if is_terminating(new) and not is_terminating(old):
                self._assumed_deleted(new)
            return
        self._queue.update(old, new)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._nomination_ended(old)

    def _queue_delete(self, pod: Pod) -> None:
        started_s = self._metrics.now_s()
        self._queue.delete(pod)
        if self._cache.groups is not None:
            self._cache.groups.remove(pod)
        if self._is_assumed(pod):
            self._assumed_deleted(pod)
        elif pod.status.nominated_node_name:
            self._nomination_ended(pod)
        self._metrics.event_handled(self._events.deleted, started_s)

    def _is_assumed(self, pod: Pod) -> bool:
        try:
            return self._cache.is_assumed(pod)
        except CacheError as error:
            log.error("cannot check if pod %s is assumed: %s", object_ref(pod.metadata), error)
            return False

    def _nomination_ended(self, pod: Pod) -> None:
        """Pods of the same or lower priority may fit on the node now."""
        priority = priority_of(pod)
        self._queue.move_all(
            ASSIGNED_POD_DELETE, pod, None, lambda waiting: priority_of(waiting) <= priority
        )

    def _assumed_deleted(self, pod: Pod) -> None:
        """An assumed pod that is not bound yet is being deleted."""
        try:
            assumed = self._cache.pod(pod)
        except CacheError:
            return
        if assumed.pod.spec.scheduler_name not in self._profile_names:
            log.error("No profile for assumed pod %s", object_ref(assumed.pod.metadata))
            return
        if not self._waiting_pods.reject(assumed.uid):
            try:
                self._cache.forget_pod(assumed.pod)
            except CacheError as error:
                _report("ForgetPod", error)
        self._queue.move_all(ASSIGNED_POD_DELETE, assumed.pod, None)

    # --- members of gangs that have succeeded; watched by choice only ---

    def pod_finished(self, pod: Pod) -> None:
        """The rest of its gang may be enough now."""
        groups = self._cache.groups
        assert groups is not None, pod
        if pod.status.phase != "Succeeded":
            return  # from a server that does not select
        groups.finish(pod)
        key = groups.key_of(pod)
        for pod_set in () if key is None else groups.pod_sets(key):
            members = groups.find(pod_set)
            if members is not None:
                self._queue.activate(members.unscheduled_pods())

    def finished_pod_deleted(self, pod: Pod) -> None:
        assert self._cache.groups is not None, pod
        self._cache.groups.forget_finished(pod)

    # --- nodes (§11.6) ---

    def node_added(self, node: Node) -> None:
        started_s = self._metrics.now_s()
        self._cache.add_node(node)
        self._queue.move_all(NODE_ADD, None, node)
        self._metrics.event_handled(NODE_ADD, started_s)

    def node_updated(self, old: Node, new: Node) -> None:
        started_s = self._metrics.now_s()
        self._cache.update_node(old, new)
        self._move_for_each(self._events.of_node_update(old, new), old, new, started_s)

    def node_deleted(self, node: Node) -> None:
        # The queue comes first, as upstream: hints may still see the node.
        started_s = self._metrics.now_s()
        self._queue.move_all(NODE_DELETE, node, None)
        try:
            self._cache.remove_node(node)
        except CacheError as error:
            _report("RemoveNode", error)
        self._metrics.event_handled(NODE_DELETE, started_s)

    # --- everything else (§11.7) ---

    def object_changed(self, resource: str, old: ApiObject | None, new: ApiObject | None) -> None:
        """Any other kind: the stores are up to date, only the queue gets the event."""
        action = Action.UPDATE
        if old is None:
            action = Action.ADD
        elif new is None:
            action = Action.DELETE
        started_s = self._metrics.now_s()
        event = ClusterEvent(resource, action)
        self._queue.move_all(event, old, new)
        self._metrics.event_handled(event, started_s)

    # --- counting (§11.8) ---

    def _move_for_each(
        self, events: Iterable[ClusterEvent], old: Pod | Node, new: Pod | Node, started_s: float
    ) -> None:
        """Pass every event to the queue. The time of each includes that of the cache update."""
        before_s = self._metrics.now_s() - started_s
        for event in events:
            move_started_s = self._metrics.now_s()
            self._queue.move_all(event, old, new)
            self._metrics.event_handled(event, move_started_s - before_s)


def _report(operation: str, error: CacheError) -> None:
    """Log that the cache refused an event; the queue still gets it."""
    if isinstance(error, CacheCorruptedError):
        raise error  # Going on would place pods wrongly; the process ends.
    log.error("Scheduler cache %s failed: %s", operation, error)
