"""How much can still be provisioned on each node, as CSI drivers report it (spec 07 §2.6).

A driver publishes how much is left per class and set of nodes. Claims are compared with the largest
limit that applies to a node. Limits change often, the nodes they apply to rarely; so which objects
apply where is kept apart from their limits.

Most objects are for one node or zone: these are found by the values that they name. Where very many
apply to a node, as if each excluded another one, the rows of each are the bits of an integer.
"""

from bisect import bisect_left
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.labels import Selector, SelectorError, parse_label_selector
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledTerm
from kubestow.api.quantity import INT64_MIN, Quantity
from kubestow.api.storage import CSIStorageCapacity
from kubestow.arrays import IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.objects import ObjectStore
from kubestow.cache.snapshot import Snapshot
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.selector_patterns import SelectorPatterns
from kubestow.index.term_rows import TermRows, as_mask
from kubestow.index.tracked import Tracked, by_owner

_NONE: Final = INT64_MIN
# The rows of fewer bits than this are set one by one.
_FEW_BITS: Final = 16

# Namespace and name.
Key = tuple[str, str]


class ClassCapacities:
    """What is reported for one class."""

    __slots__ = ("_groups", "_limits", "_patterns", "_stale", "_wide")

    def __init__(self) -> None:
        self._patterns = SelectorPatterns()
        # By the position of their selector in `_patterns`.
        self._groups: dict[int, _Group] = {}
        # int64[pattern]: the largest limit that applies to nodes of that pattern.
        self._limits: IntArray = np.zeros(0, np.int64)
        self._stale: set[int] = set()
        self._wide = _WideCapacities()

    @property
    def is_empty(self) -> bool:
        return not self._groups and not self._wide.groups

    def largest(self, nodes: Nodes) -> IntArray:
        """int64[node]: the size of the largest volume that can be provisioned on each node."""
        numbers = self._patterns.numbers(nodes)
        self._catch_up()
        largest = self._limits[numbers]
        return np.maximum(largest, self._wide.largest(nodes)) if self._wide.groups else largest

    def on_node(self, node: Node) -> Iterator[CSIStorageCapacity]:
        """The objects that apply to a node, by namespace and name. Valid until one changes."""
        labels = node.metadata.labels
        groups = [
            self._groups[position].in_order()
            for position in self._patterns.pattern_of(labels)
            if position in self._groups
        ]
        wide = (
            (key, capacity)
            for key, capacity, selector in self._wide.in_order()
            if selector.matches(labels)
        )
        return map(itemgetter(1), merge(*groups, wide, key=itemgetter(0)))

    def add(self, capacity: CSIStorageCapacity, selector: Selector) -> "_Place":
        if self._patterns.has_many_unused(len(self._groups)):
            self._renumber()
        key = capacity.metadata.namespace, capacity.metadata.name
        if selector in self._wide.groups or not self._patterns.has_few_like(selector):
            self._wide.add(capacity, selector)
            return _Place(self, selector, key)
        position = self._patterns.position_of(selector)
        group = self._groups.get(position)
        if group is None:
            group = self._groups[position] = _Group(selector)
        group.put(key, capacity)
        self._stale.add(position)
        return _Place(self, selector, key)

    def remove(self, place: "_Place") -> None:
        if place.selector in self._wide.groups:
            self._wide.remove(place)
            return
        position = self._patterns.position_of(place.selector)
        group = self._groups[position]
        group.remove(place.key)
        if not group.objects:
            del self._groups[position]
        self._stale.add(position)

    def _renumber(self) -> None:
        """Start a new list of selectors, with those of the objects only."""
        self._patterns = self._patterns.restarted(self._groups)
        self._groups = dict(enumerate(self._groups.values()))
        self._limits = np.zeros(0, np.int64)
        self._stale.clear()

    def _catch_up(self) -> None:
        patterns = self._patterns
        numbers = set(range(len(self._limits), patterns.pattern_count))
        for position in self._stale:
            numbers.update(patterns.patterns_with(position))
        self._stale.clear()
        if not numbers:
            return
        added = patterns.pattern_count - len(self._limits)
        self._limits = np.concatenate((self._limits, np.full(added, _NONE, np.int64)))
        groups = self._groups
        for number in numbers:
            limits = [groups[each].largest() for each in patterns.pattern(number) if each in groups]
            self._limits[number] = max(limits, default=_NONE)


class _Group:
    """The objects of one selector."""

    __slots__ = ("_largest", "_ordered", "objects", "selector")

    def __init__(self, selector: Selector) -> None:
        self.selector: Final = selector
        self.objects: Final[dict[Key, CSIStorageCapacity]] = {}
        self._largest: int | None = None
        self._ordered: list[tuple[Key, CSIStorageCapacity]] | None = None

    def put(self, key: Key, capacity: CSIStorageCapacity) -> None:
        self.objects[key] = capacity
        self._largest = self._ordered = None

    def remove(self, key: Key) -> None:
        del self.objects[key]
        self._largest = self._ordered = None

    def largest(self) -> int:
        if self._largest is None:
            self._largest = max(map(_limit_of, self.objects.values()))
        return self._largest

    def in_order(self) -> list[tuple[Key, CSIStorageCapacity]]:
        if self._ordered is None:
            self._ordered = sorted(self.objects.items(), key=itemgetter(0))
        return self._ordered


class _WideCapacities:
    """The objects of one class of which very many may apply to a node.

    From the largest limit down, each applies to those of its nodes that no larger one has: on
    integers of one bit for each node that takes time in proportion to the objects and the nodes.
    """

    __slots__ = ("__weakref__", "_array", "_ordered", "_ranked", "_snapshot", "groups")

    def __init__(self) -> None:
        self.groups: Final[dict[Selector, _Group]] = {}
        self._ordered: list[tuple[Key, CSIStorageCapacity, Selector]] | None = None
        # The largest limit of each selector, the largest first.
        self._ranked: list[tuple[int, CompiledTerm]] | None = None
        self._snapshot: Snapshot | None = None
        # int64[row]: the largest limit there.
        self._array: Tracked[np.int64] | None = None

    def add(self, capacity: CSIStorageCapacity, selector: Selector) -> None:
        group = self.groups.get(selector)
        if group is None:
            group = self.groups[selector] = _Group(selector)
        group.put((capacity.metadata.namespace, capacity.metadata.name), capacity)
        self._note_change()

    def remove(self, place: "_Place") -> None:
        group = self.groups[place.selector]
        group.remove(place.key)
        if not group.objects:
            del self.groups[place.selector]
        self._note_change()

    def largest(self, nodes: Nodes) -> IntArray:
        if self._array is None or self._snapshot is not nodes.snapshot:
            self._snapshot = nodes.snapshot
            self._array = Tracked[np.int64](
                nodes.snapshot.log, Depends.NODE, by_owner(self._compute)
            )
        return self._array.values()[nodes.rows]

    def in_order(self) -> list[tuple[Key, CSIStorageCapacity, Selector]]:
        if self._ordered is None:
            self._ordered = sorted(
                (
                    (key, capacity, group.selector)
                    for group in self.groups.values()
                    for key, capacity in group.objects.items()
                ),
                key=itemgetter(0),
            )
        return self._ordered

    def _note_change(self) -> None:
        self._ordered = self._ranked = self._array = None

    def _compute(self, rows: Rows) -> IntArray:
        assert self._snapshot is not None
        if self._ranked is None:
            self._ranked = sorted(
                (
                    (group.largest(), CompiledTerm(group.selector.requirements))
                    for group in self.groups.values()
                ),
                key=itemgetter(0),
                reverse=True,
            )
        nodes = nodes_of(self._snapshot, rows)
        bits = TermRows(nodes, (term for _, term in self._ranked))
        limits = np.full(len(nodes), _NONE, np.int64)
        left = bits.everything
        for limit, term in self._ranked:
            if not left:
                break
            found = bits.matching(term) & left
            left ^= found
            if found.bit_count() < _FEW_BITS:
                while found:
                    limits[found.bit_length() - 1] = limit
                    found ^= 1 << (found.bit_length() - 1)
            else:
                limits[as_mask(found, len(nodes))] = limit
        return limits


class _Place(NamedTuple):
    """Where an object is stored."""

    capacities: ClassCapacities
    selector: Selector
    key: Key


class NodeCapacities:
    """The objects of one class that apply to one node. Valid until one changes."""

    __slots__ = ("_left", "_limits", "_records")

    def __init__(self, capacities: ClassCapacities, node: Node) -> None:
        self._left = capacities.on_node(node)
        # Those that are larger than all before them, and their limits.
        self._records: list[CSIStorageCapacity] = []
        self._limits: list[int] = []

    def first_sufficient(self, size: int) -> CSIStorageCapacity | None:
        """The first object, by namespace and name, that is sufficient."""
        if self._limits and self._limits[-1] >= size:
            return self._records[bisect_left(self._limits, size)]
        for capacity in self._left:
            limit = _limit_of(capacity)
            if not self._limits or limit > self._limits[-1]:
                self._records.append(capacity)
                self._limits.append(limit)
                if limit >= size:
                    return capacity
        return None


class StorageCapacities:
    """What is reported for all classes, following the store."""

    def __init__(self, store: ObjectStore[CSIStorageCapacity]) -> None:
        # Only classes for which something is reported.
        self._classes: dict[str, ClassCapacities] = {}
        self._none = ClassCapacities()
        self._places: dict[Key, _Place] = {}
        for capacity in store.list():
            self._after_change(None, capacity)
        store.subscribe(self._after_change)

    def of_class(self, class_name: str) -> ClassCapacities:
        """What is reported for a class. Valid until an object changes."""
        return self._classes.get(class_name, self._none)

    def _after_change(self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> None:
        if old is not None:
            place = self._places.pop((old.metadata.namespace, old.metadata.name), None)
            if place is not None:
                place.capacities.remove(place)
        selector = None if new is None else _topology_of(new)
        if new is not None and selector is not None:
            capacities = self._classes.get(new.storage_class_name)
            if capacities is None:
                capacities = self._classes[new.storage_class_name] = ClassCapacities()
            place = capacities.add(new, selector)
            self._places[place.key] = place
        if old is not None:
            capacities = self._classes.get(old.storage_class_name)
            if capacities is not None and capacities.is_empty:
                del self._classes[old.storage_class_name]


def limit_of(capacity: CSIStorageCapacity) -> Quantity | None:
    """The largest volume the object allows; None if it has no limit."""
    if capacity.maximum_volume_size is not None:
        return capacity.maximum_volume_size
    return capacity.capacity


def _limit_of(capacity: CSIStorageCapacity) -> int:
    limit = limit_of(capacity)
    return _NONE if limit is None else limit.value()


def _topology_of(capacity: CSIStorageCapacity) -> Selector | None:
    """The nodes the object applies to; None if it applies to no node at all."""
    if capacity.node_topology is None:
        return None
    try:
        return parse_label_selector(capacity.node_topology)
    except SelectorError:
        return None
