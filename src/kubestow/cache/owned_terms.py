"""The pod affinity terms of the pods on a node, as items to count.

A running pod's terms affect every later pod: its required anti-affinity excludes others from nodes,
its other terms change their scores (spec 06 §6.2). Pods of one controller own equal terms, so a
node counts terms, not pods, and each distinct term is evaluated once.
"""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from kubestow.api.pod_info import AffinityTerm, AffinityTerms, PodInfo

TermKind = Literal[
    "RequiredAffinity", "RequiredAntiAffinity", "PreferredAffinity", "PreferredAntiAffinity"
]


class OwnedTerm(NamedTuple):
    """A term of a pod on a node. `weight` is 0 for required terms, which have none."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0


# Of pods with more terms nothing is kept: they may have thousands.
_TERMS_FEW: Final = 64
# For how many pods' terms they are kept.
OWNED_MAX: Final = 1024


def owned_terms(pod: PodInfo) -> tuple[OwnedTerm, ...]:
    """All terms of the pod; a list with an invalid term counts as empty (spec 06 §6.2.2)."""
    terms = pod.terms
    return _kept(terms) if terms.count <= _TERMS_FEW else _owned(terms)


def _owned(terms: AffinityTerms) -> tuple[OwnedTerm, ...]:
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


_kept: Final = lru_cache(OWNED_MAX)(_owned)
