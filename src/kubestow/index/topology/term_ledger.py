"""The affinity terms that running pods own, counted per row, and whom they concern.

The symmetric side of pod affinity (spec 06 §6.2.5, §6.2.8): an incoming pod has to know which terms
of pods all over the cluster mean it. An `Exposure` finds out for all pods of one class at once; its
tally counts, per row, the terms of one topology key that mean them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubestow.api.pod_info import PodClass
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.owned_terms import OwnedTerm, TermKind
from kubestow.index.topology.pod_sets import Anchor, anchor_of
from kubestow.index.topology.tallies import Ledger, Measure


class Pull(NamedTuple):
    """What a term of each kind adds; `is_weighted` multiplies preferred ones by their weight."""

    required_affinity: int = 0
    required_anti_affinity: int = 0
    preferred_affinity: int = 0
    preferred_anti_affinity: int = 0
    is_weighted: bool = False

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


class Exposure:
    """Counts the terms of one topology key that mean a pod of this class."""

    __slots__ = ("_hash", "_namespace_labels", "_pull", "_topology_key", "pod_class")

    def __init__(
        self,
        pod_class: PodClass,
        *,
        namespace_labels: Mapping[str, str],
        topology_key: str,
        pull: Pull,
    ) -> None:
        self.pod_class = pod_class
        self._namespace_labels = namespace_labels
        self._topology_key = topology_key
        self._pull = pull
        self._hash = hash((pod_class, topology_key, pull))

    def weigh(self, owned: OwnedTerm, /) -> int:
        term = owned.term
        if term.topology_key != self._topology_key:
            return 0
        amount = self._pull.of(owned)
        if amount == 0:
            return 0
        pod_class = self.pod_class
        is_meant = term.matches(pod_class.namespace, pod_class.labels, self._namespace_labels)
        return amount if is_meant else 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Exposure)
            and self.pod_class is other.pod_class
            and self._topology_key == other._topology_key
            and self._pull == other._pull
            and self._namespace_labels == other._namespace_labels
        )

    def __hash__(self) -> int:
        return self._hash


class TermLedger(Ledger[OwnedTerm]):
    """Terms on every row. Terms that ask for a label are weighed only for pods that have it."""

    def __init__(self) -> None:
        super().__init__(_term_counts)
        self._anchored: dict[Anchor | None, dict[OwnedTerm, None]] = {}
        self._key_counts: dict[TermKind, dict[str, int]] = {}
        # Grows whenever a term comes up that nobody had, or goes with its last owner.
        self.version = 0

    def concern(self, pod_class: PodClass, namespace_labels: Mapping[str, str]) -> bool:
        """Whether any term, of whatever kind, means pods of this class."""
        return any(
            item.term.matches(pod_class.namespace, pod_class.labels, namespace_labels)
            for item in self._items_about(pod_class)
        )

    def topology_keys(self, *kinds: TermKind) -> Iterable[str]:
        """The keys of the terms of these kinds that pods own right now."""
        if len(kinds) == 1:
            return self._key_counts.get(kinds[0], ())
        return dict.fromkeys(key for kind in kinds for key in self._key_counts.get(kind, ()))

    def _items_for(self, measure: Measure[OwnedTerm]) -> Iterable[OwnedTerm]:
        assert isinstance(measure, Exposure), measure
        return self._items_about(measure.pod_class)

    def _items_about(self, pod_class: PodClass) -> Iterable[OwnedTerm]:
        for anchor in (None, *pod_class.labels.items()):
            yield from self._anchored.get(anchor, ())

    def _on_new_item(self, item: OwnedTerm) -> None:
        self.version += 1
        self._anchored.setdefault(anchor_of(item.term.selector), {})[item] = None
        keys = self._key_counts.setdefault(item.kind, {})
        keys[item.term.topology_key] = keys.get(item.term.topology_key, 0) + 1

    def _on_retired_item(self, item: OwnedTerm) -> None:
        self.version += 1
        anchor, key = anchor_of(item.term.selector), item.term.topology_key
        del self._anchored[anchor][item]
        if not self._anchored[anchor]:
            del self._anchored[anchor]
        keys = self._key_counts[item.kind]
        keys[key] -= 1
        if not keys[key]:
            del keys[key]


def _term_counts(info: NodeInfo) -> Mapping[OwnedTerm, int]:
    return info.term_counts
