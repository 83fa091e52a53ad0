"""What happens in the queue when groups are reported (spec 12 §14.9)."""

from kubestow.api.group import GroupKey, TreeNode
from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.editions.v1_37.queue.group_queue import GroupQueue
from kubestow.engine.handlers import EventHandlers
from kubestow.framework.events import Action, ClusterEvent, Resource

_GROUPS = (Resource.POD_GROUP, Resource.COMPOSITE_POD_GROUP)


class GroupHandlers(EventHandlers):
    def _queue_delete(self, pod: Pod) -> None:
        started_s = self._metrics.now_s()
        self._queue.delete(pod)
        if self._is_assumed(pod):
            self._assumed_deleted(pod)
        else:
            if self._cache.groups is not None:
                self._cache.groups.remove(pod)
            if pod.status.nominated_node_name:
                self._nomination_ended(pod)
        self._metrics.event_handled(self._events.deleted, started_s)

    def _assumed_deleted(self, pod: Pod) -> None:
        """As upstream, a member that waits at Permit stays counted: it is only forgotten."""
        is_waiting = self._waiting_pods.get(pod.metadata.uid) is not None
        super()._assumed_deleted(pod)
        if self._cache.groups is not None and not is_waiting:
            self._cache.groups.remove(pod)

    def object_changed(self, resource: str, old: ApiObject | None, new: ApiObject | None) -> None:
        queue, subject = self._queue, old if new is None else new
        if resource in _GROUPS and isinstance(queue, GroupQueue) and subject is not None:
            meta, is_composite = subject.metadata, resource == Resource.COMPOSITE_POD_GROUP
            node = TreeNode(GroupKey(meta.namespace, meta.name), is_composite)
            if new is None:
                queue.group_gone(node)
            elif old is None:
                queue.group_known(node, ClusterEvent(resource, Action.ADD).label)
        super().object_changed(resource, old, new)
