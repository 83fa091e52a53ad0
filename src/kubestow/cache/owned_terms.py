"""The pod affinity terms of the pods on a node, as items to count.

A running pod's terms affect every later pod: its required anti-affinity excludes others from nodes,
its other terms change their scores (spec 06 §6.2). Pods of one controller own equal terms, so a
node counts terms, not pods, and each distinct term is evaluated once.
"""

from typing import Literal, NamedTuple

from kubestow.api.pod_info import AffinityTerm, PodInfo

TermKind = Literal[
    "RequiredAffinity", "RequiredAntiAffinity", "PreferredAffinity", "PreferredAntiAffinity"
]


class OwnedTerm(NamedTuple):
    """A term of a pod on a node. `weight` is 0 for required terms, which have none."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0


def owned_terms(pod: PodInfo) -> tuple[OwnedTerm, ...]:
    """All terms of the pod; a list with an invalid term counts as empty (spec 06 §6.2.2)."""
    terms = pod.terms
    return (
        *(OwnedTerm("RequiredAffinity", term) for term in terms.required_affinity),
        *(OwnedTerm("RequiredAntiAffinity", term) for term in terms.required_anti_affinity),
        *(
            OwnedTerm("PreferredAffinity", entry.term, entry.weight)
            for entry in terms.preferred_affinity
        ),
        *(
            OwnedTerm("PreferredAntiAffinity", entry.term, entry.weight)
            for entry in terms.preferred_anti_affinity
        ),
    )
