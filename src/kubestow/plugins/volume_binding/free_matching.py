"""Free volumes for many claims of one class (spec 07 §2.5).

Each claim in turn, the smallest first, gets the smallest volume that is suitable, in reach and not
taken. What is suitable does not depend on the node, apart from the volumes' node affinity: so the
work is done once for all nodes that reach the same volumes.

A pod with a few claims looks at the smallest volumes of each group in reach. With many claims, the
volumes are ranked once, and which of them suit which kind of claim is an array.
"""

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.selector_index import SelectorIndex
from kubestow.api.storage import PersistentVolume
from kubestow.arrays import BoolArray, IntpArray
from kubestow.index.selector_patterns import Pattern
from kubestow.plugins.volume_binding.demand import ClaimDemand, Form, Kind
from kubestow.plugins.volume_binding.free_volumes import ClassVolumes, rank_of

# Up to this many claims of a pod look for volumes one by one.
CLAIMS_FEW: Final = 8


class Match(NamedTuple):
    """A volume for a claim, by its position among the demands."""

    position: int
    volume: PersistentVolume


class FreeMatcher:
    """Matches claims of these demands, which are sorted by size, with the volumes of a class.

    Valid until a volume changes.
    """

    def __init__(self, volumes: ClassVolumes, demands: Sequence[ClaimDemand]) -> None:
        self._volumes = volumes
        self._demands = demands
        # By group, for each demand: the smallest suitable volumes, as many as may be needed.
        self._suitable: dict[ClaimDemand, dict[int, list[PersistentVolume]]] = {}
        self._ranking: _Ranking | None = None

    def match(self, pattern: Pattern) -> list[Match]:
        """What the claims get where these groups of volumes are in reach, in their order."""
        if len(self._demands) <= CLAIMS_FEW:
            return self._one_by_one(pattern)
        if self._ranking is None:
            self._ranking = _Ranking(self._volumes, self._demands)
        return self._ranking.match(pattern)

    def _one_by_one(self, pattern: Pattern) -> list[Match]:
        matches: list[Match] = []
        taken = set[str]()
        for position, demand in enumerate(self._demands):
            suitable = self._suitable.setdefault(demand, {})
            best: PersistentVolume | None = None
            for group in pattern:
                volume = self._first_in(group, demand, suitable, taken)
                if volume is not None and (best is None or rank_of(volume) < rank_of(best)):
                    best = volume
            if best is not None:
                taken.add(best.metadata.name)
                matches.append(Match(position, best))
        return matches

    def _first_in(
        self,
        group: int,
        demand: ClaimDemand,
        suitable: dict[int, list[PersistentVolume]],
        taken: set[str],
    ) -> PersistentVolume | None:
        """The smallest suitable volume of a group that is not taken."""
        listed = suitable.get(group)
        if listed is None:
            volumes = self._volumes.groups.get(group)
            found = () if volumes is None else volumes.at_least(demand.requested.nano)
            count = len(self._demands)
            listed = suitable[group] = list(islice(filter(demand.suits, found), count))
        for volume in listed:
            if volume.metadata.name not in taken:
                return volume
        return None


class _Ranking:
    """All free volumes of a class by size, and which of them suit the claims."""

    def __init__(self, volumes: ClassVolumes, demands: Sequence[ClaimDemand]) -> None:
        ranked = sorted(
            (size, name, group)
            for group, members in volumes.groups.items()
            for size, name in members.ranks()
        )
        self._volumes = [volumes.groups[group].named(name) for _, name, group in ranked]
        self._sizes = [size for size, _, _ in ranked]
        self._ranks: dict[int, list[int]] = {}
        for rank, (_, _, group) in enumerate(ranked):
            self._ranks.setdefault(group, []).append(rank)
        self._requested = [demand.requested.nano for demand in demands]
        kinds: dict[Kind, list[int]] = {}
        for position, demand in enumerate(demands):
            kinds.setdefault(demand.kind, []).append(position)
        # The positions of the claims of each kind.
        self._claims = [*kinds.values()]
        # bool[content, kind], and the content of each volume.
        self._suits, self._contents = _suitability([*kinds], self._volumes)

    def match(self, pattern: Pattern) -> list[Match]:
        ranks = sorted(chain.from_iterable(self._ranks.get(group, ()) for group in pattern))
        if not ranks:
            return []
        sizes = [self._sizes[rank] for rank in ranks]
        contents = self._contents[ranks]
        is_free = np.ones(len(ranks), np.bool_)
        left = len(ranks)
        matches: list[Match] = []
        # The next claim of each kind that has a suitable volume: claims go in their order.
        waiting = [(self._claims[kind][0], kind, 0) for kind in self._kinds_for(contents)]
        heapify(waiting)
        suits: dict[int, BoolArray] = {}
        while waiting and left:
            position, kind, number = waiting[0]
            mask = suits.get(kind)
            if mask is None:
                mask = suits[kind] = self._suits[contents, kind]
            start = bisect_left(sizes, self._requested[position])
            usable = mask[start:] & is_free[start:]
            place = start + int(usable.argmax()) if len(usable) else start
            if not len(usable) or not usable[place - start]:
                heappop(waiting)  # Later claims of the kind are not smaller.
                continue
            is_free[place] = False
            left -= 1
            matches.append(Match(position, self._volumes[ranks[place]]))
            if number + 1 < len(self._claims[kind]):
                heapreplace(waiting, (self._claims[kind][number + 1], kind, number + 1))
            else:
                heappop(waiting)
        return matches

    def _kinds_for(self, contents: IntpArray) -> list[int]:
        """The kinds of claims that one of these suits; all, where that is not worth a look."""
        kind_count = self._suits.shape[1]
        if len(contents) > kind_count:
            return [*range(kind_count)]
        return np.flatnonzero(np.logical_or.reduce(self._suits[contents], axis=0)).tolist()


def _suitability(
    kinds: Sequence[Kind], volumes: Sequence[PersistentVolume]
) -> tuple[BoolArray, IntpArray]:
    """bool[content, kind]: what suits; and the content of each volume: its form and its labels."""
    forms: dict[Form, BoolArray] = {}
    labels: dict[Hashable, BoolArray] = {}
    numbers: dict[tuple[Form, Hashable], int] = {}
    rows: list[BoolArray] = []
    contents: list[int] = []
    index = SelectorIndex([kind.selector.requirements for kind in kinds])
    for volume in volumes:
        form, pairs = Form.of(volume), frozenset(volume.metadata.labels.items())
        number = numbers.get((form, pairs))
        if number is None:
            number = numbers[form, pairs] = len(rows)
            if form not in forms:
                forms[form] = np.array([kind.suits(form) for kind in kinds], np.bool_)
            if pairs not in labels:
                labels[pairs] = _selecting(index, kinds, volume.metadata.labels)
            rows.append(forms[form] & labels[pairs])
        contents.append(number)
    suits = np.array(rows, np.bool_).reshape(len(rows), len(kinds))
    return suits, np.array(contents, np.intp)


def _selecting(index: SelectorIndex, kinds: Sequence[Kind], labels: Mapping[str, str]) -> BoolArray:
    """bool[kind]: whether it selects these labels."""
    if len(kinds) <= CLAIMS_FEW:
        return np.array([kind.selector.matches(labels) for kind in kinds], np.bool_)
    return index.matches(labels)
