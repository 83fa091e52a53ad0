"""The incoming pod's own affinity terms as measures (spec 06 §6.2.3).

A term selects pods by namespace and label. Namespaces selected by label are resolved when the pod
is scheduled, so the result holds for one state of the Namespace objects. Terms become measures, one
per topology key, because counts are summed per key.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubestow.api.labels import Selector
from kubestow.api.pod_info import AffinityTerm, AffinityTerms, WeightedTerm
from kubestow.api.workload import Namespace
from kubestow.cache.objects import ObjectStore
from kubestow.index.topology.measures import InAll, PodSet, WeightedSets
from kubestow.index.topology.reading import Reading, pods

# How many terms are kept: enough for all controllers with pods in the queue; beyond it, all are
# dropped.
RESOLVED_MAX: Final = 16_384


class RequiredTerms(NamedTuple):
    """The required terms of a pod. A pod near others must be near pods that match all of its terms.

    `near_readings` are of the topology keys of the affinity terms, each once. `apart` counts, per
    topology key, how many anti-affinity terms select a pod.
    """

    near: InAll
    near_readings: tuple[Reading, ...]
    apart: tuple[tuple[str, WeightedSets], ...]
    apart_readings: tuple[Reading, ...]


class TopologyPreference(NamedTuple):
    """The preferred terms of a pod for one topology key.

    `pull` weighs pods. `hits` is 0 only where no term matches: weights may add up to 0, and the
    difference matters. `readings` are of the hits and of the pull.
    """

    topology_key: str
    pull: WeightedSets
    hits: WeightedSets
    readings: tuple[Reading, Reading]


class TermResolver:
    """Turns terms into measures, and keeps the result until a Namespace object changes."""

    def __init__(self, namespaces: ObjectStore[Namespace]) -> None:
        self._namespaces = namespaces
        self._version = -1
        self._term_count = 0
        self._names: dict[Selector, frozenset[str]] = {}
        self._required: dict[tuple[tuple[AffinityTerm, ...], ...], RequiredTerms] = {}
        self._preferred: dict[
            tuple[tuple[WeightedTerm, ...], ...], tuple[TopologyPreference, ...]
        ] = {}

    def required(self, terms: AffinityTerms) -> RequiredTerms:
        self._forget_outdated()
        key = terms.required_affinity, terms.required_anti_affinity
        resolved = self._required.get(key)
        if resolved is None:
            near, apart = key
            self._term_count += 1 + len(near) + len(apart)
            near_pods = InAll(tuple(self._pods(term) for term in near))
            near_keys = dict.fromkeys(term.topology_key for term in near)
            measures = tuple(self._by_key((term, 1) for term in apart).items())
            resolved = self._required[key] = RequiredTerms(
                near=near_pods,
                near_readings=tuple(pods(key, near_pods) for key in near_keys),
                apart=measures,
                apart_readings=tuple(pods(key, measure) for key, measure in measures),
            )
        return resolved

    def preferred(self, terms: AffinityTerms) -> tuple[TopologyPreference, ...]:
        self._forget_outdated()
        key = terms.preferred_affinity, terms.preferred_anti_affinity
        resolved = self._preferred.get(key)
        if resolved is None:
            near, apart = key
            self._term_count += 1 + len(near) + len(apart)
            weighted = [
                *((entry.term, entry.weight) for entry in near),
                *((entry.term, -entry.weight) for entry in apart),
            ]
            resolved = self._preferred[key] = tuple(
                _preference(topology_key, pull)
                for topology_key, pull in self._by_key(weighted).items()
            )
        return resolved

    def _by_key(self, terms: Iterable[tuple[AffinityTerm, int]]) -> dict[str, WeightedSets]:
        entries: dict[str, list[tuple[PodSet, int]]] = {}
        for term, weight in terms:
            entries.setdefault(term.topology_key, []).append((self._pods(term), weight))
        return {key: WeightedSets(tuple(weighted)) for key, weighted in entries.items()}

    def _pods(self, term: AffinityTerm) -> PodSet:
        # Spec 06 §6.2.3, the quirk: the selector stays on the term and is then matched against no
        # labels. If it matches, the term selects pods of every namespace.
        if term.namespace_selector.matches({}):
            return PodSet(None, term.selector)
        return PodSet(
            term.namespaces | self._matching_names(term.namespace_selector), term.selector
        )

    def _matching_names(self, selector: Selector) -> frozenset[str]:
        names = self._names.get(selector)
        if names is None:
            names = self._names[selector] = frozenset(
                namespace.metadata.name
                for namespace in self._namespaces.list()
                if selector.matches(namespace.metadata.labels)
            )
        return names

    def _forget_outdated(self) -> None:
        is_full = self._term_count > RESOLVED_MAX
        if self._version != self._namespaces.version or is_full:
            self._version = self._namespaces.version
            self._term_count = 0
            self._names.clear()
            self._required.clear()
            self._preferred.clear()


def _preference(key: str, pull: WeightedSets) -> TopologyPreference:
    hits = _hits(pull)
    return TopologyPreference(key, pull, hits, (pods(key, hits), pods(key, pull)))


def _hits(pull: WeightedSets) -> WeightedSets:
    """A measure that is 0 only if all sets are empty; the pull itself if it cannot cancel out."""
    weights = [weight for _, weight in pull.entries]
    if min(weights) > 0 or max(weights) < 0:
        return pull
    return WeightedSets(tuple((pods, 1) for pods, _ in pull.entries))
