"""NodeAffinityPriority: nodes that match more of the preferred terms (spec 05 §18)."""

import numpy as np

from kubestow.api.labels import SelectorError
from kubestow.api.pod import Pod, PreferredSchedulingTerm
from kubestow.arrays import IntArray
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule, PriorityError
from kubestow.editions.v1_9.plugins.expressions import parse_expressions
from kubestow.index.node_match import labels_match
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared.normalise import normalise


class NodeAffinityPriority(NamedRule):
    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        scores = np.zeros(len(nodes), np.int64)
        for term in _preferred_terms(attempt.pod.pod):
            if term.weight == 0:
                continue
            try:
                requirements = parse_expressions(term.preference.match_expressions)
            except SelectorError as error:
                raise PriorityError(str(error)) from error
            if requirements is not None:
                scores += term.weight * labels_match(nodes, requirements)
        return scores

    def reduce(self, attempt: Attempt, nodes: Nodes, scores: IntArray) -> IntArray:
        return normalise(scores, max_score=MAX_PRIORITY)


def _preferred_terms(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return ()
    return affinity.node_affinity.preferred or ()
