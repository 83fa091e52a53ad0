"""Node selectors over all nodes at once.

A requirement reads one label, so it is evaluated once per distinct value of that label. The mask of
a list of requirements is kept by the snapshot and follows label changes row by row; pods of one
controller, and different selectors with a term in common, share it. Names are compared by row and
not kept: every pod of a DaemonSet names another node.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from kubestow.api.labels import Requirement
from kubestow.api.node_selector import (
    NAME_FIELD,
    CompiledNodeSelector,
    CompiledTerm,
    FieldRequirement,
    PreferredTerms,
    RequiredNodeAffinity,
    WeightedNodeTerm,
)
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.index.nodes import Nodes
from kubestow.index.present import LabelKeys
from kubestow.index.term_rows import TermRows, WeightedRows, as_mask
from kubestow.index.tracked import LabelColumns

# Up to this many terms the mask of each is kept, since other pods have it too. Beyond these numbers
# masks are computed for every attempt: their keys alone may take megabytes.
TERMS_BY_THEMSELVES_MAX: Final = 16
REQUIREMENTS_KEPT_MAX: Final = 64
VALUES_KEPT_MAX: Final = 1_024


def matches_required(nodes: Nodes, required: RequiredNodeAffinity) -> BoolArray:
    """bool[node]: which nodes a pod with this `nodeSelector` and required affinity may run on.

    Terms that do not parse match nothing (spec 05 §7.3). Read-only for the caller.
    """
    if required.selector is None:
        return labels_match(nodes, required.equalities)
    mask = matches_selector(nodes, required.selector)
    return mask & labels_match(nodes, required.equalities) if required.equalities else mask


def matches_selector(nodes: Nodes, selector: CompiledNodeSelector) -> BoolArray:
    """bool[node]: which nodes match at least one term. Read-only for the caller."""
    terms = selector.terms
    if len(terms) > TERMS_BY_THEMSELVES_MAX:
        return _any_term(nodes, terms)
    if len(terms) == 1:
        return matches_term(nodes, terms[0])
    mask = np.zeros(len(nodes), np.bool_)
    for term in terms:
        mask |= matches_term(nodes, term)
    return mask


def preferred_score(nodes: Nodes, preferred: PreferredTerms) -> IntArray:
    """int64[node]: the sum of the weights of the terms each node matches."""
    terms = preferred.terms
    if len(terms) > TERMS_BY_THEMSELVES_MAX:
        return _sum_of_terms(nodes, terms)
    scores = np.zeros(len(nodes), np.int64)
    for entry in terms:
        scores += entry.weight * matches_term(nodes, entry.term)
    return scores


def matches_term(nodes: Nodes, term: CompiledTerm) -> BoolArray:
    """bool[node]: which nodes satisfy every requirement of the term. Read-only for the caller."""
    mask = labels_match(nodes, term.labels)
    return mask & _fields_match(nodes, term.fields) if term.fields else mask


def labels_match(nodes: Nodes, requirements: tuple[Requirement, ...]) -> BoolArray:
    """bool[node]: which nodes' labels satisfy all requirements. Read-only for the caller."""
    if not requirements:
        return np.ones(len(nodes), np.bool_)

    def compute(nodes: Nodes) -> BoolArray:
        return all_match(nodes, requirements)

    if len(requirements) > REQUIREMENTS_KEPT_MAX:
        return _any_term(nodes, (CompiledTerm(requirements),))
    if any(len(requirement.values) > VALUES_KEPT_MAX for requirement in requirements):
        return compute(nodes)
    return nodes.tracked(("node labels", requirements), Depends.NODE, compute)


# --- Very many terms ----------------------------------------------------------------------------


def _any_term(nodes: Nodes, terms: Sequence[CompiledTerm]) -> BoolArray:
    rows = TermRows(nodes, terms)
    found = 0
    for term in terms:
        found |= rows.matching(term)
        if found == rows.everything:
            break
    return as_mask(found, len(nodes))


def _sum_of_terms(nodes: Nodes, terms: Sequence[WeightedNodeTerm]) -> IntArray:
    rows = TermRows(nodes, [entry.term for entry in terms])
    sums = WeightedRows()
    for entry in terms:
        sums.add(rows.matching(entry.term), entry.weight)
    return sums.sums(len(nodes))


# --- Names --------------------------------------------------------------------------------------


def name_matches(nodes: Nodes, name: str) -> BoolArray:
    """bool[node]: which of the nodes has this name."""
    row = nodes.snapshot.row_of(name)
    if row is None:
        return np.zeros(len(nodes), np.bool_)
    if isinstance(nodes.rows, slice):
        return np.arange(len(nodes.snapshot))[nodes.rows] == row
    return nodes.rows == row


def _fields_match(nodes: Nodes, fields: Sequence[FieldRequirement]) -> BoolArray:
    """bool[node]: which nodes' fields satisfy all requirements."""
    excluded: set[str] = set()
    names: set[str] = set()
    for field in fields:
        if field.key != NAME_FIELD:
            # Any other field reads as empty on every node.
            if not field.matches_name(""):
                return np.zeros(len(nodes), np.bool_)
        elif field.operator == "In":
            names.add(field.value)
        else:
            excluded.add(field.value)
    if len(names) > 1 or names & excluded:
        return np.zeros(len(nodes), np.bool_)
    if names:
        return name_matches(nodes, names.pop())
    snapshot = nodes.snapshot
    mask = np.ones(len(snapshot), np.bool_)
    rows = [snapshot.row_of(name) for name in excluded]
    mask[[row for row in rows if row is not None]] = False
    return mask[nodes.rows]


def all_match(nodes: Nodes, requirements: Iterable[Requirement]) -> BoolArray:
    """bool[node]: where all of these hold; `term_rows` is for very many of them.

    A requirement reads one label, so it is a set of that label's values. Requirements on a key that
    no node has hold on all nodes or on none, and need no column.
    """
    columns = nodes.snapshot.derived(LabelColumns)
    present: Mapping[str, int] = nodes.snapshot.derived(LabelKeys).present()
    left: list[Requirement] = []
    for requirement in requirements:
        if requirement.key in present:
            left.append(requirement)
        elif not requirement.matches_value(None):
            return np.zeros(len(nodes), np.bool_)
    mask = np.ones(len(nodes), np.bool_)
    for requirement in left:
        column = columns.column(requirement.key)
        mask &= column.matching(requirement)[column.ids[nodes.rows]]
        if not mask.any():
            break
    return mask
