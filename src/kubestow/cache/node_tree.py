"""The visiting order of nodes: zones in turn, nodes of a zone as added (spec 03 §5)."""

from contextlib import suppress

from kubestow.api.node import Node
from kubestow.api.topology import zone_key
from kubestow.errors import CacheError


class NodeTree:
    """Node names by zone. Only nodes whose Node object exists are in it.

    Invariant: `node_count` is the number of names over all zones (a name added under two zones
    counts twice, as upstream counts it).
    """

    def __init__(self) -> None:
        # dict keeps zones in order of first appearance; the inner dict is an ordered set of names.
        self._zones: dict[str, dict[str, None]] = {}
        self.node_count = 0

    def add(self, node: Node) -> None:
        name, zone = node.metadata.name, zone_key(node.metadata.labels)
        names = self._zones.setdefault(zone, {})
        if name not in names:
            names[name] = None
            self.node_count += 1

    def remove(self, node: Node) -> None:
        name, zone = node.metadata.name, zone_key(node.metadata.labels)
        names = self._zones.get(zone)
        if names is None or name not in names:
            raise CacheError(f'node "{name}" in group "{_quoted(zone)}" was not found')
        del names[name]
        if not names:
            # An emptied zone loses its position: if nodes are added again, it goes to the end.
            del self._zones[zone]
        self.node_count -= 1

    def update(self, old: Node | None, new: Node) -> None:
        """Move the node when its zone changed: to the end of its new zone."""
        old_zone = zone_key(old.metadata.labels) if old is not None else ""
        if old_zone == zone_key(new.metadata.labels):
            return
        if old is not None:
            # Spec 03 §5.2: a node that is not in the tree is simply added.
            with suppress(CacheError):
                self.remove(old)
        self.add(new)

    def copy(self) -> "NodeTree":
        copy = NodeTree()
        copy._zones = {zone: names.copy() for zone, names in self._zones.items()}
        copy.node_count = self.node_count
        return copy

    def list(self) -> list[str]:
        """All names: the first of each zone, then the second of each, and so on."""
        columns = [list(names) for names in self._zones.values()]
        if len(columns) == 1:
            return columns[0]
        longest = max(map(len, columns), default=0)
        return [names[i] for i in range(longest) for names in columns if i < len(names)]


def _quoted(zone: str) -> str:
    # As Go quotes it: the NUL between region and zone shows as an escape.
    return zone.replace("\x00", "\\x00")
