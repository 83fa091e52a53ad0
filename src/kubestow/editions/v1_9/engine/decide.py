"""One scheduling attempt as v1.9 made it (spec 04 §19.1, 05 §16).

    all nodes ── every predicate ──► fit or not, with all reasons
              ── extenders ────────► fewer, with reasons of theirs
              ── none fits ────────► FitError
              ── one fits ─────────► that one; nothing is scored
              ── several ──────────► priorities and extenders, weighted sum, the best take turns

No sampling, no short circuit, and an error on one node fails the attempt even if others fit.

Not here: assume, bind and retry (`scheduler_v1_9`), how extenders are called (`extenders_v1_9`),
preemption (a feature gate that was off).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.labels import join_errors
from kubestow.arrays import ALL_ROWS, BoolArray, IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_9.engine.algorithm import Algorithm, WeightedPriority
from kubestow.editions.v1_9.engine.equivalence_cache import EquivalenceCache
from kubestow.editions.v1_9.engine.extenders import ExtendersV19
from kubestow.editions.v1_9.plugins.contract import (
    Attempt,
    LegacyCluster,
    Predicate,
    Priority,
    PriorityError,
    Verdicts,
    is_reducing,
)
from kubestow.editions.v1_9.plugins.pod import PodInfoV19
from kubestow.editions.v1_9.plugins.priorities.equal import EqualPriority
from kubestow.editions.v1_9.plugins.reasons import FITS, reasons_of
from kubestow.errors import ExtenderError
from kubestow.framework.diagnosis import fit_error_text
from kubestow.index.nodes import Nodes, nodes_of

NO_NODES: Final = "no nodes available to schedule pods"

_NO_ROWS: Final = np.empty(0, np.intp)


class PredicateVerdict(NamedTuple):
    predicate: str
    verdicts: Verdicts


class ScoringError(Exception):
    """A priority failed; the text becomes that of the attempt."""


class DecisionV19:
    """What was decided about one pod, and why.

    node_name    the node chosen; empty if none
    error        the text if none was chosen; `is_fit_error`: the pod fits nowhere, nothing failed
    top_rows     the best nodes in the order in which they take turns
    extender_reasons  why extenders took nodes out, by the names they gave
    """

    __slots__ = (
        "by_predicate",
        "error",
        "extender_reasons",
        "feasible",
        "is_fit_error",
        "node_name",
        "node_names",
        "pod",
        "top_rows",
        "total",
    )

    def __init__(self, pod: PodInfoV19, node_names: Sequence[str]) -> None:
        self.pod = pod
        self.node_names = node_names
        self.by_predicate: tuple[PredicateVerdict, ...] = ()
        self.extender_reasons: Mapping[str, Sequence[str]] = {}
        self.feasible: npt.NDArray[np.intp] = _NO_ROWS
        # Of the feasible nodes: the weighted sum over priorities and extenders.
        self.total: IntArray | None = None
        self.top_rows: npt.NDArray[np.intp] = _NO_ROWS
        self.node_name = ""
        self.error = ""
        self.is_fit_error = False

    @property
    def is_scheduled(self) -> bool:
        return bool(self.node_name)

    @property
    def top_nodes(self) -> list[str]:
        rows: list[int] = self.top_rows.tolist()
        return [self.node_names[row] for row in rows]

    def reasons(self, row: int) -> tuple[str, ...]:
        """All reasons why the pod does not fit on the node, those of extenders last."""
        found: list[str] = []
        for _, verdicts in self.by_predicate:
            code = FITS if verdicts.codes is None else int(verdicts.codes[row])
            if code > FITS:
                found += reasons_of(code)
        found += self.extender_reasons.get(self.node_names[row], ())
        return tuple(found)

    def errors(self, row: int) -> tuple[str, ...]:
        """The errors of predicates on the node."""
        return tuple(
            verdicts.errors[-1 - int(verdicts.codes[row])]
            for _, verdicts in self.by_predicate
            if verdicts.codes is not None and verdicts.codes[row] < FITS
        )


class DeciderV19:
    """Decides on the snapshot, which the caller has refreshed.

    `last_node_index` counts the turns among the best nodes. It grows only if there were several
    feasible nodes.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        cluster: LegacyCluster,
        algorithm: Algorithm,
        *,
        equivalence_cache: EquivalenceCache | None = None,
        extenders: ExtendersV19 | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._cluster = cluster
        self._algorithm = algorithm
        self._equivalence_cache = equivalence_cache
        self._extenders = extenders
        self._turns = Turns(snapshot)
        self.last_node_index = 0

    def decide(self, pod: PodInfoV19) -> DecisionV19:
        snapshot = self._snapshot
        decision = DecisionV19(pod, snapshot.names)
        if len(snapshot) == 0:
            decision.error = NO_NODES
            return decision
        attempt = Attempt(pod, self._cluster)
        self._find_feasible(decision, attempt)
        if decision.error:
            return decision
        if len(decision.feasible) == 1:
            # Nothing to compare: no scores, and `last_node_index` stays.
            decision.node_name = snapshot.names[int(decision.feasible[0])]
            decision.top_rows = decision.feasible
            return decision
        try:
            decision.total = self._score(attempt, decision.feasible)
        except ScoringError as error:
            decision.error = str(error)
            return decision
        best = decision.feasible[decision.total == decision.total.max()]
        decision.top_rows = self._turns.in_turn(best)
        decision.node_name = snapshot.names[self._select(decision.top_rows)]
        return decision

    def _find_feasible(self, decision: DecisionV19, attempt: Attempt) -> None:
        snapshot = self._snapshot
        nodes = nodes_of(snapshot)
        decision.by_predicate = tuple(
            PredicateVerdict(predicate.name, self._check(predicate, attempt, nodes))
            for predicate in self._algorithm.predicates
        )
        all_verdicts = [verdicts for _, verdicts in decision.by_predicate]
        decision.error = predicate_error(all_verdicts)
        if decision.error:
            return
        decision.feasible = np.flatnonzero(fitting(all_verdicts, len(snapshot)))
        if self._extenders is not None:
            try:
                decision.feasible, decision.extender_reasons = self._extenders.filter(
                    attempt.pod.pod, decision.feasible, snapshot
                )
            except ExtenderError as error:
                decision.feasible = _NO_ROWS
                decision.error = str(error)
                return
        if len(decision.feasible) == 0:
            counts = reason_counts(all_verdicts)
            for reasons in decision.extender_reasons.values():
                counts.update(reasons)
            decision.is_fit_error = True
            decision.error = fit_error_text(len(snapshot), counts)

    def _score(self, attempt: Attempt, feasible: npt.NDArray[np.intp]) -> IntArray:
        snapshot, extenders = self._snapshot, self._extenders
        # A view on all rows avoids copying every column that is read.
        nodes = nodes_of(snapshot, ALL_ROWS if len(feasible) == len(snapshot) else feasible)
        priorities = self._algorithm.priorities
        if extenders is None:
            return prioritize(priorities, attempt, nodes)
        total = prioritize(priorities, attempt, nodes, has_extenders=True)
        for part in extenders.prioritize(attempt.pod.pod, feasible, snapshot):
            total = total + part.scores * part.weight
        return total

    def _check(self, predicate: Predicate, attempt: Attempt, nodes: Nodes) -> Verdicts:
        if self._equivalence_cache is None:
            return predicate.check(attempt, nodes)
        return self._equivalence_cache.check(predicate, attempt, nodes)

    def _select(self, top_rows: npt.NDArray[np.intp]) -> int:
        chosen = int(top_rows[self.last_node_index % len(top_rows)])
        self.last_node_index += 1
        return chosen


class Turns:
    """The order in which nodes take turns: names descending. Kept while the nodes are the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._epoch = -1
        self._order: npt.NDArray[np.intp] = _NO_ROWS

    def in_turn(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The rows in the order of their turns."""
        snapshot = self._snapshot
        if self._epoch != snapshot.log.epoch:
            self._epoch = snapshot.log.epoch
            names = snapshot.names
            order = sorted(range(len(names)), key=names.__getitem__, reverse=True)
            self._order = np.array(order, np.intp)
        is_wanted = np.zeros(len(self._order), np.bool_)
        is_wanted[rows] = True
        return self._order[is_wanted[self._order]]


def fitting(all_verdicts: Sequence[Verdicts], node_count: int) -> BoolArray:
    """bool[node]: whether every predicate says that the pod fits."""
    mask = np.ones(node_count, np.bool_)
    for codes, _ in all_verdicts:
        if codes is not None:
            mask &= codes == FITS
    return mask


def reason_counts(all_verdicts: Sequence[Verdicts]) -> Counter[str]:
    """How often each reason was given; a node that gives a reason twice counts twice."""
    counts: Counter[str] = Counter()
    for codes, _ in all_verdicts:
        if codes is None:
            continue
        distinct, node_counts = np.unique(codes, return_counts=True)
        for code, node_count in zip(distinct.tolist(), node_counts.tolist(), strict=True):
            for reason in reasons_of(code) if code > FITS else ():
                counts[reason] += node_count
    return counts


def predicate_error(all_verdicts: Sequence[Verdicts]) -> str:
    """The text of an attempt in which predicates failed on some nodes; empty if none did.

    A node has the error of the first predicate that fails on it; upstream's order is random.
    """
    failed: dict[int, str] = {}
    for codes, errors in all_verdicts:
        if codes is None or not errors:
            continue
        rows: list[int] = np.flatnonzero(codes < FITS).tolist()
        for row in rows:
            failed.setdefault(row, errors[-1 - int(codes[row])])
    counts = Counter(failed.values())
    return join_errors(
        text if count == 1 else f"{text} (repeated {count} times)"
        for text, count in sorted(counts.items())
    )


def prioritize(
    priorities: Sequence[WeightedPriority],
    attempt: Attempt,
    nodes: Nodes,
    *,
    has_extenders: bool = False,
) -> IntArray:
    """The weighted sum of the priorities' scores of the feasible nodes; raises ScoringError."""
    # Spec 04 §19.1, 05 §16: without any priority all nodes score 1, or 0 if there are extenders.
    equal = () if has_extenders else (WeightedPriority(EqualPriority(), 1),)
    weighted = priorities or equal
    total = np.zeros(len(nodes), np.int64)
    for priority, weight in weighted:
        _, score = score_by(priority, attempt, nodes)
        total += score * weight
    return total


def score_by(
    priority: Priority, attempt: Attempt, nodes: Nodes
) -> tuple[IntArray | None, IntArray]:
    """Scores of one priority before its reduce step, if it has one, and after it."""
    try:
        mapped = priority.map(attempt, nodes)
    except PriorityError as error:
        # One message per node, though all are equal; unlike those of predicates they are listed.
        messages = [str(error)] * len(nodes)
        text = f"[{', '.join(messages)}]" if len(messages) > 1 else messages[0]
        raise ScoringError(text) from error
    if is_reducing(priority):
        return mapped, priority.reduce(attempt, nodes, mapped)
    return None, mapped
