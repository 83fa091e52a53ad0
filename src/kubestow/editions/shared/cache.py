"""The caches of v1.9, v1.17 and v1.20: assumed pods expire (spec 03 §14).

                 assume              add
      absent ------------> ASSUMED ---------> ADDED --+ update
        ^ ^                  |                  |  ^--+
        | +-- forget, expire-+                  |
        +--------------------- remove ----------+

v1.17 and v1.20 have other error texts. In v1.17 nodes are also visited in another order: the tree
continues where it ended the last time, so that after a node was added a snapshot can show one node
twice and another not at all.

Not here: the caller of the sweep (`editions.v1_9.engine`), what is the same in v1.36 (`cache`).
"""

import logging
from collections.abc import Sequence
from typing import Final

from kubestow.api.meta import object_ref
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import zone_key
from kubestow.cache.cache import Cache
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.node_tree import NodeTree
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import CacheCorruptedError, CacheError

log = logging.getLogger(__name__)

# Spec 03 §14.2: how long an assumed pod is kept after its binding ended; how often they are swept.
ASSUMED_POD_TTL_NS: Final = 30 * NANOSECONDS
EXPIRY_SWEEP_S: Final = 1.0

_CORRUPTED: Final = "Schedulercache is corrupted and can badly affect scheduling decisions"


class Cache19(Cache):
    """The cache of v1.9: as v1.36, but an assumed pod that is not confirmed in time is dropped.

    `_deadlines_ns` has the assumed pods whose binding has ended.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._deadlines_ns: dict[str, int] = {}

    def finish_binding(self, pod: Pod) -> None:
        """Start the time to live of an assumed pod."""
        key = self._key(pod)
        if key in self._assumed:
            self._deadlines_ns[key] = self._clock.now_ns() + ASSUMED_POD_TTL_NS

    def expire_assumed_pods(self) -> None:
        """Drop assumed pods whose binding ended longer ago than the time to live."""
        now_ns = self._clock.now_ns()
        for key in sorted(self._assumed):
            pod = self._pods[key].pod
            deadline_ns = self._deadlines_ns.get(key)
            if deadline_ns is None:
                self._note_unfinished(pod)
            elif now_ns > deadline_ns:
                log.warning("Pod %s expired", object_ref(pod.metadata))
                try:
                    self._remove(pod)
                except CacheError as error:
                    log.error("ExpirePod failed for %s: %s", key, error)

    def _note_unfinished(self, pod: Pod) -> None:
        """v1.9 does not log pods that cannot expire yet."""

    def _drop(self, key: str) -> None:
        super()._drop(key)
        self._deadlines_ns.pop(key, None)


class Cache120(Cache19):
    """The cache of v1.20. Unlike v1.17's it only logs that a node is missing."""

    def forget_pod(self, pod: Pod) -> None:
        key = self._key(pod)
        cached = self._pods.get(key)
        if cached is not None and cached.pod.spec.node_name != pod.spec.node_name:
            raise CacheError(
                f"pod {key} was assumed on {pod.spec.node_name} "
                f"but assigned to {cached.pod.spec.node_name}"
            )
        if cached is None or key not in self._assumed:
            raise CacheError(f"pod {key} wasn't assumed so cannot be forgotten")
        self._take_from_node(pod)
        self._drop(key)

    def add_pod(self, pod: PodInfo) -> None:
        key = self._key(pod.pod)
        cached = self._pods.get(key)
        if cached is None:
            self._add(pod)
            return
        if key not in self._assumed:
            raise CacheError(f"pod {key} was already in added state")
        assumed = cached.pod
        if assumed.spec.node_name != pod.pod.spec.node_name:
            log.warning(
                "Pod %s was assumed to be on %s but got added to %s",
                key,
                assumed.spec.node_name,
                pod.pod.spec.node_name,
            )
            try:
                self._take_from_node(assumed)
            except CacheError as error:
                self._report_failed_removal(error)
            self._put_on_node(pod)
        # On the same node only the entry changes: the node's sums stay as assumed.
        self._assumed.discard(key)
        self._deadlines_ns.pop(key, None)
        self._pods[key] = pod

    def update_pod(self, old: Pod, new: PodInfo) -> None:
        key = self._key(old)
        cached = self._pods.get(key)
        if cached is None or key in self._assumed:
            raise CacheError(f"pod {key} is not added to scheduler cache, so cannot be updated")
        if cached.pod.spec.node_name != new.pod.spec.node_name:
            log.error("Pod %s updated on a different node than previously added to.", key)
            raise CacheCorruptedError(_CORRUPTED)
        self._take_from_node(old)
        self._put_on_node(new)
        # Under the old key, even if the UID has changed.
        self._pods[key] = new

    def remove_pod(self, pod: Pod) -> None:
        key = self._key(pod)
        cached = self._pods.get(key)
        if cached is None or key in self._assumed:
            raise CacheError(
                f"pod {key} is not found in scheduler cache, so cannot be removed from it"
            )
        if cached.pod.spec.node_name != pod.spec.node_name:
            log.error(
                "Pod %s was assumed to be on %s but got added to %s",
                key,
                pod.spec.node_name,
                cached.pod.spec.node_name,
            )
            raise CacheCorruptedError(_CORRUPTED)
        self._take_from_node(cached.pod)
        self._drop(key)

    # --- what the releases do differently ---

    def _key(self, pod: Pod) -> str:
        uid = pod.metadata.uid
        if not uid:
            raise CacheError("Cannot get cache key for pod with empty UID")
        return uid

    def _describe(self, pod: Pod) -> str:
        return pod.metadata.uid

    def _note_unfinished(self, pod: Pod) -> None:
        text = "Couldn't expire cache for pod %s. Binding is still in progress."
        log.info(text, object_ref(pod.metadata))

    def _report_failed_removal(self, error: CacheError) -> None:
        log.error("RemovePod failed: %s", error)

    def _report_missing_node(self, name: str, pod: Pod) -> None:
        text = "node %s not found when trying to remove pod %s"
        log.error(text, name, object_ref(pod.metadata))


class Cache117(Cache120):
    """The cache of v1.17, with its stateful order of nodes."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.node_tree = NodeTree117()

    def _report_failed_removal(self, error: CacheError) -> None:
        """v1.17 ignores this error."""

    def _report_missing_node(self, name: str, pod: Pod) -> None:
        raise CacheError(f"node {name} is not found")


class NodeTree117(NodeTree):
    """Zones in turn, each with its next index; both are kept between snapshots (spec 03 §14.3)."""

    def __init__(self) -> None:
        super().__init__()
        self._next_in: dict[str, int] = {}
        self._next_zone = 0
        # What every further `list` returns, as long as no node comes or goes; None if it differs.
        self.repeated: list[str] | None = None

    def add(self, node: Node) -> None:
        super().add(node)
        self.repeated = None

    def remove(self, node: Node) -> None:
        super().remove(node)
        self.repeated = None
        zone = zone_key(node.metadata.labels)
        if zone not in self._zones:
            self._next_in.pop(zone, None)  # A zone that is added again begins at its first node.

    def next(self) -> str:
        """The next node to visit; "" if there is none."""
        self.repeated = None
        return self._next([(zone, [*names]) for zone, names in self._zones.items()])

    def list(self) -> list[str]:
        """As many names as there are nodes, continuing where the last call ended."""
        if self.repeated is not None:
            return self.repeated
        position = self._next_zone, dict(self._next_in)
        zones = [(zone, [*names]) for zone, names in self._zones.items()]
        names = [self._next(zones) for _ in range(self.node_count)]
        if position == (self._next_zone, self._next_in):
            self.repeated = names
        return names

    def _next(self, zones: Sequence[tuple[str, Sequence[str]]]) -> str:
        exhausted_count = 0
        while zones:
            if self._next_zone >= len(zones):
                self._next_zone = 0
            zone, names = zones[self._next_zone]
            self._next_zone += 1
            index = self._next_in.get(zone, 0)
            if index < len(names):
                self._next_in[zone] = index + 1
                return names[index]
            exhausted_count += 1
            if exhausted_count >= len(zones):
                self._next_in.clear()
                self._next_zone = 0
        return ""


class Snapshot117(Snapshot):
    """Lists the nodes with every refresh, without the consistency check of v1.36."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[str] | None = None  # the list of the tree, if all of it has rows

    def refresh(self, cache: Cache) -> None:
        tree = cache.node_tree
        assert isinstance(tree, NodeTree117), tree
        changed, has_new = self._collect_changes(cache)
        # A deleted node is kept until its last pod is gone, too.
        if len(self._infos) > len(cache.nodes):
            for name in [name for name in self._infos if name not in cache.nodes]:
                del self._infos[name]
            self._shown = None
        if self._shown is not None and self._shown is tree.repeated and not has_new:
            for info in changed:
                for row in self.rows_of(info.name):
                    self._write(row, info, cache)
        else:
            self._rebuild(cache, changed)
            is_whole = tree.repeated is not None and len(self.names) == len(tree.repeated)
            self._shown = tree.repeated if is_whole else None
        self.trim_log()

    def _can_show(self, name: str) -> bool:
        info: NodeInfo | None = self._infos.get(name)
        if info is None:
            text = 'node "%s" exist in nodeTree but not in NodeInfoMap, this should not happen.'
            log.error(text, name)
        return info is not None and super()._can_show(name)
