"""What is counted: pods that a selector matches, and terms of running pods that select a pod.

A measure is how much one item counts. It is a value: two pods with equal measures share a tally.
Items are measured once, not once per pod: pods with the same namespace and labels are one item, and
so are equal terms.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from kubestow.api.labels import Selector
from kubestow.api.pod_info import AffinityTerm, PodClass
from kubestow.cache.owned_terms import OwnedTerm, TermKind
from kubestow.index.topology.pod_sets import PodSet, WeightTable

# Up to this many sets a pod is compared with each.
SETS_BY_THEMSELVES_MAX: Final = 16

T_contra = TypeVar("T_contra", contravariant=True)

# A label and its value that every pod a selector matches must have.
Anchor = tuple[str, str]


class InAll:
    """Counts the pods that are in every one of the sets; without sets, none."""

    __slots__ = ("_hash", "_table", "anchor", "sets")

    def __init__(self, sets: tuple[PodSet, ...]) -> None:
        self.sets: Final = sets
        self.anchor: Anchor | None = None
        for pods in sets:
            self.anchor = anchor_of(pods.selector)
            if self.anchor is not None:
                break
        self._hash = hash(sets)
        self._table: WeightTable | None = None

    def weigh(self, pod_class: PodClass, /) -> int:
        sets = self.sets
        if len(sets) <= SETS_BY_THEMSELVES_MAX:
            return int(bool(sets) and all(pods.has(pod_class) for pods in sets))
        if self._table is None:
            self._table = WeightTable((pods, 1) for pods in sets)
        return int(self._table.weigh(pod_class) == len(sets))

    @property
    def size(self) -> int:
        return len(self.sets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InAll) and self.sets == other.sets

    def __hash__(self) -> int:
        return self._hash


class WeightedSets:
    """Counts each pod once for every set it is in, times the weight of the set."""

    __slots__ = ("_hash", "_table", "anchor", "entries")

    def __init__(self, entries: tuple[tuple[PodSet, int], ...]) -> None:
        self.entries: Final = entries
        anchors = {anchor_of(pods.selector) for pods, _ in entries}
        self.anchor: Final = anchors.pop() if len(anchors) == 1 else None
        self._hash = hash(entries)
        self._table: WeightTable | None = None

    def weigh(self, pod_class: PodClass, /) -> int:
        entries = self.entries
        if len(entries) <= SETS_BY_THEMSELVES_MAX:
            return sum(weight for pods, weight in entries if pods.has(pod_class))
        if self._table is None:
            self._table = WeightTable(entries)
        return self._table.weigh(pod_class)

    @property
    def size(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeightedSets) and self.entries == other.entries

    def __hash__(self) -> int:
        return self._hash


NO_PODS: Final = InAll(())


class Live(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What the measure counts, without pods that are being deleted."""

    measure: "Measure[PodClass]"

    def weigh(self, pod_class: PodClass, /) -> int:
        return 0 if pod_class.is_terminating else self.measure.weigh(pod_class)

    @property
    def size(self) -> int:
        return self.measure.size

    @property
    def anchor(self) -> Anchor | None:
        return anchor_of_measure(self.measure)


class Measure(Protocol[T_contra]):
    """What a tally counts. Hashable: equal measures share one tally."""

    def weigh(self, item: T_contra, /) -> int:
        """How much one such item adds; most add 0."""
        ...

    def __hash__(self) -> int: ...

    @property
    def size(self) -> int:
        """How many sets of pods it has."""
        ...


class Pull(NamedTuple):
    """What a term of each kind adds; `is_weighted` multiplies preferred ones by their weight."""

    required_affinity: int = 0
    required_anti_affinity: int = 0
    preferred_affinity: int = 0
    preferred_anti_affinity: int = 0
    is_weighted: bool = False

    @property
    def kinds(self) -> Iterator[TermKind]:
        """The kinds of terms that add something."""
        if self.required_affinity:
            yield "RequiredAffinity"
        if self.required_anti_affinity:
            yield "RequiredAntiAffinity"
        if self.preferred_affinity:
            yield "PreferredAffinity"
        if self.preferred_anti_affinity:
            yield "PreferredAntiAffinity"

    def of(self, owned: OwnedTerm) -> int:
        match owned.kind:
            case "RequiredAffinity":
                return self.required_affinity
            case "RequiredAntiAffinity":
                return self.required_anti_affinity
            case "PreferredAffinity":
                amount = self.preferred_affinity
            case "PreferredAntiAffinity":
                amount = self.preferred_anti_affinity
        return amount * owned.weight if self.is_weighted else amount


class Exposure(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Counts the terms of one topology key among those that select a pod (`TermLedger.selecting`).

    Pods that the same terms select have equal exposures, whatever their labels are.
    """

    selecting: frozenset[AffinityTerm]
    topology_key: str
    pull: Pull

    @property
    def size(self) -> int:
        return len(self.selecting)

    def weigh(self, owned: OwnedTerm, /) -> int:
        if owned.term.topology_key != self.topology_key or owned.term not in self.selecting:
            return 0
        return self.pull.of(owned)


def anchor_of(selector: Selector) -> Anchor | None:
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


def anchor_of_measure(measure: Measure[PodClass]) -> Anchor | None:
    return measure.anchor if isinstance(measure, InAll | WeightedSets | Live) else None
