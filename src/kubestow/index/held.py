"""Following a snapshot from outside it: which rows changed, and which nodes hold a thing.

For indexes over all pods, such as "who uses this disk", that are made when first asked for and then
follow the snapshot row by row. They go by node name, because rows are laid anew when nodes come and
go.

Not here: arrays over the rows, which the snapshot keeps itself (`cache.tracked`).
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from kubestow.cache.snapshot import Snapshot
from kubestow.index.tracked import Depends

K = TypeVar("K")
V = TypeVar("V")

_EMPTY: Final[Mapping[str, object]] = MappingProxyType({})


class Changes(NamedTuple):
    """`rows` are those to look at; `is_relaid` says that nodes may have come or gone."""

    rows: Iterable[int]
    is_relaid: bool


class ChangedRows:
    """A reader's place in the snapshot's log of changes."""

    __slots__ = ("_depends", "_epoch", "_mark", "_snapshot")

    def __init__(self, depends: Depends) -> None:
        self._depends = depends
        self._snapshot: Snapshot | None = None
        self._epoch: int = 0
        self._mark: int = 0

    def take(self, snapshot: Snapshot) -> Changes:
        """The rows that changed since the last call; all of them at first."""
        log = snapshot.log
        mark, epoch = log.mark(self._depends), log.epoch
        is_new = snapshot is not self._snapshot
        if not is_new and mark == self._mark and epoch == self._epoch:
            return _NO_CHANGES
        rows = None if is_new else log.since(self._depends, self._mark)
        changes = Changes(
            range(len(snapshot)) if rows is None else dict.fromkeys(rows),
            is_new or epoch != self._epoch,
        )
        self._snapshot, self._mark, self._epoch = snapshot, mark, epoch
        return changes


class NodesByItem(Generic[K, V]):
    """Which items each node holds and, the other way round, which nodes hold an item."""

    __slots__ = ("_items", "_nodes")

    def __init__(self) -> None:
        self._items: dict[str, Mapping[K, V]] = {}
        self._nodes: dict[K, dict[str, V]] = {}

    def put(self, node_name: str, items: Mapping[K, V]) -> None:
        """Say what the node holds now."""
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
        """Forget the nodes that are not among these."""
        for name in [name for name in self._items if name not in node_names]:
            self.put(name, {})

    def nodes_with(self, item: K) -> Mapping[str, V]:
        """Node name → what it has of the item."""
        found = self._nodes.get(item)
        return found if found is not None else _EMPTY  # pyright: ignore[reportReturnType] -- empty


_NO_CHANGES: Final = Changes((), False)
