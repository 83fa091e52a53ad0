"""Which of very many selectors each node matches.

A mask per selector is right for a few selectors. Local disks have a different selector for every
node, and storage capacity is reported per node: thousands of selectors, of which a node matches one
or two. So the few selectors that a node's label values can satisfy are looked up per node; the list
of those that match is its pattern. Callers then work per pattern instead of per node. Selectors of
which a node's labels may satisfy very many are found by `api.selector_index` when a caller asks for
the pattern: to number that of a node, what they read of its labels is sufficient.

Not here: what is done with a pattern (`volume_binding`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from kubestow.api.labels import Requirement, Selector
from kubestow.api.node_selector import CompiledNodeSelector
from kubestow.api.selector_index import Reading, SelectorIndex
from kubestow.arrays import IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.tracked import LabelColumns, Tracked, by_owner

Labels = Mapping[str, str]
# Positions of the selectors that match, ascending.
Pattern = tuple[int, ...]
# A label selector, a node selector (only its label requirements are read), or none: all match.
AnySelector = Selector | CompiledNodeSelector | None

# Selectors that are no longer used are kept until there are this many more than those in use.
UNUSED_SELECTORS_MAX: Final = 1024
# Up to this many selectors are compared with a node one by one.
_CANDIDATES_FEW: Final = 16

# The few that match, and what the others read of the labels; None without others.
_Key = tuple[Pattern, Reading | None]


class SelectorPatterns:
    """A growing list of selectors and, for every node, which of them it matches.

    Positions and pattern numbers are given in order of first use and never change. A list with too
    many unused selectors is replaced by a shorter one (`restarted`).
    """

    def __init__(self) -> None:
        # What each pattern is found by. Several may be equal, where others read different labels.
        self._keys: list[_Key] = []
        self._numbers: dict[_Key, int] = {}
        # By position: the patterns that have it among the few.
        self._patterns_with: list[list[int]] = []
        self._positions: dict[AnySelector, int] = {}
        # Requirements that name values are found by the node's value; all others are evaluated.
        self._by_value: dict[str, dict[str, list[_Candidate]]] = {}
        self._unindexed: list[_Candidate] = []
        # Those that would be one of too many, and the position of each.
        self._others = SelectorIndex()
        self._others_at: list[int] = []
        self._other_positions: set[int] = set()
        # What was added since the array was last read; None: it may match any node.
        self._added: list[Requirement | None] = []
        self._snapshot: Snapshot | None = None
        self._array: Tracked[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._positions)

    def position_of(self, selector: AnySelector) -> int:
        """The selector's position, which it gets now if it is new."""
        position = self._positions.get(selector)
        if position is None:
            position = self._positions[selector] = len(self._positions)
            self._patterns_with.append([])
            for requirements in _alternatives(selector):
                self._index(position, requirements)
        return position

    def has_few_like(self, selector: Selector) -> bool:
        """Whether it is here already, or would be one of a few that a node's labels may match."""
        return (
            selector in self._positions
            or selector.is_nothing
            or any(
                requirement.operator == "In" and self._is_selective(requirement)
                for requirement in selector.requirements
            )
            or not (len(self._others) or len(self._unindexed) >= _CANDIDATES_FEW)
        )

    def has_many_unused(self, used_count: int) -> bool:
        """Whether a new list is due, where `used_count` selectors are in use."""
        return len(self) > used_count + UNUSED_SELECTORS_MAX

    def restarted(self, positions: Iterable[int]) -> "SelectorPatterns":
        """A new list of the selectors at these positions, in this order."""
        selectors, restarted = list(self._positions), SelectorPatterns()
        for position in positions:
            restarted.position_of(selectors[position])
        return restarted

    def numbers(self, nodes: Nodes) -> IntArray:
        """int64[node]: the number of each node's pattern. Read-only for the caller."""
        if self._array is None or self._snapshot is not nodes.snapshot:
            self._follow(nodes.snapshot)
        assert self._array is not None
        values = self._array.values()
        if self._added:
            self._array.recompute(self._affected_rows(nodes.snapshot))
            self._added.clear()
        return values[nodes.rows]

    @property
    def pattern_count(self) -> int:
        return len(self._keys)

    def pattern(self, number: int) -> Pattern:
        return self._pattern(self._keys[number])

    def pattern_of(self, labels: Labels) -> Pattern:
        """The positions of the selectors that these labels satisfy."""
        return self._pattern(self._key_of(labels))

    def patterns_with(self, position: int) -> Sequence[int]:
        """The numbers of the known patterns in which the selector may match."""
        if position in self._other_positions:
            return range(len(self._keys))
        return self._patterns_with[position]

    def _key_of(self, labels: Labels) -> _Key:
        found = {position for position, others in self._unindexed if _all_match(others, labels)}
        for key, by_value in self._by_value.items():
            value = labels.get(key)
            for position, others in by_value.get(value, ()) if value is not None else ():
                if _all_match(others, labels):
                    found.add(position)
        reading = self._others.reading(labels) if len(self._others) else None
        return tuple(sorted(found)), reading

    def _pattern(self, key: _Key) -> Pattern:
        few, reading = key
        if reading is None:
            return few
        numbers: list[int] = np.flatnonzero(self._others.matches_reading(reading)).tolist()
        found = {self._others_at[number] for number in numbers}
        return tuple(sorted(found.union(few)))

    def _follow(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._added.clear()
        self._array = Tracked[np.int64](snapshot.log, Depends.NODE, by_owner(self._compute))

    def _compute(self, rows: Rows) -> IntArray:
        assert self._snapshot is not None
        nodes = nodes_of(self._snapshot, rows).node_objects()
        return np.array(
            [self._number(self._key_of(node.metadata.labels)) for node in nodes], np.int64
        )

    def _number(self, key: _Key) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
            for position in key[0]:
                self._patterns_with[position].append(number)
        return number

    def _index(self, position: int, requirements: tuple[Requirement, ...]) -> None:
        for index, requirement in enumerate(requirements):
            if requirement.operator == "In" and self._is_selective(requirement):
                others = (*requirements[:index], *requirements[index + 1 :])
                by_value = self._by_value.setdefault(requirement.key, {})
                for value in requirement.values:
                    by_value.setdefault(value, []).append((position, others))
                self._added.append(requirement)
                return
        self._added.append(None)
        self._unindexed.append((position, requirements))
        if len(self._others) or len(self._unindexed) > _CANDIDATES_FEW:
            for other, requirements in self._unindexed:
                self._others.add(requirements)
                self._others_at.append(other)
                self._other_positions.add(other)
            self._unindexed.clear()

    def _is_selective(self, requirement: Requirement) -> bool:
        """Whether few selectors name each of the values."""
        by_value = self._by_value.get(requirement.key)
        return by_value is None or all(
            len(by_value.get(value, ())) < _CANDIDATES_FEW for value in requirement.values
        )

    def _affected_rows(self, snapshot: Snapshot) -> Rows:
        """Rows whose pattern the added selectors may change."""
        values_by_key: dict[str, set[str]] = {}
        for requirement in self._added:
            if requirement is None:
                return slice(None)
            values_by_key.setdefault(requirement.key, set()).update(requirement.values)
        mask = np.zeros(len(snapshot), np.bool_)
        for key, values in values_by_key.items():
            column = snapshot.derived(LabelColumns).column(key)
            ids = column.ids
            wanted = [number for value in values if (number := column.id_of(value)) is not None]
            mask |= np.isin(ids, wanted)
        return np.flatnonzero(mask)


# A selector's position, and its requirements besides the one it is indexed by.
_Candidate = tuple[int, tuple[Requirement, ...]]
_EVERY_NODE: Final[Iterable[tuple[Requirement, ...]]] = ((),)


def _alternatives(selector: AnySelector) -> Iterable[tuple[Requirement, ...]]:
    """Lists of requirements of which one must hold as a whole."""
    if selector is None:
        return _EVERY_NODE
    if isinstance(selector, Selector):
        return () if selector.is_nothing else (selector.requirements,)
    return [term.labels for term in selector.terms]


def _all_match(requirements: tuple[Requirement, ...], labels: Labels) -> bool:
    # A loop, not all(...): it is faster for the usual empty tuple.
    for requirement in requirements:  # noqa: SIM110
        if not requirement.matches(labels):
            return False
    return True
