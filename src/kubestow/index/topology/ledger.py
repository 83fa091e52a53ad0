"""What each row holds, counted by differences.

A tally's measure is called once per distinct item; after that, a pod that is added or removed
changes one number in each tally that counts it.

Invariants: `tally.rows` has, for each row, the sum over what it holds of amount times weight; an
item no row holds is forgotten, and measured again when a row holds it again.
Not here: domains (`domains`), when a row is compared (`counts`), particular measures (`measures`).
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import numpy as np

from kubestow.api.pod_info import AffinityTerm, PodClass
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.owned_terms import OwnedTerm, TermKind
from kubestow.cache.snapshot import Snapshot
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.domains import DomainIds, RowCounts
from kubestow.index.topology.measures import (
    Anchor,
    Exposure,
    Measure,
    Pull,
    anchor_of,
    anchor_of_measure,
)

T = TypeVar("T")

_NOTHING: Final[Mapping[Any, int]] = {}

# How many tallies a ledger keeps: making one again costs a pass over the rows.
TALLIES_MAX: Final = 2048
# And how many numbers they may have together, one for each row, if there are more than a few.
TALLY_ROWS_MAX: Final = 64_000_000
TALLIES_FEW: Final = 32
# And how many sets of pods their measures may have together: one pod may name thousands.
SETS_MAX: Final = 131_072

# When new items were weighed more often than this, and than twice for each item there is, without
# any tally being asked for, all tallies are dropped: each is made again when it is read.
WEIGHED_UNREAD_MAX: Final = 4_096

# How many tallies a new one is compared with, to start from the counts of a similar one.
SIMILAR_COMPARED: Final = 8

# For how many classes of pods the terms that select them are kept.
SELECTING_MAX: Final = 4096


class Tally(RowCounts, Generic[T]):
    """One count over a ledger. `weights` has what counts, and how much.

    `is_used` is set by those that read it without a look-up, so that it is not taken for unused.
    """

    __slots__ = ("is_used", "measure", "weights")

    def __init__(self, measure: Measure[T], row_count: int) -> None:
        super().__init__(Amounts(row_count))
        self.measure = measure
        self.weights: dict[T, int] = {}
        self.is_used = False


class Page(Generic[T]):
    """What one row holds."""

    __slots__ = ("amounts", "row")

    def __init__(self, row: int, amounts: Mapping[T, int]) -> None:
        self.row = row
        self.amounts = amounts  # replaced, never changed


class Ledger(Generic[T]):
    """What each row holds, and the tallies over it. Empty until it is opened."""

    def __init__(self, read: Callable[[NodeInfo], Mapping[T, int]]) -> None:
        self._read = read
        self.is_open = False
        # The pages of rows that hold something, or did.
        self._pages: dict[int, Page[T]] = {}
        self._row_count = 0
        # Every item that some row holds, and the pages it is on.
        self._holders: dict[T, dict[Page[T], None]] = {}
        self._tallies: OrderedDict[Measure[T], Tally[T]] = OrderedDict()
        self._tallies_of: dict[T, list[Tally[T]]] = {}
        self._size = 0  # the sets of all measures
        self._weighed_unread = 0  # weights of new items since a tally was asked for

    def __contains__(self, item: T) -> bool:
        return item in self._holders

    def open(self, snapshot: Snapshot) -> None:
        """Read all rows at the first call."""
        if not self.is_open:
            self.is_open = True
            self.reset(snapshot)

    def tally(self, measure: Measure[T]) -> Tally[T]:
        """The tally of what the measure counts; the ledger must be open."""
        self._weighed_unread = 0
        tally = self._tallies.get(measure)
        if tally is not None:
            self._tallies.move_to_end(measure)
            return tally
        tally = self._tallies[measure] = Tally(measure, self._row_count)
        for item in self._items_for(measure):
            self._weigh(item, tally)
        if tally.weights:
            tally.rows = self._counted(tally, self._similar(tally))
        self._on_new_tally(tally)
        self._size += measure.size
        by_rows = TALLY_ROWS_MAX // max(self._row_count, 1)
        most = min(TALLIES_MAX, max(by_rows, TALLIES_FEW))
        tally.is_used = True  # It must not go while others make room for it.
        while len(self._tallies) > most or (self._size > SETS_MAX and len(self._tallies) > 1):
            self._drop_oldest()
        tally.is_used = False
        return tally

    def update(self, row: int, info: NodeInfo) -> None:
        """Make the row's page, and all tallies, show what the node holds now; it must be open."""
        page, now = self._pages.get(row), self._read(info)
        if page is None:
            if not now:
                return
            page = self._pages[row] = Page(row, _NOTHING)
        before = page.amounts
        if before == now:
            return
        page.amounts = dict(now)
        for item, amount in now.items():
            change = amount - before.get(item, 0)
            if change:
                self._apply(page, item, change)
        if not before.keys() <= now.keys():
            for item, amount in before.items():
                if item not in now:
                    self._apply(page, item, -amount)

    def reorder(self, source: DomainIds) -> None:
        """Row i is now what was row `source[i]`; new rows (-1) hold nothing until updated.

        Columns have to be replaced as well: sums per domain are not changed here.
        """
        if not self.is_open:
            return
        # A row may be deleted, and a node that is listed twice may have a second one now.
        before, self._pages = self._pages, {}
        self._row_count = len(source)
        moved: set[int] = set()
        for row, old in enumerate(source.tolist()):
            page = before.get(old)
            if page is None:
                continue
            if old in moved:
                self._pages[row] = self._copied(page, row)
            else:
                moved.add(old)
                self._pages[row] = page
                page.row = row
        for old, page in before.items():
            if old not in moved:
                for item in page.amounts:
                    self._take_off(item, page)
        for tally in self._tallies.values():
            tally.rows = tally.rows.gathered(source)

    def reset(self, snapshot: Snapshot) -> None:
        """Forget everything and read all rows again; tallies stay, sums as in `reorder`."""
        if not self.is_open:
            return
        for item in list(self._holders):
            self._retire(item)
        self._pages.clear()
        self._row_count = len(snapshot)
        occupied: list[int] = np.flatnonzero(snapshot.columns.pod_count).tolist()
        for row in occupied:
            held = self._read(snapshot.node_infos[row])
            if not held:
                continue
            page = self._pages[row] = Page(row, dict(held))
            for item in held:
                if item not in self._holders:
                    self._introduce(item)
                self._holders[item][page] = None
        for tally in self._tallies.values():
            tally.rows = self._counted(tally, None)

    # --- for ledgers that can exclude pairs of item and measure early ---

    def _items_for(self, measure: Measure[T]) -> Iterable[T]:
        """The items to weigh for a new measure."""
        return self._holders

    def _tallies_for(self, item: T) -> Iterable[Tally[T]]:
        """The tallies whose measures have to weigh a new item."""
        return self._tallies.values()

    def _on_new_tally(self, tally: Tally[T]) -> None:
        """A tally has been added."""

    def _on_dropped_tally(self, tally: Tally[T]) -> None:
        """A tally has been dropped."""

    def _on_new_item(self, item: T) -> None:
        """A row holds the item, and none did before."""

    def _on_retired_item(self, item: T) -> None:
        """No row holds the item any more."""

    # --- inside ---

    def _apply(self, page: Page[T], item: T, change: int) -> None:
        """Count a change of the item that `page.amounts` includes already."""
        if item not in self._holders:
            self._introduce(item)
        for tally in self._tallies_of[item]:
            tally.add(page.row, tally.weights[item] * change)
        if item in page.amounts:
            self._holders[item][page] = None
        else:
            self._take_off(item, page)

    def _copied(self, page: Page[T], row: int) -> Page[T]:
        copy = Page(row, page.amounts)
        for item in copy.amounts:
            self._holders[item][copy] = None
        return copy

    def _take_off(self, item: T, page: Page[T]) -> None:
        holders = self._holders[item]
        del holders[page]
        if not holders:
            self._retire(item)

    def _introduce(self, item: T) -> None:
        weighed = self._weighed_unread
        if weighed > WEIGHED_UNREAD_MAX and weighed > 2 * len(self._holders):
            # A pod with thousands of terms, or thousands of new pods: most tallies are not read
            # again, and counting those that are costs less.
            self._weighed_unread = 0
            while self._tallies:
                self._drop_oldest()
        self._holders[item] = {}
        self._tallies_of[item] = []
        for tally in self._tallies_for(item):
            self._weigh(item, tally)
            self._weighed_unread += 1
        self._on_new_item(item)

    def _retire(self, item: T) -> None:
        del self._holders[item]
        for tally in self._tallies_of.pop(item):
            del tally.weights[item]
        self._on_retired_item(item)

    def _weigh(self, item: T, tally: Tally[T]) -> None:
        weight = tally.measure.weigh(item)
        if weight:
            tally.weights[item] = weight
            self._tallies_of[item].append(tally)

    def _similar(self, tally: Tally[T]) -> Tally[T] | None:
        """The latest tally that differs in the fewest items; None if all differ in most."""
        item = next(iter(tally.weights))
        found, fewest = None, len(tally.weights)
        for other in self._tallies_of[item][-SIMILAR_COMPARED:]:
            if other is not tally:
                count = len(_differences(tally.weights, other.weights))
                if count < fewest:
                    found, fewest = other, count
        return found

    def _counted(self, tally: Tally[T], similar: Tally[T] | None) -> Amounts:
        """By row, from the pages that hold an item with a weight, or a weight different from
        that in the similar tally."""
        if similar is None:
            rows, weights = Amounts(self._row_count), tally.weights
        else:
            rows, weights = similar.rows.copy(), _differences(tally.weights, similar.weights)
        for item, weight in weights.items():
            for page in self._holders[item]:
                rows.add(page.row, page.amounts[item] * weight)
        return rows

    def _drop_oldest(self) -> None:
        measure, tally = self._tallies.popitem(last=False)
        while tally.is_used:  # Once round at most.
            tally.is_used = False
            self._tallies[measure] = tally
            measure, tally = self._tallies.popitem(last=False)
        self._size -= measure.size
        for item in tally.weights:
            self._tallies_of[item].remove(tally)
        tally.detach()
        self._on_dropped_tally(tally)


class PodLedger(Ledger[PodClass]):
    """Pods by class on every row.

    Where every pod has different labels, each adds a new class. It is measured only by tallies that
    require one of its labels, and by the few that require no particular label.
    """

    def __init__(self, read: Callable[[NodeInfo], Mapping[PodClass, int]]) -> None:
        super().__init__(read)
        self._anchored: dict[Anchor | None, dict[Tally[PodClass], None]] = {}
        self._labelled: dict[Anchor, dict[PodClass, None]] = {}

    def _items_for(self, measure: Measure[PodClass]) -> Iterable[PodClass]:
        anchor = anchor_of_measure(measure)
        return super()._items_for(measure) if anchor is None else self._labelled.get(anchor, ())

    def _on_new_item(self, item: PodClass) -> None:
        for label in item.labels.items():
            self._labelled.setdefault(label, {})[item] = None

    def _on_retired_item(self, item: PodClass) -> None:
        for label in item.labels.items():
            labelled = self._labelled[label]
            del labelled[item]
            if not labelled:
                del self._labelled[label]

    def _tallies_for(self, item: PodClass) -> Iterable[Tally[PodClass]]:
        for anchor in (None, *item.labels.items()):
            yield from self._anchored.get(anchor, ())

    def _on_new_tally(self, tally: Tally[PodClass]) -> None:
        self._anchored.setdefault(anchor_of_measure(tally.measure), {})[tally] = None

    def _on_dropped_tally(self, tally: Tally[PodClass]) -> None:
        anchor = anchor_of_measure(tally.measure)
        del self._anchored[anchor][tally]
        if not self._anchored[anchor]:
            del self._anchored[anchor]


class TermLedger(Ledger[OwnedTerm]):
    """Terms on every row. Terms that require a label are matched only with pods that have it.

    owners_token   another object whenever a term gets its first owner or loses its last
    """

    def __init__(self) -> None:
        super().__init__(attrgetter("term_counts"))
        # The terms that have an owner, with the items that are about each.
        self._owned: dict[AffinityTerm, dict[OwnedTerm, None]] = {}
        self._anchored: dict[Anchor | None, dict[AffinityTerm, None]] = {}
        # Those of each kind, by topology key.
        self._by_key: dict[TermKind, dict[str, dict[OwnedTerm, None]]] = {}
        self._counting: dict[AffinityTerm, dict[Tally[OwnedTerm], None]] = {}
        self._selecting: dict[PodClass, tuple[Mapping[str, str], frozenset[AffinityTerm]]] = {}
        self.owners_token = object()

    def selecting(
        self, pod_class: PodClass, namespace_labels: Mapping[str, str]
    ) -> frozenset[AffinityTerm]:
        """The terms, of whatever kind, that select pods of this class."""
        kept = self._selecting.get(pod_class)
        if kept is not None and kept[0] is namespace_labels:
            return kept[1]
        namespace, labels = pod_class.namespace, pod_class.labels
        found: frozenset[AffinityTerm] = frozenset()
        for anchor in (None, *labels.items()):
            terms = self._anchored.get(anchor)
            if terms:
                found |= {
                    term for term in terms if term.matches(namespace, labels, namespace_labels)
                }
        if len(self._selecting) >= SELECTING_MAX:
            self._selecting.clear()
        self._selecting[pod_class] = namespace_labels, found
        return found

    @property
    def owned(self) -> Collection[AffinityTerm]:
        """The terms that some row holds."""
        return self._owned.keys()

    def topology_keys(self, *kinds: TermKind) -> Iterable[str]:
        """The keys of the terms of these kinds that pods own."""
        if len(kinds) == 1:
            return self._by_key.get(kinds[0], ())
        return dict.fromkeys(key for kind in kinds for key in self._by_key.get(kind, ()))

    def _items_for(self, measure: Measure[OwnedTerm]) -> Iterable[OwnedTerm]:
        selecting, key, pull = _exposure(measure)
        for kind in pull.kinds:
            items = self._by_key.get(kind, {}).get(key, ())
            if len(items) <= len(selecting):
                yield from items  # Those of other terms weigh nothing.
            else:
                for term in selecting:
                    for item in self._owned.get(term, ()):
                        if item.kind == kind:
                            yield item

    def _tallies_for(self, item: OwnedTerm) -> Iterable[Tally[OwnedTerm]]:
        return self._counting.get(item.term, ())

    def _on_new_tally(self, tally: Tally[OwnedTerm]) -> None:
        selecting, key, _ = _exposure(tally.measure)
        for term in selecting:
            if term.topology_key == key:
                self._counting.setdefault(term, {})[tally] = None

    def _on_dropped_tally(self, tally: Tally[OwnedTerm]) -> None:
        selecting, key, _ = _exposure(tally.measure)
        for term in selecting:
            if term.topology_key == key:
                del self._counting[term][tally]
                if not self._counting[term]:
                    del self._counting[term]

    def _on_new_item(self, item: OwnedTerm) -> None:
        term = item.term
        if term not in self._owned:
            self._owned[term] = {}
            self._anchored.setdefault(anchor_of(term.selector), {})[term] = None
            self._terms_changed()
        self._owned[term][item] = None
        keys = self._by_key.setdefault(item.kind, {})
        keys.setdefault(term.topology_key, {})[item] = None

    def _on_retired_item(self, item: OwnedTerm) -> None:
        term, key = item.term, item.term.topology_key
        del self._owned[term][item]
        if not self._owned[term]:
            del self._owned[term]
            anchor = anchor_of(term.selector)
            del self._anchored[anchor][term]
            if not self._anchored[anchor]:
                del self._anchored[anchor]
            self._terms_changed()
        keys = self._by_key[item.kind]
        del keys[key][item]
        if not keys[key]:
            del keys[key]

    def _terms_changed(self) -> None:
        self._selecting.clear()
        self.owners_token = object()


def _exposure(measure: Measure[OwnedTerm]) -> tuple[frozenset[AffinityTerm], str, Pull]:
    assert isinstance(measure, Exposure), measure
    return measure.selecting, measure.topology_key, measure.pull


def _differences(weights: Mapping[T, int], others: Mapping[T, int]) -> dict[T, int]:
    """What has to be added to the other weights to get these; without what is equal."""
    if weights == others:
        return {}
    differences = {item: weight - others.get(item, 0) for item, weight in weights.items()}
    differences |= {item: -weight for item, weight in others.items() if item not in weights}
    return {item: weight for item, weight in differences.items() if weight}
