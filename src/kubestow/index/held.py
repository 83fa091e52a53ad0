"""Which nodes hold an item: a disk, a volume, an object that was read for them.

By node name, because rows are reordered when nodes are added or deleted.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_EMPTY: Final[Mapping[str, object]] = MappingProxyType({})


class NodesByItem(Generic[K, V]):
    """Which items each node holds and, the other way round, which nodes hold an item."""

    __slots__ = ("_items", "_nodes")

    def __init__(self) -> None:
        self._items: dict[str, Mapping[K, V]] = {}
        self._nodes: dict[K, dict[str, V]] = {}

    def put(self, node_name: str, items: Mapping[K, V]) -> None:
        """Replace what the node holds."""
        for item in self._items.pop(node_name, {}):
            holders = self._nodes[item]
            del holders[node_name]
            if not holders:
                del self._nodes[item]
        if items:
            self._items[node_name] = items
            for item, value in items.items():
                self._nodes.setdefault(item, {})[node_name] = value

    def keep_only(self, node_names: Collection[str]) -> None:
        """Forget all other nodes."""
        for name in [name for name in self._items if name not in node_names]:
            self.put(name, {})

    def nodes_with(self, item: K) -> Mapping[str, V]:
        """Node name → what it has of the item."""
        found = self._nodes.get(item)
        return found if found is not None else _EMPTY  # pyright: ignore[reportReturnType] -- empty
