"""How evenly the pods would be spread on each node (spec 06 §6.3.7, §6.3.8)."""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.arrays import BoolArray, FloatArray, IntArray, Rows
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import ABSENT, EMPTY, DomainColumn
from kubestow.plugins.pod_topology_spread.constraints import (
    Constraint,
    Eligibilities,
    topology_keys,
)


class SoftConstraint(NamedTuple):
    """The cost of a node for one constraint: count times weight, plus the allowance for the skew.

    counts   int64[domain], or int64[row] where every node is a domain
    """

    column: DomainColumn
    counts: IntArray
    weight: np.float64
    allowance: np.float64
    is_by_row: bool

    def costs(self, counts: IntArray) -> FloatArray:
        """In doubles and in this order (spec 06 §6.3.8)."""
        return counts * self.weight + self.allowance


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


def score_state(
    pod: PodInfo,
    constraints: Sequence[Constraint],
    nodes: Nodes,
    counts: TopologyCounts,
    *,
    requires_all_keys: bool,
    comparison_operators: bool,
) -> ScoreState:
    """`nodes` are the feasible ones: sizes come from them, counts from all nodes."""
    names = topology_keys(constraints)
    # Keys that no node has share their column.
    keys = tuple(dict.fromkeys(map(counts.column, names))) if requires_all_keys else ()
    ignored = _lacking(keys, nodes.rows)
    preparer = _Preparer(
        pod,
        nodes,
        counts,
        needed=names if requires_all_keys else (),
        ignored=ignored,
        comparison_operators=comparison_operators,
    )
    # On a key that no node has, a constraint costs nothing anywhere.
    prepared = tuple(
        preparer.prepare(constraint)
        for constraint in constraints
        if counts.has_key(constraint.topology_key)
    )
    return ScoreState(prepared, keys, nodes.rows, ignored)


def raw_scores(
    state: ScoreState,
    nodes: Nodes,
    to_integers: Callable[[FloatArray], IntArray] | None = None,
) -> IntArray:
    """int64[node]: the higher, the more uneven; 0 for ignored nodes. Sums are rounded, unless
    `to_integers` does something else."""
    rows = nodes.rows
    # Summed in the order of the constraints: doubles have another sum in another order.
    if state.constraints:
        sums = reduce(np.add, (_costs_at(each, rows) for each in state.constraints))
        scores = (to_integers or _rounded)(sums)
    else:
        scores = np.zeros(len(nodes), np.int64)
    ignored = state.ignored if rows is state.rows else _lacking(state.keys, rows)
    if ignored is not None:
        scores[ignored] = 0
    return scores


def normalised(raw: IntArray, ignored: BoolArray | None) -> IntArray:
    """Invert the scores of all feasible nodes: 100 for the most even, 0 for ignored ones."""
    scored = raw if ignored is None else raw[~ignored]
    highest = int(scored.max(initial=0))
    if highest == 0:
        scores = np.full_like(raw, MAX_NODE_SCORE)
    else:
        # Many nodes have few distinct raw scores: then each is computed once and looked up.
        is_table = highest < len(raw)
        values = np.arange(highest + 1) if is_table else raw
        scores = MAX_NODE_SCORE * (highest + int(scored.min()) - values) // highest
        if is_table:
            scores = scores.take(raw)
    if ignored is not None:
        scores[ignored] = 0
    return scores


class _Preparer:
    """Prepares the soft constraints of one pod."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: Nodes,
        counts: TopologyCounts,
        *,
        needed: tuple[str, ...],
        ignored: BoolArray | None,
        comparison_operators: bool,
    ) -> None:
        self._pod = pod
        self._nodes = nodes
        self._counts = counts
        self._eligibilities = Eligibilities(
            pod,
            needed,
            comparison_operators=comparison_operators,
            counts_unlabelled=not needed,
        )
        self._ignored = ignored

    def prepare(self, constraint: Constraint) -> SoftConstraint:
        pod, counts = self._pod, self._counts
        column = counts.column(constraint.topology_key)
        tally = counts.live_pods(constraint.measure(pod.namespace))
        if constraint.topology_key == HOSTNAME_LABEL:
            # Every node is a domain, counted whether it is eligible or not.
            return self._soft(constraint, column, tally.rows, self._node_count(), is_by_row=True)
        eligibility = self._eligibilities.of(constraint)
        sums = tally.sums(counts.column(constraint.topology_key, eligibility))
        size = self._domain_count(column)
        return self._soft(constraint, column, sums.values, size, is_by_row=False)

    @staticmethod
    def _soft(
        constraint: Constraint,
        column: DomainColumn,
        counts: IntArray,
        size: int,
        *,
        is_by_row: bool,
    ) -> SoftConstraint:
        # math.log, not np.log, whose vectorised forms may differ in the last bit between machines.
        weight = np.float64(math.log(size + 2))
        allowance = np.float64(constraint.max_skew - 1)
        return SoftConstraint(column, counts, weight, allowance, is_by_row)

    def _node_count(self) -> int:
        ignored = self._ignored
        return len(self._nodes) - (0 if ignored is None else int(np.count_nonzero(ignored)))

    def _domain_count(self, column: DomainColumn) -> int:
        """How many domains the feasible nodes have, without ignored nodes.

        Spec 06 §6.3.7: nodes without the label form the domain "", where they are not ignored.
        """
        if self._ignored is None and len(self._nodes) == len(column.ids):
            is_new = bool(column.populations[ABSENT]) and not column.populations[EMPTY]
            return column.domain_count + is_new
        ids = column.ids[self._nodes.rows]
        if self._ignored is not None:
            ids = ids[~self._ignored]
        populated = np.zeros(len(column.populations), np.bool_)
        populated[ids] = True
        populated[EMPTY] |= populated[ABSENT]
        return int(np.count_nonzero(populated[EMPTY:]))


def _costs_at(constraint: SoftConstraint, rows: Rows) -> FloatArray:
    """float64[node]; 0 for a node without the key, without the allowance for the skew."""
    column, counts = constraint.column, constraint.counts
    if not constraint.is_by_row:
        costs = constraint.costs(counts)
        costs[ABSENT] = 0.0
        return costs.take(column.ids[rows])
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


def _rounded(sums: FloatArray) -> IntArray:
    """To the nearest integer, halves away from zero; np.rint would round them to even."""
    # Adding a half is exact here: a sum is 0 or, as every weight is ln 2 or more, above a half.
    return np.floor(sums + 0.5).astype(np.int64)
