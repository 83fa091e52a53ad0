"""Which topology domain each node is in, and counts summed per domain.

A topology key divides the nodes into domains, one per value of the label. Domains are numbered per
key, and a column holds every row's number, so that "how many such pods are in this node's zone" is
one gather over all nodes. Sums per domain are corrected when a row's count or its label changes,
and summed again only when rows are reordered.

    column.ids     2 2 3 0 3       rows: two nodes in z1, two in z2, one without the label
    row counts     1 0 4 9 1
    sums.amounts   0 0 1 5         by number; rows in no domain are left out

Invariants: `sums.amounts` of d is the sum of the counts of the rows with number d, for every d but
ABSENT, where it is 0; a number in use belongs to one value, and is free again once no node has the
value.
Not here: what is counted (`ledger`), when a row has changed (`counts`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from kubestow.api.node import Node
from kubestow.api.node_selector import ANY_NODE, RequiredNodeAffinity
from kubestow.api.pod import Toleration
from kubestow.api.taints import TolerationTable
from kubestow.arrays import BoolArray, IntArray, Rows
from kubestow.cache.change_log import Depends
from kubestow.index.node_match import matches_required
from kubestow.index.nodes import Nodes
from kubestow.index.present import LabelKeys
from kubestow.index.taint_match import TOLERATIONS_KEPT_MAX, untolerated
from kubestow.index.topology.amounts import FEW_MAX, Amounts, summed

# Not IdArray: NumPy would widen narrower numbers in every gather.
DomainIds = npt.NDArray[np.intp]
ByteArray = npt.NDArray[np.uint8]

ABSENT: Final = 0  # The row is in no domain: it lacks the label, or does not count.
EMPTY: Final = 1  # The value "", numbered whether a node has it or not (see `Eligibility`).
_FIRST_FREE: Final = 2

VACANT: Final = 255

# Per key. The least recently used is dropped; making one again costs a pass over the nodes.
VARIANTS_MAX: Final = 128

# The mask of an eligibility with more keys is not kept: the keys alone may take megabytes, and a
# column for each key takes a pass over the nodes. As many keys as `counts` keeps.
KEYS_KEPT_MAX: Final = 64


# The hash is kept: a pod may have thousands of keys, and looks up each of its constraints.
class Eligibility(msgspec.Struct, frozen=True, cache_hash=True):
    """Which nodes count for a domain (spec 06 §6.3.4); by default every node counts.

    `keys` are labels a node must have, `tolerations` None means that taints are ignored. With
    `counts_unlabelled` a node without the topology key counts for the value "" (spec 06 §6.3.7).
    """

    keys: tuple[str, ...] = ()
    affinity: RequiredNodeAffinity = ANY_NODE
    tolerations: tuple[Toleration, ...] | None = None
    comparison_operators: bool = False
    counts_unlabelled: bool = False

    def admits(self, nodes: Nodes) -> BoolArray:
        """bool[node]: whether the node counts, in any domain. Read-only for the caller."""
        # Kept: with several constraints on several keys each of them reads the same mask.
        is_large = (
            self.has_many_keys
            or len(self.tolerations or ()) > TOLERATIONS_KEPT_MAX
            or self.affinity.is_large
        )
        key = ("eligible", self)
        return nodes.tracked(key, Depends.NODE, self._admits, is_large=is_large)

    @property
    def has_many_keys(self) -> bool:
        return len(self.keys) > KEYS_KEPT_MAX

    def _admits(self, nodes: Nodes) -> BoolArray:
        mask = self._has_keys(nodes)
        if not self.affinity.is_any:
            mask &= matches_required(nodes, self.affinity)
        if self.tolerations is not None:
            kept_out = untolerated(
                nodes,
                TolerationTable(self.tolerations),
                comparison_operators=self.comparison_operators,
            )
            if kept_out is not None:
                mask &= kept_out == 0
        return mask

    def _has_keys(self, nodes: Nodes) -> BoolArray:
        present = nodes.snapshot.derived(LabelKeys).present()
        if any(key not in present for key in self.keys):
            return np.zeros(len(nodes), np.bool_)
        if self.has_many_keys:
            # One column for each would take a pass over all nodes each.
            needed = frozenset(self.keys)
            found = (needed <= node.metadata.labels.keys() for node in nodes.node_objects())
            return np.fromiter(found, np.bool_, len(nodes))
        mask = np.ones(len(nodes), np.bool_)
        for key in self.keys:
            # Mostly all nodes have it, and its values, such as all host names, need not be read.
            if present[key] != len(nodes.snapshot):
                mask &= nodes.label_ids(key) != 0
        return mask


EVERY_NODE: Final = Eligibility()


class RowCounts:
    """A count per row, with the sums over the columns that are in use.

    is_kept   whether it is still kept up to date
    """

    __slots__ = ("_sums", "is_kept", "rows")

    def __init__(self, rows: Amounts) -> None:
        self.rows = rows
        self.is_kept = True
        self._sums: dict[DomainColumn, DomainSums] = {}

    def sums(self, column: "DomainColumn") -> "DomainSums":
        sums = self._sums.get(column)
        if sums is None:
            sums = DomainSums(column, self.rows)
            if column.is_kept:
                sums.is_kept = True
                self._sums[column] = column.counts[self] = sums
        return sums

    def add(self, row: int, amount: int) -> None:
        self.rows.add(row, amount)
        for column, sums in self._sums.items():
            sums.add(column.ids.item(row), amount)

    def forget(self, column: "DomainColumn") -> None:
        self._sums.pop(column).is_kept = False

    def detach(self) -> None:
        """Leave all columns, so that they no longer keep sums for these counts."""
        self.is_kept = False
        for column, sums in self._sums.items():
            sums.is_kept = False
            del column.counts[self]
        self._sums.clear()


class DomainSums:
    """Counts per row, summed per domain of one column. `total` leaves out rows in no domain.

    amounts   by domain
    is_kept   whether it is still kept up to date
    """

    __slots__ = ("_highest", "_lowest", "_lowest_count", "_vacant", "amounts", "is_kept", "total")

    def __init__(self, column: "DomainColumn", rows: Amounts) -> None:
        self.amounts = _summed_by_domain(column, rows)
        self.total = self.amounts.total()
        self.is_kept = False
        # None until they are read: one changed sum seldom changes them.
        self._highest: int | None = None
        self._lowest: int | None = None
        self._lowest_count = 0  # how many domains with rows have the lowest value
        self._vacant: ByteArray | None = None

    def vacant(self) -> ByteArray:
        """uint8[domain]: VACANT where nothing is counted, else 0. Read-only for the caller."""
        if self._vacant is not None:
            return self._vacant
        few = self.amounts.few()
        if few is None:
            self._vacant = vacancies(self.amounts.array())
            return self._vacant
        vacant = np.full(self.amounts.size, VACANT, np.uint8)
        vacant[[domain for domain, amount in few.items() if amount > 0]] = 0
        return vacant

    def highest(self) -> int:
        """The largest value; a number that no row has counts as 0."""
        if self._highest is None:
            self._highest = self.amounts.highest()
        return self._highest

    def lowest(self, column: "DomainColumn") -> int:
        """The smallest value of a domain that has rows; there must be one. `column` is its own."""
        if self._lowest is None:
            self._lowest, self._lowest_count = column.lowest(self.amounts)
        return self._lowest

    def add(self, domain: int, amount: int) -> None:
        if domain == ABSENT:
            return
        after = self.amounts.add(domain, amount)
        before = after - amount
        self.total += amount
        highest = self._highest
        if highest is not None and (after > highest or before == highest):
            self._highest = after if after > highest else None
        lowest = self._lowest
        if lowest is not None and (before == lowest or after <= lowest):
            # Mostly others have it as well: many hosts have no such pod.
            self._lowest_count -= before == lowest
            if after <= lowest or not self._lowest_count:
                self._lowest = None
        if self._vacant is not None:
            self._vacant[domain] = 0 if after > 0 else VACANT

    def domains_changed(self) -> None:
        """A domain got its first row, or lost its last."""
        self._lowest = None

    def grow(self, capacity: int) -> None:
        self.amounts.grow(capacity)
        self._vacant = None


def _summed_by_domain(column: "DomainColumn", rows: Amounts) -> Amounts:
    ids, capacity = column.ids, len(column.populations)
    few = rows.few()
    if few is not None:
        found = ((ids.item(row), amount) for row, amount in few.items())
        return summed(((domain, amount) for domain, amount in found if domain != ABSENT), capacity)
    counts = rows.array()
    if 2 * int(column.populations[ABSENT]) > len(ids):
        # A label that few nodes have: a pod may name thousands of them.
        counted = ids.nonzero()[0]
        ids, counts = ids[counted], counts[counted]
    # Weights are summed as doubles, exact for any number of pods that fits a cluster.
    values = np.bincount(ids, weights=counts, minlength=capacity).astype(np.int64)
    values[ABSENT] = 0
    return Amounts.of(values)


class DomainColumn:
    """Every row's domain of one key, as far as the row is eligible.

    ids           intp[row], ABSENT where the row does not count
    populations   int64[domain], how many rows have each number
    domain_count  how many numbers other than ABSENT have rows
    counts        the row counts with sums over this column; filled by `RowCounts`
    is_kept       whether it is still kept up to date; an attempt may hold one that is not
    """

    __slots__ = (
        "_has_single_rows",
        "_registered",
        "counts",
        "domain_count",
        "ids",
        "is_kept",
        "populations",
    )

    def __init__(self, ids: DomainIds, capacity: int) -> None:
        self.is_kept = True
        self.counts: dict[RowCounts, DomainSums] = {}
        self.lay(ids, capacity)

    def lay(self, ids: DomainIds, capacity: int) -> None:
        """Replace the numbers of all rows. Sums are made again when they are next read."""
        self.detach()
        self.ids = ids
        self.populations = np.bincount(ids, minlength=capacity)
        self.domain_count = int(np.count_nonzero(self.populations[EMPTY:]))
        self._registered: Rows | None = None
        self._has_single_rows: bool | None = None

    def move(self, row: int, domain: int) -> None:
        """Put the row, with its counts, into another domain."""
        old = int(self.ids[row])
        if old == domain:
            return
        self.ids[row] = domain
        self._populate(old, -1)
        self._populate(domain, 1)
        for counts, sums in self.counts.items():
            count = counts.rows.item(row)
            if count:
                sums.add(old, -count)
                sums.add(domain, count)

    def grow(self, capacity: int) -> None:
        self.populations = _grown(self.populations, capacity)
        for sums in self.counts.values():
            sums.grow(capacity)

    def detach(self) -> None:
        """Leave all counts, so that they no longer keep sums over this column."""
        for counts in self.counts:
            counts.forget(self)
        self.counts.clear()

    def drop(self) -> None:
        """Stop keeping the column up to date."""
        self.is_kept = False
        self.detach()

    def has_single_rows(self) -> bool:
        """Whether no domain has more than one row, as where hosts are the domains."""
        if self._has_single_rows is None:
            self._has_single_rows = int(np.maximum.reduce(self.populations[EMPTY:])) <= 1
        return self._has_single_rows

    def lowest(self, amounts: Amounts) -> tuple[int, int]:
        """The smallest value of a domain that has rows, and how many have it; there must be one."""
        few = amounts.few()
        if few is not None and len(few) < self.domain_count:
            # The other domains have 0.
            lowest = min(0, min(few.values(), default=0))
            if not lowest:
                return 0, self.domain_count - len(few)
        values = amounts.array()
        if self._registered is None:
            self._registered = _as_slice(np.flatnonzero(self.populations[EMPTY:]) + EMPTY)
        found = values[self._registered]
        if len(found) <= FEW_MAX:
            numbers: list[int] = found.tolist()
            fewest = min(numbers)
            return fewest, numbers.count(fewest)
        lowest = np.minimum.reduce(found)
        return int(lowest), int(np.count_nonzero(found == lowest))

    def _populate(self, domain: int, change: int) -> None:
        before = int(self.populations[domain])
        after = before + change
        self.populations[domain] = after
        self._has_single_rows = None
        if domain != ABSENT and (before == 0 or after == 0):
            self.domain_count += 1 if before == 0 else -1
            self._registered = None
            for sums in self.counts.values():
                sums.domains_changed()


def column_for_once(key: str, eligibility: Eligibility, nodes: Nodes) -> DomainColumn:
    """The column of the rows that are eligible, of which mostly there are few; `nodes` are all.

    It is not kept: any pod may have thousands of keys.
    """
    numbers: dict[str | None, int] = {None: ABSENT, "": EMPTY}
    if eligibility.counts_unlabelled:
        numbers[None] = EMPTY
    ids = np.full(len(nodes), ABSENT, np.intp)
    all_nodes = nodes.snapshot.nodes
    for row in eligibility.admits(nodes).nonzero()[0].tolist():
        value = all_nodes[row].metadata.labels.get(key)
        ids[row] = numbers.setdefault(value, len(numbers))
    column = DomainColumn(ids, len(numbers))
    column.is_kept = False
    return column


class TopologyKey:
    """The numbering of one label key's values, and the columns that use it."""

    def __init__(self, key: str, nodes: Sequence[Node], few_rows: Sequence[int] | None) -> None:
        """`few_rows` are the rows that have the label; None: any may have it."""
        self._key = key
        self._free: list[int] = []
        self._variants: OrderedDict[Eligibility, DomainColumn] = OrderedDict()
        labelled = nodes if few_rows is None else [nodes[row] for row in few_rows]
        values = [node.metadata.labels.get(key) for node in labelled]
        # Host names are as many as nodes: they are numbered in few steps for all.
        distinct: dict[str | None, None] = dict.fromkeys((None, "", *values))
        self._values: list[str | None] = list(distinct)
        self._numbers = dict(zip(self._values, count(), strict=False))
        ids = np.fromiter(map(self._numbers.__getitem__, values), np.intp, len(values))
        if few_rows is not None:
            found, ids = ids, np.full(len(nodes), ABSENT, np.intp)
            ids[few_rows] = found
        self._capacity = 8
        while self._capacity < len(self._values):
            self._capacity *= 2
        self.every_node = DomainColumn(ids, self._capacity)

    def column(self, eligibility: Eligibility, nodes: Nodes) -> DomainColumn:
        """The column of the rows that are eligible; `nodes` are all nodes.

        A column is the same object for as long as it is used.
        """
        if self._is_plain(eligibility):
            return self.every_node
        column = self._variants.get(eligibility)
        if column is None:
            ids = self._eligible(eligibility, nodes, self.every_node.ids)
            column = self._variants[eligibility] = DomainColumn(ids, self._capacity)
            if len(self._variants) > VARIANTS_MAX:
                _, forgotten = self._variants.popitem(last=False)
                forgotten.drop()
        else:
            self._variants.move_to_end(eligibility)
        return column

    def drop(self) -> None:
        """Stop keeping the columns up to date."""
        for column in (self.every_node, *self._variants.values()):
            column.drop()

    def update(self, nodes: Nodes, rows: DomainIds) -> None:
        """Labels or taints of these rows have changed; `nodes` is the view of them."""
        for row, node in zip(rows.tolist(), nodes.node_objects(), strict=True):
            old = int(self.every_node.ids[row])
            self.every_node.move(row, self._number(node))
            self._free_if_vacant(old)
        ids = self.every_node.ids[rows]
        for eligibility, column in self._variants.items():
            eligible = self._eligible(eligibility, nodes, ids)
            for row, domain in zip(rows.tolist(), eligible.tolist(), strict=True):
                column.move(row, domain)

    def reorder(self, source: DomainIds) -> None:
        """Row i is now what was row `source[i]`; new rows (-1) have no label until updated."""
        for column in (self.every_node, *self._variants.values()):
            column.lay(gathered(column.ids, source), self._capacity)
        populations = self.every_node.populations[: len(self._values)]
        for number in np.flatnonzero(populations == 0).tolist():
            self._free_if_vacant(number)

    def _is_plain(self, eligibility: Eligibility) -> bool:
        return (
            all(key == self._key for key in eligibility.keys)
            and eligibility.affinity.is_any
            and eligibility.tolerations is None
            and not eligibility.counts_unlabelled
        )

    def _eligible(self, eligibility: Eligibility, nodes: Nodes, ids: DomainIds) -> DomainIds:
        if eligibility.counts_unlabelled:
            ids = np.where(ids == ABSENT, EMPTY, ids)
        return np.where(eligibility.admits(nodes), ids, ABSENT)

    def _number(self, node: Node) -> int:
        value = node.metadata.labels.get(self._key)
        number = self._numbers.get(value)
        return number if number is not None else self._new_number(value)

    def _new_number(self, value: str | None) -> int:
        if self._free:
            number = self._free.pop()
            self._values[number] = value
        else:
            number = len(self._values)
            self._values.append(value)
            if number >= self._capacity:
                self._grow()
        self._numbers[value] = number
        return number

    def _free_if_vacant(self, number: int) -> None:
        """In autoscaled clusters hostnames keep changing; numbers must not grow with them."""
        if number < _FIRST_FREE or self.every_node.populations[number]:
            return
        value = self._values[number]
        if value is not None:
            self._values[number] = None
            del self._numbers[value]
            self._free.append(number)

    def _grow(self) -> None:
        self._capacity *= 2
        self.every_node.grow(self._capacity)
        for column in self._variants.values():
            column.grow(self._capacity)


def gathered(values: npt.NDArray[np.int64], source: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """`values[source]`, with 0 where the source is -1."""
    if len(values) == 0:
        return np.zeros(len(source), values.dtype)
    moved = values[source]
    moved[source < 0] = 0
    return moved


def vacancies(values: IntArray) -> ByteArray:
    """VACANT where nothing is counted, else 0."""
    return (values <= 0) * np.uint8(VACANT)


def _grown(values: npt.NDArray[np.int64], capacity: int) -> npt.NDArray[np.int64]:
    return np.concatenate((values, np.zeros(capacity - len(values), values.dtype)))


def _as_slice(numbers: DomainIds) -> Rows:
    """A slice where the numbers are consecutive: it avoids a copy."""
    if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1:
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers
