"""How much can still be provisioned on each node, as CSI drivers report it (spec 07 §2.6).

A driver publishes how much is left per class and set of nodes. Claims are compared with the largest
limit that applies to a node. Limits change often, the nodes they apply to rarely; so which objects
apply where is kept apart from their limits.
"""

from typing import Final, NamedTuple

import numpy as np

from kubestow.api.labels import Selector, SelectorError, parse_label_selector
from kubestow.api.node import Node
from kubestow.api.quantity import INT64_MIN, Quantity
from kubestow.api.storage import CSIStorageCapacity
from kubestow.arrays import IntArray
from kubestow.cache.objects import ObjectStore
from kubestow.index.nodes import Nodes
from kubestow.index.selector_patterns import Pattern, SelectorPatterns

_NONE: Final = INT64_MIN


class ClassCapacities:
    """What is reported for one class."""

    __slots__ = ("_limits", "_objects", "_patterns", "_stale")

    def __init__(self) -> None:
        self._patterns = SelectorPatterns()
        # By the position of their selector in `_patterns`.
        self._objects: dict[int, dict[tuple[str, str], CSIStorageCapacity]] = {}
        # int64[pattern]: the largest limit that applies to nodes of that pattern.
        self._limits: IntArray = np.zeros(0, np.int64)
        self._stale: set[int] = set()

    @property
    def is_empty(self) -> bool:
        return not self._objects

    def largest(self, nodes: Nodes) -> IntArray:
        """int64[node]: the size of the largest volume that can be provisioned on each node."""
        numbers = self._patterns.numbers(nodes)
        self._catch_up()
        return self._limits[numbers]

    def first_sufficient(self, node: Node, size: int) -> CSIStorageCapacity | None:
        """The first object, by namespace and name, that applies to the node and is sufficient."""
        pattern = self._patterns.pattern_of(node.metadata.labels)
        sufficient = [
            (key, capacity)
            for position in pattern
            for key, capacity in self._objects.get(position, {}).items()
            if _limit_of(capacity) >= size
        ]
        return min(sufficient, key=lambda entry: entry[0])[1] if sufficient else None

    def add(self, capacity: CSIStorageCapacity, selector: Selector) -> "_Place":
        if self._patterns.has_many_unused(len(self._objects)):
            self._renumber()
        position = self._patterns.position_of(selector)
        key = capacity.metadata.namespace, capacity.metadata.name
        self._objects.setdefault(position, {})[key] = capacity
        self._stale.add(position)
        return _Place(self, selector, key)

    def remove(self, place: "_Place") -> None:
        position = self._patterns.position_of(place.selector)
        objects = self._objects[position]
        del objects[place.key]
        if not objects:
            del self._objects[position]
        self._stale.add(position)

    def _renumber(self) -> None:
        """Start a new list of selectors, with those of the objects only."""
        self._patterns = self._patterns.restarted(self._objects)
        self._objects = dict(enumerate(self._objects.values()))
        self._limits = np.zeros(0, np.int64)
        self._stale.clear()

    def _catch_up(self) -> None:
        patterns = self._patterns.patterns
        numbers = set(range(len(self._limits), len(patterns)))
        for position in self._stale:
            numbers.update(self._patterns.patterns_with(position))
        self._stale.clear()
        if not numbers:
            return
        added = len(patterns) - len(self._limits)
        self._limits = np.concatenate((self._limits, np.full(added, _NONE, np.int64)))
        for number in numbers:
            self._limits[number] = self._largest_of(patterns[number])

    def _largest_of(self, pattern: Pattern) -> int:
        return max(
            (
                _limit_of(capacity)
                for position in pattern
                for capacity in self._objects.get(position, {}).values()
            ),
            default=_NONE,
        )


class _Place(NamedTuple):
    """Where an object is stored."""

    capacities: ClassCapacities
    selector: Selector
    key: tuple[str, str]


class StorageCapacities:
    """What is reported for all classes, following the store."""

    def __init__(self, store: ObjectStore[CSIStorageCapacity]) -> None:
        # Only classes for which something is reported.
        self._classes: dict[str, ClassCapacities] = {}
        self._none = ClassCapacities()
        self._places: dict[tuple[str, str], _Place] = {}
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
