"""MatchNodeSelector: `nodeSelector` and required node affinity (spec 05 §17.2)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.labels import SelectorError
from kubestow.api.pod import NodeSelectorTerm, Pod
from kubestow.arrays import BoolArray
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.expressions import node_selector_requirements, parse_expressions
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.node_match import labels_match
from kubestow.index.nodes import Nodes

_NOT_SELECTED: Final = code_of("MatchNodeSelector")


class MatchNodeSelector(NamedRule):
    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        pod = attempt.pod.pod
        equalities = node_selector_requirements(pod.spec.node_selector)
        terms = _required_terms(pod)
        if not equalities and terms is None:
            return ALL_FIT
        mask = labels_match(nodes, equalities)
        if terms is not None:
            mask = mask & _matches_any(nodes, terms)
        return Verdicts(failing_where(~mask, _NOT_SELECTED))


def _required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required
    return None if required is None else required.node_selector_terms


def _matches_any(nodes: Nodes, terms: tuple[NodeSelectorTerm, ...]) -> BoolArray:
    mask = np.zeros(len(nodes), np.bool_)
    for term in terms:
        try:
            requirements = parse_expressions(term.match_expressions)
        except SelectorError:
            # The terms before it may have matched; those after it are not tried.
            break
        if requirements is not None:
            mask |= labels_match(nodes, requirements)
    return mask
