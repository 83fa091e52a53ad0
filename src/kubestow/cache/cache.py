"""The live state of the cluster: which pods are on which node, assumed pods included.

Event handlers and scheduling cycles change it; a cycle reads it only through a `Snapshot`.

States of a pod (spec 03 §3.1); what is not drawn is an error or has no effect:

                 assume                 add
      absent ------------> ASSUMED ------------> ADDED --+ update
        ^ ^                   |                    |  ^--+
        | +--- forget, remove-+                    |
        +------------------- remove ---------------+

Everything runs on one event loop, so there are no locks; no method waits.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from kubestow.api.meta import object_ref
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import Groups
from kubestow.cache.images import ImageStates
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.node_tree import NodeTree
from kubestow.cache.priorities import PriorityCounts
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.logs import ObjectName, fail

log = logging.getLogger(__name__)


class CacheStatistics(msgspec.Struct, frozen=True, kw_only=True):
    assumed_pods: int
    pods: int
    nodes: int


class CacheDump(NamedTuple):
    """All entries of the cache, ghosts included."""

    nodes: dict[str, NodeInfo]
    assumed_pods: frozenset[str]


class Cache:
    """Pods by node.

    Invariants: every key of `_assumed` is a key of `_pods`; `nodes` is in strictly rising order of
    generation; only nodes with a Node object are in `node_tree`.
    """

    # What is derived from a pod; a later version counts pods that are resized in another way.
    info_of: Callable[[Pod], PodInfo] = PodInfo

    def __init__(self, groups: Groups | None = None) -> None:
        """`groups` follows the pods of groups; None where pods are scheduled one by one."""
        self.groups = groups
        self._pods: dict[str, PodInfo] = {}
        self._assumed: set[str] = set()
        # The recency list: the entry that changed last is at the end. Others only read it.
        self.nodes: OrderedDict[str, NodeInfo] = OrderedDict()
        self.node_tree = NodeTree()
        self.image_states = ImageStates()
        self.priorities = PriorityCounts()
        # Called with an entry before it changes, while a snapshot is held.
        self.before_change: Callable[[NodeInfo], None] | None = None

    # --- reading ---

    def node_count(self) -> int:
        return len(self.nodes)

    def statistics(self) -> CacheStatistics:
        return CacheStatistics(
            assumed_pods=len(self._assumed), pods=len(self._pods), nodes=len(self.nodes)
        )

    def dump(self) -> CacheDump:
        return CacheDump(dict(self.nodes), frozenset(self._assumed))

    def node(self, name: str) -> NodeInfo:
        info = self.nodes.get(name)
        if info is None:
            raise CacheError(f"node {name} does not exist in scheduler cache")
        return info

    def pod(self, pod: Pod) -> PodInfo:
        cached = self._pods.get(self._key(pod))
        if cached is None:
            raise CacheError(f"pod {self._describe(pod)} does not exist in scheduler cache")
        return cached

    def is_assumed(self, pod: Pod) -> bool:
        return self._key(pod) in self._assumed

    # --- pods ---

    def assume_pod(self, pod: PodInfo) -> None:
        """Count the pod on `spec.nodeName` before the API server has bound it."""
        key = pod.uid or self._key(pod.pod)
        if key in self._pods:
            raise CacheError(f"pod {self._describe(pod.pod)} is in the cache, so can't be assumed")
        self._put_on_node(pod)
        self._pods[key] = pod
        self._assumed.add(key)
        if self.groups is not None:
            self.groups.assume(pod.pod)

    def forget_pod(self, pod: Pod) -> None:
        """Undo `assume_pod`; no effect on a pod that is not in the cache."""
        key = self._key(pod)
        cached = self._pods.get(key)
        if cached is None:
            return
        cached_node = cached.pod.spec.node_name
        if cached_node != pod.spec.node_name:
            raise CacheError(
                f"pod {self._describe(pod)} was assumed on {pod.spec.node_name} "
                f"but assigned to {cached_node}"
            )
        if key not in self._assumed:
            raise CacheError(f"pod {self._describe(pod)} wasn't assumed so cannot be forgotten")
        self._remove(cached.pod)
        if self.groups is not None:
            self.groups.forget(cached.pod)

    def add_pod(self, pod: PodInfo) -> None:
        """The API server shows the pod on a node: a new pod, or an assumed one confirmed."""
        key = self._key(pod.pod)
        cached = self._pods.get(key)
        if cached is None:
            self._add(pod)
            if self.groups is not None:
                self.groups.add(pod.pod)
            return
        if key not in self._assumed:
            raise CacheError(f"pod {self._describe(pod.pod)} was already in added state")
        assumed = cached.pod
        if assumed.spec.node_name != pod.pod.spec.node_name:
            log.info(
                "Pod was added to a different node than it was assumed: pod %s, from %s to %s",
                object_ref(assumed.metadata),
                assumed.spec.node_name,
                pod.pod.spec.node_name,
            )
        try:
            if not self._renew(cached, pod):
                self._remove(assumed)
                self._add(pod)
        except CacheError as error:
            # Spec 03 §3.1, notes: logged only, and the pod stays assumed.
            log.error("Error occurred while updating pod: %s", error)
            return
        if self.groups is not None:
            self.groups.remove(assumed)
            self.groups.add(pod.pod)

    def update_pod(self, old: Pod, new: PodInfo) -> None:
        key = self._key(old)
        cached = self._pods.get(key)
        if cached is None:
            raise CacheError(
                f"pod {self._describe(old)} is not added to scheduler cache, so cannot be updated"
            )
        if key in self._assumed:
            raise CacheError(f"assumed pod {self._describe(old)} should not be updated")
        if cached.pod.spec.node_name != new.pod.spec.node_name:
            raise CacheCorruptedError(
                "Pod updated on a different node than previously added to. Scheduler cache is "
                "corrupted and can badly affect scheduling decisions: "
                + _contradiction(cached.pod, new.pod)
            )
        # It is removed where the old object says, which may be another node.
        is_there = old.spec.node_name == cached.pod.spec.node_name
        if not (is_there and self._renew(cached, new)):
            self._remove(old)
            self._add(new)
        if self.groups is not None:
            self.groups.remove(old)
            self.groups.add(new.pod)

    def remove_pod(self, pod: Pod) -> None:
        """Remove the cached object, so that a stale event still frees the right node."""
        cached = self._pods.get(self._key(pod))
        if cached is None:
            raise CacheError(
                f"pod {self._describe(pod)} is not found in scheduler cache, "
                "so cannot be removed from it"
            )
        if cached.pod.spec.node_name != pod.spec.node_name:
            fail(
                log,
                "Pod was added to a different node than it was assumed",
                podKey=pod.metadata.uid,
                pod=ObjectName(pod.metadata.namespace, pod.metadata.name),
                assumedNode=pod.spec.node_name,
                currentNode=cached.pod.spec.node_name,
            )
            if pod.spec.node_name:
                raise CacheCorruptedError(
                    "Scheduler cache is corrupted and can badly affect scheduling decisions: "
                    + _contradiction(cached.pod, pod)
                )
        self._remove(cached.pod)
        if self.groups is not None:
            self.groups.remove(cached.pod)

    # --- nodes ---

    def add_node(self, node: Node) -> NodeInfo:
        info = self.nodes.get(node.metadata.name)
        if info is None:
            info = self._new_node(node.metadata.name)
        elif info.node is not None:
            self.image_states.unregister(info.node)
        self.node_tree.add(node)
        self._set_node(info, node)
        return info

    def update_node(self, old: Node | None, new: Node) -> NodeInfo:
        info = self.nodes.get(new.metadata.name)
        if info is None:
            info = self._new_node(new.metadata.name)
            self.node_tree.add(new)
        elif info.node is not None:
            self.image_states.unregister(info.node)
        self.node_tree.update(old, new)
        self._set_node(info, new)
        return info

    def remove_node(self, node: Node) -> None:
        """The Node object is gone; its entry stays as a ghost while pods are on it."""
        name = node.metadata.name
        info = self.nodes.get(name)
        if info is None:
            raise CacheError(f"node {name} is not found")
        self._announce(info)
        info.remove_node()
        if info.pods:
            self.nodes.move_to_end(name)
        else:
            del self.nodes[name]
        self.node_tree.remove(node)
        self.image_states.unregister(node)

    # --- inside ---

    def _new_node(self, name: str) -> NodeInfo:
        info = self.nodes[name] = NodeInfo(name)
        return info

    def _set_node(self, info: NodeInfo, node: Node) -> None:
        self._announce(info)
        info.images = self.image_states.register(node)
        info.set_node(node)
        self.nodes.move_to_end(info.name)

    def _announce(self, info: NodeInfo) -> None:
        if self.before_change is not None:
            self.before_change(info)

    def _key(self, pod: Pod) -> str:
        uid = pod.metadata.uid
        if not uid:
            raise CacheError("cannot get cache key for pod with empty UID")
        return uid

    def _describe(self, pod: Pod) -> str:
        return f"{pod.metadata.uid}({object_ref(pod.metadata)})"

    def _add(self, pod: PodInfo) -> None:
        self._put_on_node(pod)
        self._pods[pod.uid] = pod

    def _put_on_node(self, pod: PodInfo) -> None:
        name = pod.pod.spec.node_name
        info = self.nodes.get(name)
        if info is None:
            # Pods and nodes come by different watches, so the pod may come before its node.
            info = self._new_node(name)
        # As `_announce`, without a call: this is done for every pod.
        if self.before_change is not None:
            self.before_change(info)
        info.add_pod(pod)
        # As `priorities.add`, without a call: mostly another pod has this priority.
        priority, counts = pod.priority, self.priorities.counts
        if priority in counts:
            counts[priority] += 1
        else:
            self.priorities.add(priority)
        self.nodes.move_to_end(name)

    def _remove(self, pod: Pod) -> None:
        self._take_from_node(pod)
        self._drop(pod.metadata.uid)

    def _take_from_node(self, pod: Pod) -> None:
        name = pod.spec.node_name
        info = self.nodes.get(name)
        if info is None:
            self._report_missing_node(name, pod)
            return
        self._announce(info)
        self.priorities.remove(info.remove_pod(pod).priority)
        if info.node is None and not info.pods:
            del self.nodes[name]
        else:
            self.nodes.move_to_end(name)

    def _renew(self, known: PodInfo, pod: PodInfo) -> bool:
        """Replace a pod, which may be assumed, by the version that the API server shows.

        False if it may count in another way: it has to be removed and added then.
        """
        info = self.nodes.get(pod.pod.spec.node_name)
        # Nearly every pod comes back as it was assumed, and its statuses count nothing: it needs
        # not be counted again.
        is_plain = not pod.has_affinity and not known.host_ports and pod.uid == known.uid
        # The entry of a ghost goes with its last pod, and is made again.
        if info is None or info.node is None or not is_plain or not pod.derive_as(known):
            return False
        self._announce(info)
        info.renew_pod(pod)
        self.nodes.move_to_end(info.name)
        self._drop(pod.uid)
        self._pods[pod.uid] = pod
        return True

    def _report_missing_node(self, name: str, pod: Pod) -> None:
        text = "Node not found when trying to remove pod: node %s, pod %s"
        log.error(text, name, pod.metadata.uid)

    def _drop(self, key: str) -> None:
        self._pods.pop(key, None)
        self._assumed.discard(key)


def _contradiction(cached: Pod, reported: Pod) -> str:
    return (
        f"pod {object_ref(cached.metadata)} (UID {cached.metadata.uid}) is on node "
        f'"{cached.spec.node_name}" in the cache and on "{reported.spec.node_name}" in the cluster'
    )
