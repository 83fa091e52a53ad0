"""Node selectors over all nodes at once.

A requirement reads one label, so it is evaluated once per distinct value of that label. The mask of
a list of requirements is kept by the snapshot and follows label changes row by row; pods of one
controller, and different selectors with a term in common, share it. Names are compared by row and
not kept: every pod of a DaemonSet names another node.
"""

import numpy as np

from kubestow.api.labels import Requirement
from kubestow.api.node_selector import (
    NAME_FIELD,
    CompiledNodeSelector,
    CompiledTerm,
    FieldRequirement,
    PreferredTerms,
    RequiredNodeAffinity,
)
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.index.distinct import per_distinct
from kubestow.index.nodes import Nodes


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
    if len(selector.terms) == 1:
        return matches_term(nodes, selector.terms[0])
    mask = np.zeros(len(nodes), np.bool_)
    for term in selector.terms:
        mask |= matches_term(nodes, term)
    return mask


def preferred_score(nodes: Nodes, preferred: PreferredTerms) -> IntArray:
    """int64[node]: the sum of the weights of the terms each node matches."""
    scores = np.zeros(len(nodes), np.int64)
    for entry in preferred.terms:
        scores += entry.weight * matches_term(nodes, entry.term)
    return scores


def matches_term(nodes: Nodes, term: CompiledTerm) -> BoolArray:
    """bool[node]: which nodes satisfy every requirement of the term. Read-only for the caller."""
    mask = labels_match(nodes, term.labels)
    for field in term.fields:
        mask = mask & _field_matches(nodes, field)
    return mask


def labels_match(nodes: Nodes, requirements: tuple[Requirement, ...]) -> BoolArray:
    """bool[node]: which nodes' labels satisfy all requirements. Read-only for the caller."""
    if not requirements:
        return np.ones(len(nodes), np.bool_)

    def compute(nodes: Nodes) -> BoolArray:
        mask = _requirement_matches(nodes, requirements[0])
        for requirement in requirements[1:]:
            # A pod may name thousands of keys; the first read of each is a pass over all nodes.
            if not mask.any():
                break
            mask &= _requirement_matches(nodes, requirement)
        return mask

    return nodes.tracked(("node labels", requirements), Depends.NODE, compute)


def name_matches(nodes: Nodes, name: str) -> BoolArray:
    """bool[node]: which of the nodes has this name."""
    row = nodes.snapshot.row_of(name)
    if row is None:
        return np.zeros(len(nodes), np.bool_)
    if isinstance(nodes.rows, slice):
        return np.arange(len(nodes.snapshot))[nodes.rows] == row
    return nodes.rows == row


def _requirement_matches(nodes: Nodes, requirement: Requirement) -> BoolArray:
    ids = nodes.label_ids(requirement.key)
    values = nodes.label_values(requirement.key)
    return per_distinct(ids, values, requirement.matches_value, np.bool_)


def _field_matches(nodes: Nodes, field: FieldRequirement) -> BoolArray:
    if field.key != NAME_FIELD:
        # Any other field reads as empty on every node.
        return np.full(len(nodes), field.matches_name(""), np.bool_)
    named = name_matches(nodes, field.value)
    return named if field.operator == "In" else ~named
