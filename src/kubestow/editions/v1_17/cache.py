"""The cache of v1.17: nodes are visited in another order than later (spec 03 §14.3).

The tree continues where it ended the last time, so that after a node was added a snapshot can show
one node twice and another not at all.
"""

import logging
from collections.abc import Sequence

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.topology import zone_key
from kubestow.cache.cache import Cache
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.node_tree import NodeTree
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.editions.v1_20.cache import Cache120
from kubestow.errors import CacheError

log = logging.getLogger(__name__)


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
        self.lowest_priority = cache.priorities.lowest
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
