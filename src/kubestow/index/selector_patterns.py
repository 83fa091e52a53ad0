"""Which of very many selectors each node matches.

A mask per selector is right for a few selectors. Local disks have a different selector for every
node, and storage capacity is reported per node: thousands of selectors, of which a node matches one
or two. So the few selectors that a node's label values can satisfy are looked up per node; the list
of those that match is its pattern. Callers then work per pattern instead of per node. Selectors of
which a node's labels may satisfy very many are found by `api.selector_index`.

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
# For how many kinds of nodes it is kept which of the many selectors they match; beyond it, all are
# read again.
READINGS_MAX: Final = 64


class SelectorPatterns:
    """A growing list of selectors and, for every node, which of them it matches.

    Positions and pattern numbers are given in order of first use and never change. A list with too
    many unused selectors is replaced by a shorter one (`restarted`).
    """

    def __init__(self) -> None:
        self.patterns: list[Pattern] = []
        self._numbers: dict[Pattern, int] = {}
        self._patterns_with: list[list[int]] = []
        self._positions: dict[AnySelector, int] = {}
        # Requirements that name values are found by the node's value; all others are evaluated.
        self._by_value: dict[str, dict[str, list[_Candidate]]] = {}
        self._unindexed: list[_Candidate] = []
        # Those that would be one of too many, and the position of each.
        self._others = SelectorIndex()
        self._other_positions: list[int] = []
        # By what labels read of them, and the others that match: the pattern.
        self._read: dict[tuple[Reading, Pattern], Pattern] = {}
        self._last: tuple[Pattern, int] = (), -1
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

    def pattern_of(self, labels: Labels) -> Pattern:
        """The positions of the selectors that these labels satisfy."""
        found = {position for position, others in self._unindexed if _all_match(others, labels)}
        for key, by_value in self._by_value.items():
            value = labels.get(key)
            for position, others in by_value.get(value, ()) if value is not None else ():
                if _all_match(others, labels):
                    found.add(position)
        pattern = tuple(sorted(found))
        return self._with_others(pattern, labels) if len(self._others) else pattern

    def _with_others(self, few: Pattern, labels: Labels) -> Pattern:
        """The pattern, of which these are few."""
        key = self._others.reading(labels), few
        pattern = self._read.get(key)
        if pattern is None:
            if len(self._read) >= READINGS_MAX:
                self._read.clear()
            numbers: list[int] = np.flatnonzero(self._others.matches_reading(key[0])).tolist()
            found = {self._other_positions[number] for number in numbers}
            pattern = self._read[key] = tuple(sorted(found.union(few)))
        return pattern

    def patterns_with(self, position: int) -> Sequence[int]:
        """The numbers of the known patterns in which the selector matches."""
        return self._patterns_with[position]

    def _follow(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._added.clear()
        self._array = Tracked[np.int64](snapshot.log, Depends.NODE, by_owner(self._compute))

    def _compute(self, rows: Rows) -> IntArray:
        assert self._snapshot is not None
        nodes = nodes_of(self._snapshot, rows).node_objects()
        return np.array(
            [self._number(self.pattern_of(node.metadata.labels)) for node in nodes], np.int64
        )

    def _number(self, pattern: Pattern) -> int:
        last, number = self._last
        if pattern is last and number >= 0:
            return number  # Patterns of thousands of selectors take long to compare.
        number = self._find_number(pattern)
        self._last = pattern, number
        return number

    def _find_number(self, pattern: Pattern) -> int:
        number = self._numbers.get(pattern)
        if number is None:
            number = self._numbers[pattern] = len(self.patterns)
            self.patterns.append(pattern)
            for position in pattern:
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
                self._other_positions.append(other)
            self._unindexed.clear()
            self._read.clear()

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
