"""The incoming pod's own affinity terms as measures (spec 06 §6.2.3).

A term selects pods by namespace and label. Namespaces selected by label are resolved when the pod
is scheduled, so the result holds for one state of the Namespace objects. Terms become measures, one
per topology key, because counts are summed per key.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubestow.api.labels import Requirement, Selector
from kubestow.api.pod_info import AffinityTerm, AffinityTerms, WeightedTerm
from kubestow.api.workload import Namespace
from kubestow.cache.objects import ObjectStore
from kubestow.index.topology.measures import InAll, PodSet, WeightedSets
from kubestow.index.topology.pod_sets import NamespaceNumbers, Namespaces
from kubestow.index.topology.reading import Reading, pods

# How many terms are kept: enough for all controllers with pods in the queue; beyond it, all are
# dropped.
RESOLVED_MAX: Final = 16_384
# Up to this many selectors are compared with each namespace, others by its labels.
_COMPARED_FEW: Final = 16
# How many numbers may be those of namespaces that are gone, or never were.
UNUSED_NUMBERS_MAX: Final = 1024


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
        self._matching = _MatchingNamespaces(namespaces, NamespaceNumbers())
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
        return PodSet(self._namespaces_of(term), term.selector)

    def _namespaces_of(self, term: AffinityTerm) -> Namespaces:
        """Those that the term lists, and those that its selector matches."""
        return self._matching.names(term)

    def _forget_outdated(self) -> None:
        is_full = self._term_count > RESOLVED_MAX
        if self._version != self._namespaces.version or is_full:
            self._version = self._namespaces.version
            self._term_count = 0
            self._matching = self._matching.renewed()
            self._required.clear()
            self._preferred.clear()


class _MatchingNamespaces:
    """The namespaces of terms, in one state of the Namespace objects.

    A pod may have thousands of terms, each with a selector of its own, and a cluster thousands of
    namespaces: of many selectors each requirement is looked up, and gives one bit per namespace.
    """

    def __init__(self, namespaces: ObjectStore[Namespace], numbers: NamespaceNumbers) -> None:
        self._namespaces = namespaces
        self._numbers = numbers
        self._masks: dict[Selector, int] = {}
        self._by_label: _NamespaceLabels | None = None

    def renewed(self) -> "_MatchingNamespaces":
        """For another state. Numbers stay, so that equal sets of both are equal, unless too many
        of them are out of use."""
        is_full = len(self._numbers) > 2 * len(self._namespaces) + UNUSED_NUMBERS_MAX
        numbers = NamespaceNumbers() if is_full else self._numbers
        return _MatchingNamespaces(self._namespaces, numbers)

    def names(self, term: AffinityTerm) -> Namespaces:
        selector = term.namespace_selector
        if selector.is_nothing:
            return term.namespaces
        numbers = self._numbers
        mask = self._mask(selector)
        for name in term.namespaces:
            mask |= 1 << numbers.add(name)
        return numbers.names(mask)

    def _mask(self, selector: Selector) -> int:
        mask = self._masks.get(selector)
        if mask is None:
            mask = self._masks[selector] = self._find_mask(selector)
        return mask

    def _find_mask(self, selector: Selector) -> int:
        if len(self._masks) < _COMPARED_FEW:
            return self._numbers.mask(
                [
                    self._numbers.add(namespace.metadata.name)
                    for namespace in self._namespaces.list()
                    if selector.matches(namespace.metadata.labels)
                ]
            )
        if self._by_label is None:
            self._by_label = _NamespaceLabels(self._namespaces.list(), self._numbers)
        return self._by_label.matching(selector)


class _NamespaceLabels:
    """Which namespaces have a label, and which have it with a value: one bit each."""

    def __init__(self, namespaces: Iterable[Namespace], numbers: NamespaceNumbers) -> None:
        self._numbers = numbers
        self._found: dict[str, dict[str, list[int]]] = {}
        self._with_value: dict[tuple[str, str], int] = {}
        self._with_key: dict[str, int] = {}
        every: list[int] = []
        for namespace in namespaces:
            number = numbers.add(namespace.metadata.name)
            every.append(number)
            for key, value in namespace.metadata.labels.items():
                self._found.setdefault(key, {}).setdefault(value, []).append(number)
        self._every = numbers.mask(every)

    def matching(self, selector: Selector) -> int:
        mask = self._every
        for requirement in selector.requirements:
            mask &= self._holding(requirement)
        return mask

    def _holding(self, requirement: Requirement) -> int:
        match requirement.operator:
            case "In":
                return self._with_values(requirement)
            case "NotIn":
                return self._every & ~self._with_values(requirement)
            case "Exists":
                return self._having(requirement.key)
            case "DoesNotExist":
                return self._every & ~self._having(requirement.key)
            case "Gt" | "Lt":
                raise AssertionError(f"not an operator of namespace selectors: {requirement}")

    def _with_values(self, requirement: Requirement) -> int:
        mask, key = 0, requirement.key
        by_value = self._found.get(key, {})
        for value in requirement.values:
            if value not in by_value:
                continue
            known = self._with_value.get((key, value))
            if known is None:
                known = self._numbers.mask(by_value[value])
                self._with_value[key, value] = known
            mask |= known
        return mask

    def _having(self, key: str) -> int:
        known = self._with_key.get(key)
        if known is None:
            by_value = self._found.get(key, {})
            known = self._numbers.mask(each for found in by_value.values() for each in found)
            self._with_key[key] = known
        return known


def _preference(key: str, pull: WeightedSets) -> TopologyPreference:
    hits, reading = _hits(pull), pods(key, pull)
    return TopologyPreference(
        key, pull, hits, (reading if hits is pull else pods(key, hits), reading)
    )


def _hits(pull: WeightedSets) -> WeightedSets:
    """A measure that is 0 only if all sets are empty; the pull itself if it cannot cancel out."""
    weights = [weight for _, weight in pull.entries]
    if min(weights) > 0 or max(weights) < 0:
        return pull
    return WeightedSets(tuple((pods, 1) for pods, _ in pull.entries))
