"""Volumes by storage class, indexed for finding a suitable one for a claim (spec 07 §2.5).

Most volumes of a class are in use. Those that are free are kept sorted by size, in groups of equal
node affinity, so that the smallest suitable one is found without a loop over all; those prebound to
a claim are kept under that claim. All as in the assume cache: a volume decided for a claim is not
free.

Invariant: among volumes of equal size the one whose name sorts first comes first. Upstream takes
them in random order.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.meta import ObjectMeta
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.volume_claims import offered_storage, volume_class
from kubestow.arrays import BoolArray, IntArray
from kubestow.index.selector_patterns import Pattern, SelectorPatterns
from kubestow.plugins.volume_binding.affinity import selector_of
from kubestow.plugins.volume_binding.assume_cache import AssumeCache

AVAILABLE: Final = "Available"

# Demands of claims for which answers are kept, per class.
_TABLES_MAX: Final = 16
_UNKNOWN: Final = -1


class FreeVolumes:
    """Free volumes of equal node affinity, smallest first."""

    __slots__ = ("_order", "_volumes")

    def __init__(self) -> None:
        self._order: list[tuple[int, str]] = []
        self._volumes: dict[str, PersistentVolume] = {}

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, volume: PersistentVolume) -> None:
        insort(self._order, rank_of(volume))
        self._volumes[volume.metadata.name] = volume

    def remove(self, volume: PersistentVolume) -> None:
        del self._order[bisect_left(self._order, rank_of(volume))]
        del self._volumes[volume.metadata.name]

    def ranks(self) -> Sequence[tuple[int, str]]:
        """Size and name of each, in order."""
        return self._order

    def named(self, name: str) -> PersistentVolume:
        return self._volumes[name]

    def at_least(self, size_nano: int) -> Iterator[PersistentVolume]:
        """The volumes of this size and larger, smallest first."""
        for index in range(bisect_left(self._order, (size_nano, "")), len(self._order)):
            yield self._volumes[self._order[index][1]]


class PatternTable:
    """The answers for claims of certain demands on the nodes of each pattern, kept for later pods.

    An answer is a tuple: the positions of the claims that get a volume. It is computed again for
    patterns in which a group of volumes has changed.
    """

    __slots__ = ("_indexes", "_numbers", "answers", "stale_positions")

    def __init__(self) -> None:
        self.answers: list[tuple[int, ...]] = []
        self.stale_positions: set[int] = set()
        self._numbers: dict[tuple[int, ...], int] = {}
        # int64[pattern]: index into `answers`, UNKNOWN where it has to be computed.
        self._indexes: IntArray = np.zeros(0, np.int64)

    def look_up(
        self,
        numbers: IntArray,
        patterns: SelectorPatterns,
        compute: Callable[[Pattern], tuple[int, ...]],
        may_interrupt: Callable[[], None],
    ) -> IntArray:
        """int64[node]: index of the answer for each node, given the number of its pattern.

        `may_interrupt` is called before each answer is computed.
        """
        self._catch_up(patterns)
        indexes = self._indexes[numbers]
        if (indexes == _UNKNOWN).any():
            unknown: list[int] = np.unique(numbers[indexes == _UNKNOWN]).tolist()
            for number in unknown:
                may_interrupt()
                self._indexes[number] = self._number_of(compute(patterns.pattern(number)))
            indexes = self._indexes[numbers]
        return indexes

    def by_claim(self, count: int) -> Iterator[tuple[int, BoolArray]]:
        """The position of each claim that some answer has a volume for, and bool[answer]: which."""
        matched: list[list[int]] = [[] for _ in range(count)]
        for number, answer in enumerate(self.answers):
            for position in answer:
                matched[position].append(number)
        for position, numbers in enumerate(matched):
            if numbers:
                is_matched = np.zeros(len(self.answers), np.bool_)
                is_matched[numbers] = True
                yield position, is_matched

    def _catch_up(self, patterns: SelectorPatterns) -> None:
        added = patterns.pattern_count - len(self._indexes)
        if added:
            self._indexes = np.concatenate((self._indexes, np.full(added, _UNKNOWN, np.int64)))
        for position in self.stale_positions:
            self._indexes[patterns.patterns_with(position)] = _UNKNOWN
        self.stale_positions.clear()

    def _number_of(self, answer: tuple[int, ...]) -> int:
        number = self._numbers.get(answer)
        if number is None:
            number = self._numbers[answer] = len(self.answers)
            self.answers.append(answer)
        return number


class ClassVolumes:
    """The volumes of one class: free ones by node affinity, the others by the claim they name."""

    __slots__ = ("_tables", "claimed", "groups", "patterns")

    def __init__(self) -> None:
        self._tables: OrderedDict[Hashable, PatternTable] = OrderedDict()
        self.patterns = SelectorPatterns()
        # By the position of their selector in `patterns`.
        self.groups: dict[int, FreeVolumes] = {}
        self.claimed: dict[tuple[str, str], dict[str, PersistentVolume]] = {}

    def prebound_to(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Volumes that name a claim of this namespace and name, sorted by their own name."""
        volumes = self.claimed.get((claim.metadata.namespace, claim.metadata.name), {})
        return [volumes[name] for name in sorted(volumes)]

    def table(self, demands: Hashable) -> PatternTable:
        """The table for claims of these demands."""
        table = self._tables.get(demands)
        if table is None:
            table = self._tables[demands] = PatternTable()
            if len(self._tables) > _TABLES_MAX:
                self._tables.popitem(last=False)
        self._tables.move_to_end(demands)
        return table

    def add(self, volume: PersistentVolume) -> "_Place":
        ref = volume.spec.claim_ref
        if ref is not None:
            key = ref.namespace, ref.name
            self.claimed.setdefault(key, {})[volume.metadata.name] = volume
            return _Place(volume, self, claim=key)
        if volume.status.phase != AVAILABLE or volume.metadata.deletion_timestamp is not None:
            return _Place(volume, self)
        if self.patterns.has_many_unused(len(self.groups)):
            self._renumber()
        position = self.patterns.position_of(selector_of(volume.spec.node_affinity))
        self.groups.setdefault(position, FreeVolumes()).add(volume)
        self._note_change(position)
        return _Place(volume, self)

    def remove(self, place: "_Place") -> None:
        volume = place.volume
        if place.claim is not None:
            volumes = self.claimed[place.claim]
            del volumes[volume.metadata.name]
            if not volumes:
                del self.claimed[place.claim]
            return
        if volume.status.phase != AVAILABLE or volume.metadata.deletion_timestamp is not None:
            return
        position = self.patterns.position_of(selector_of(volume.spec.node_affinity))
        group = self.groups[position]
        group.remove(volume)
        if not group:
            del self.groups[position]
        self._note_change(position)

    def _note_change(self, position: int) -> None:
        for table in self._tables.values():
            table.stale_positions.add(position)

    def _renumber(self) -> None:
        """Start a new list of selectors, with those of the free volumes only."""
        self._tables.clear()
        self.patterns = self.patterns.restarted(self.groups)
        self.groups = dict(enumerate(self.groups.values()))


class _Place(NamedTuple):
    """Where a volume is stored."""

    volume: PersistentVolume
    volumes: ClassVolumes
    claim: tuple[str, str] | None = None


class VolumesByClass:
    """The volumes of all classes, following an assume cache."""

    def __init__(self, cache: AssumeCache[PersistentVolume]) -> None:
        # Only classes with volumes: users may give every claim a class of its own.
        self._classes: dict[str, ClassVolumes] = {}
        self._none = ClassVolumes()
        self._places: dict[str, _Place] = {}
        for volume in cache.shown_objects():
            self._after_change(volume.metadata, volume)
        cache.watch(self._after_change)

    def of_class(self, class_name: str) -> ClassVolumes:
        """The volumes of a class. Valid until a volume changes."""
        return self._classes.get(class_name, self._none)

    def _after_change(self, meta: ObjectMeta, volume: PersistentVolume | None) -> None:
        old = self._places.pop(meta.name, None)
        if old is not None:
            old.volumes.remove(old)
        if volume is not None:
            class_name = volume_class(volume)
            volumes = self._classes.get(class_name)
            if volumes is None:
                volumes = self._classes[class_name] = ClassVolumes()
            self._places[meta.name] = volumes.add(volume)
        if old is not None:
            self._drop_if_empty(volume_class(old.volume))

    def _drop_if_empty(self, class_name: str) -> None:
        volumes = self._classes.get(class_name)
        if volumes is not None and not volumes.groups and not volumes.claimed:
            del self._classes[class_name]


def rank_of(volume: PersistentVolume) -> tuple[int, str]:
    """The sort key of volumes: size, then name."""
    return offered_storage(volume).nano, volume.metadata.name
