"""How evenly the pods would be spread on each node (spec 06 §6.3.7, §6.3.8)."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.arrays import BoolArray, FloatArray, IntArray, Rows
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.nodes import Nodes
from kubestow.index.topology.cells import CELLS_MAX, CellIndex
from kubestow.index.topology.counts import KEYS_MAX, TopologyCounts
from kubestow.index.topology.domains import (
    ABSENT,
    EMPTY,
    DomainColumn,
    DomainIds,
    RowCounts,
)
from kubestow.index.topology.reading import Reading, pods, pods_by_row
from kubestow.plugins.pod_topology_spread.constraints import (
    Constraint,
    Eligibilities,
    Pausing,
    topology_keys,
)
from kubestow.plugins.pod_topology_spread.normalising import Rounding, inverted, normalised

# Up to this many numbers of domains are read one by one.
_DOMAINS_FEW: Final = 64


_Read = tuple[Constraint, Reading]
_NO_DOMAINS: Final[IntArray] = np.zeros(1, np.int64)


class SoftConstraint(NamedTuple):
    """The cost of a node for one constraint: count times weight, plus the allowance for the skew.

    counts      int64[domain], or int64[row] where every node is a domain
    feasible    how many feasible nodes each domain has, if there are few domains
    """

    column: DomainColumn
    counts: IntArray
    weight: np.float64
    allowance: np.float64
    is_by_row: bool
    feasible: list[int] | None

    def costs(self, counts: IntArray) -> FloatArray:
        """In doubles and in this order (spec 06 §6.3.8)."""
        costs = counts * self.weight
        costs += self.allowance
        return costs

    def costs_by_domain(self) -> FloatArray:
        """float64[domain]; 0 for no domain, without the allowance for the skew."""
        costs = self.costs(self.counts)
        costs[ABSENT] = 0.0
        return costs


class ScoreState(NamedTuple):
    """The soft constraints of an attempt.

    keys      columns of the keys a node needs not to be ignored
    rows      of the feasible nodes
    ignored   bool[feasible node]: the node lacks a key that it needs; None if no node does
    """

    constraints: tuple[SoftConstraint, ...]
    keys: tuple[DomainColumn, ...]
    rows: Rows
    ignored: BoolArray | None


class SoftConstraints:
    """The soft constraints of pods of one kind, with where their counts are found.

    count   how many there are
    """

    __slots__ = ("_needed", "_pair", "_read", "count")

    def __init__(
        self,
        pod: PodInfo,
        constraints: Sequence[Constraint],
        *,
        requires_all_keys: bool,
        comparison_operators: bool,
    ) -> None:
        names = topology_keys(constraints)
        self._needed = names if requires_all_keys else ()
        eligibilities = Eligibilities(
            pod,
            self._needed,
            comparison_operators=comparison_operators,
            counts_unlabelled=not requires_all_keys,
        )
        self._read: list[_Read] = []
        for constraint in constraints:
            key, measure = constraint.topology_key, constraint.measure(pod.namespace)
            # Every host is a domain, counted whether it is eligible or not.
            reading = (
                pods_by_row(key, measure)
                if key == HOSTNAME_LABEL
                else pods(key, measure, eligibilities.of(constraint))
            )
            self._read.append((constraint, reading))
        self.count: Final = len(constraints)
        self._pair = _host_and_other(self._read)

    def state(self, nodes: Nodes, counts: TopologyCounts, timer: Pausing) -> ScoreState:
        """`nodes` are the feasible ones: sizes come from them, counts from all nodes."""
        are_many = self.count > KEYS_MAX
        for _, reading in self._read:
            if are_many:
                timer.pause()
            reading.refresh(counts)
        # Keys that no node has share their column.
        columns: dict[DomainColumn, None] = {}
        for key in self._needed:
            if are_many:
                timer.pause()
            columns[counts.column(key)] = None
        keys = tuple(columns)
        ignored = _lacking(keys, nodes.rows)
        # On a key that no node has, a constraint costs nothing anywhere.
        prepared: list[SoftConstraint] = []
        for constraint, reading in self._read:
            if reading.has_key:
                if are_many:
                    timer.pause()
                prepared.append(_soft(constraint, reading, nodes, ignored))
        return ScoreState(tuple(prepared), keys, nodes.rows, ignored)

    def final_scores(
        self, nodes: Nodes, counts: TopologyCounts, rounding: Rounding, timer: Pausing
    ) -> IntArray | int:
        """int64[node]: the normalised scores of all feasible nodes, which these are; one number if
        they are equal."""
        cells = self._cells(nodes, counts)
        if cells is None or self._pair is None:
            return final_scores(self.state(nodes, counts, timer), nodes, rounding)
        if cells is _ALIKE:
            return MAX_NODE_SCORE
        (host, _), other = self._pair
        return cell_scores(
            cells,
            host_allowance=host.max_skew - 1,
            allowance=0 if other is None else other[0].max_skew - 1,
            domain_counts=_NO_DOMAINS if other is None else other[1].sums.amounts.array(),
            rounding=rounding,
        )

    def _cells(self, nodes: Nodes, counts: TopologyCounts) -> "_SomeCells | None":
        """The cells of these nodes; None if nodes have to be scored one by one."""
        if self._pair is None:
            return None
        (_, host), other = self._pair
        host.refresh(counts)
        tally, column = host.tally, None
        if tally is None or host.column.populations.item(ABSENT):
            return None
        is_counted, lacks_label = tally.rows.may_be_any(), False
        if other is not None:
            other[1].refresh(counts)
            column, tally_of_other = other[1].column, other[1].tally
            lacks_label = bool(column.populations.item(ABSENT))
            if tally_of_other is None or (self._needed and lacks_label):
                return None
            is_counted = is_counted or tally_of_other.rows.may_be_any()
        if not is_counted and not lacks_label:
            return _ALIKE  # As for the first pod of an application: no such pod runs.
        return _cells_of(nodes, tally, column, counts)


def _cells_of(
    nodes: Nodes, tally: RowCounts, column: DomainColumn | None, counts: TopologyCounts
) -> "_SomeCells | None":
    """None if there are too many."""
    rows, few = nodes.rows, tally.rows.few()
    if few is None and column is not None:
        cells = nodes.snapshot.derived(CellIndex).of(tally, column, counts.layout_token)
        if not cells.are_few:
            return None
        ids = cells.ids[rows]
        populations = cells.populations if len(ids) == len(cells.ids) else np.bincount(ids)
        return _SomeCells(ids, cells.width, populations)
    # Few nodes have such pods: that is found faster than kept.
    width = 1 if column is None else len(column.populations)
    if (tally.rows.highest() + 1) * width > CELLS_MAX:
        return None
    if column is None:
        ids = tally.rows.array()[rows]
    else:
        ids = column.ids[rows]
        if few:
            ids = ids + tally.rows.array()[rows] * width
    return _SomeCells(ids, width, np.bincount(ids))


class _SomeCells(NamedTuple):
    """The cells of some nodes (`index.topology.cells`).

    ids           intp[node], the number of matching pods times `width` plus that of the domain
    populations   int64[cell], how many of these nodes are in each; it may end with the last one
    """

    ids: DomainIds
    width: int
    populations: IntArray


# The cells of nodes that all have the same score.
_ALIKE: Final = _SomeCells(np.zeros(0, np.intp), 1, np.zeros(0, np.int64))


def _host_and_other(read: Sequence[_Read]) -> tuple[_Read, _Read | None] | None:
    """The constraint on hosts, and the one on another key if there is one; None if there are
    others."""
    host = [each for each in read if each[0].topology_key == HOSTNAME_LABEL]
    other = [each for each in read if each[0].topology_key != HOSTNAME_LABEL]
    if len(host) != 1 or len(other) > 1:
        return None
    return host[0], other[0] if other else None


def _soft(
    constraint: Constraint, reading: Reading, nodes: Nodes, ignored: BoolArray | None
) -> SoftConstraint:
    column, tally = reading.column, reading.tally
    assert tally is not None, reading.key
    is_by_row = constraint.topology_key == HOSTNAME_LABEL
    feasible: list[int] | None = None
    if is_by_row:
        size = len(nodes) - (0 if ignored is None else int(np.count_nonzero(ignored)))
    else:
        populations = _feasible_populations(column, nodes, ignored)
        # Spec 06 §6.3.7: nodes without the label form the domain "", where they are not ignored.
        is_new = bool(populations[ABSENT]) and not populations[EMPTY]
        size = int(np.count_nonzero(populations[EMPTY:])) + is_new
        if len(populations) <= _DOMAINS_FEW:
            feasible = populations.tolist()
    return SoftConstraint(
        column,
        (tally.rows if is_by_row else reading.sums.amounts).array(),
        # math.log, not np.log, whose vectorised forms may differ in the last bit between machines.
        weight=np.float64(math.log(size + 2)),
        allowance=np.float64(constraint.max_skew - 1),
        is_by_row=is_by_row,
        feasible=feasible,
    )


def _feasible_populations(
    column: DomainColumn, nodes: Nodes, ignored: BoolArray | None
) -> IntArray:
    """int64[domain]: how many feasible nodes are in each, without ignored ones."""
    ids = column.ids[nodes.rows]
    if ignored is not None:
        ids = ids[~ignored]
    if len(ids) == len(column.ids):
        return column.populations
    return np.bincount(ids, minlength=len(column.populations))


def raw_scores(state: ScoreState, nodes: Nodes, rounding: Rounding) -> IntArray:
    """int64[node]: the higher, the more uneven; 0 for ignored nodes."""
    rows, constraints = nodes.rows, state.constraints
    if not constraints:
        scores = np.zeros(len(nodes), np.int64)
    elif len(constraints) == 1 and not constraints[0].is_by_row:
        scores = rounding.many(constraints[0].costs_by_domain()).take(
            constraints[0].column.ids[rows]
        )
    else:
        # Summed in the order of the constraints: doubles have another sum in another order.
        sums = _costs_at(constraints[0], rows)
        for each in constraints[1:]:
            sums += _costs_at(each, rows)
        scores = rounding.many(sums)
    ignored = state.ignored if rows is state.rows else _lacking(state.keys, rows)
    if ignored is not None:
        scores[ignored] = 0
    return scores


def final_scores(state: ScoreState, nodes: Nodes, rounding: Rounding) -> IntArray:
    """int64[node]: the normalised scores of all feasible nodes, which are those of the state."""
    constraint = state.constraints[0] if len(state.constraints) == 1 else None
    if constraint is None or constraint.feasible is None or state.ignored is not None:
        return normalised(raw_scores(state, nodes, rounding), state.ignored)
    # Nodes of one domain have one score. Few numbers are faster without arrays.
    rounded, costs = rounding.one, constraint.costs_by_domain().tolist()
    raw = {
        domain: rounded(costs[domain]) for domain, count in enumerate(constraint.feasible) if count
    }
    highest, lowest = max(0, *raw.values()), min(raw.values())
    ids = constraint.column.ids[nodes.rows]
    if highest == 0:
        return np.full(len(ids), MAX_NODE_SCORE, np.int64)
    scores = [0] * len(costs)
    for domain, score in raw.items():
        scores[domain] = inverted(score, lowest, highest)
    return np.array(scores, np.int64).take(ids)


def _costs_at(constraint: SoftConstraint, rows: Rows) -> FloatArray:
    """float64[node]; 0 for a node without the key, without the allowance for the skew."""
    column, counts = constraint.column, constraint.counts
    if not constraint.is_by_row:
        return constraint.costs_by_domain().take(column.ids[rows])
    costs = constraint.costs(counts[rows])
    if column.populations[ABSENT]:
        costs[column.ids[rows] == ABSENT] = 0.0
    return costs


def _lacking(keys: Sequence[DomainColumn], rows: Rows) -> BoolArray | None:
    """bool[node]: which nodes lack one of the keys; None if none does."""
    lacking: BoolArray | None = None
    for column in keys:
        if not column.populations[ABSENT]:
            continue
        missing = column.ids[rows] == ABSENT
        if missing.any():
            lacking = missing if lacking is None else lacking | missing
    return lacking


def cell_scores(
    cells: _SomeCells,
    *,
    host_allowance: int,
    allowance: int,
    domain_counts: IntArray,
    rounding: Rounding,
) -> IntArray:
    """int64[node]: the normalised scores of all feasible nodes; there must be one.

    Of a constraint on hosts and perhaps one on larger domains (spec 06 §6.3.8). All nodes of a zone
    with equally many matching pods have one score, and there are few such cells
    (`index.topology.cells`): a score is computed for each cell and looked up for each node.

    Either constraint allows for some skew; `domain_counts` are those of the one that is not on
    hosts.
    """
    ids, width, populations = cells
    present: list[int] = populations.nonzero()[0].tolist()
    domains = {cell % width for cell in present}
    if ABSENT in domains:
        # Spec 06 §6.3.7: nodes without the label form the domain "".
        domains = domains - {ABSENT} | {EMPTY}
    host_weight, weight = math.log(len(ids) + 2), math.log(len(domains) + 2)
    # In doubles (spec 06 §6.3.8): Python's are those of NumPy.
    by_domain = [count * weight + allowance for count in domain_counts.tolist()]
    by_domain[ABSENT] = 0.0
    rounded = rounding.one
    raw = [
        rounded(cell // width * host_weight + host_allowance + by_domain[cell % width])
        for cell in present
    ]
    highest, lowest = max(0, *raw), min(raw)
    if highest == 0:
        return np.full(len(ids), MAX_NODE_SCORE, np.int64)
    scores = [0] * (present[-1] + 1)
    for cell, score in zip(present, raw, strict=True):
        scores[cell] = inverted(score, lowest, highest)
    return np.array(scores, np.int64).take(ids)
