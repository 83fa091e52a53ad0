"""The pod affinity terms that pods on a node bring along, as things to count.

A running pod's terms matter to every pod that comes after it: its required anti-affinity keeps
others out, its other terms attract or repel them (spec 06 §6.2). Pods of one controller own equal
terms, so a node counts terms, not pods, and whoever asks evaluates each distinct term once.
"""

from typing import Literal, NamedTuple

from kubestow.api.pod_info import AffinityTerm, PodInfo

TermKind = Literal[
    "RequiredAffinity", "RequiredAntiAffinity", "PreferredAffinity", "PreferredAntiAffinity"
]


class OwnedTerm(NamedTuple):
    """A term of a pod on a node. `weight` is 0 for required ones, which have none."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0


def owned_terms(pod: PodInfo) -> tuple[OwnedTerm, ...]:
    """All terms of the pod; a list with a mistake in it is as good as empty (spec 06 §6.2.2)."""
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
