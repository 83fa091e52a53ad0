"""Which pods a selector means, as things that can be counted.

Pods are told apart by their class (namespace and labels), so a set is asked once per class. Sets
are values: two pods that ask for the same thing get the same tally.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from kubestow.api.labels import Selector
from kubestow.api.pod_info import PodClass
from kubestow.cache.node_info import NodeInfo
from kubestow.index.topology.tallies import Ledger, Measure, Tally

# A label and its value that every pod a selector matches must have.
Anchor = tuple[str, str]


class PodSet(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The pods of these namespaces (None: of any) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector

    def has(self, pod_class: PodClass) -> bool:
        return (
            self.namespaces is None or pod_class.namespace in self.namespaces
        ) and self.selector.matches(pod_class.labels)


class InAll(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Counts the pods that are in every one of the sets; without sets, none."""

    sets: tuple[PodSet, ...]

    def weigh(self, pod_class: PodClass, /) -> int:
        return int(bool(self.sets) and all(pods.has(pod_class) for pods in self.sets))

    @property
    def anchor(self) -> Anchor | None:
        return next(filter(None, (anchor_of(pods.selector) for pods in self.sets)), None)


class WeightedSets(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Counts each pod once for every set it is in, times the weight of the set."""

    entries: tuple[tuple[PodSet, int], ...]

    def weigh(self, pod_class: PodClass, /) -> int:
        return sum(weight for pods, weight in self.entries if pods.has(pod_class))

    @property
    def anchor(self) -> Anchor | None:
        anchors = {anchor_of(pods.selector) for pods, _ in self.entries}
        return anchors.pop() if len(anchors) == 1 else None


NO_PODS: Final = InAll(())


class PodLedger(Ledger[PodClass]):
    """Pods by class on every row.

    Where every pod has labels of its own, each brings a new class. It is measured only by tallies
    that ask for one of its labels, and by the few that ask for no label in particular.
    """

    def __init__(self, read: Callable[[NodeInfo], Mapping[PodClass, int]]) -> None:
        super().__init__(read)
        self._anchored: dict[Anchor | None, dict[Tally[PodClass], None]] = {}
        self._labelled: dict[Anchor, dict[PodClass, None]] = {}

    def _items_for(self, measure: Measure[PodClass]) -> Iterable[PodClass]:
        anchor = _anchor_of(measure)
        return super()._items_for(measure) if anchor is None else self._labelled.get(anchor, ())

    def _on_new_item(self, item: PodClass) -> None:
        for label in item.labels.items():
            self._labelled.setdefault(label, {})[item] = None

    def _on_retired_item(self, item: PodClass) -> None:
        for label in item.labels.items():
            labelled = self._labelled[label]
            del labelled[item]
            if not labelled:
                del self._labelled[label]

    def _tallies_for(self, item: PodClass) -> Iterable[Tally[PodClass]]:
        for anchor in (None, *item.labels.items()):
            yield from self._anchored.get(anchor, ())

    def _on_new_tally(self, tally: Tally[PodClass]) -> None:
        self._anchored.setdefault(_anchor_of(tally.measure), {})[tally] = None

    def _on_dropped_tally(self, tally: Tally[PodClass]) -> None:
        anchor = _anchor_of(tally.measure)
        del self._anchored[anchor][tally]
        if not self._anchored[anchor]:
            del self._anchored[anchor]


def anchor_of(selector: Selector) -> Anchor | None:
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


def _anchor_of(measure: Measure[PodClass]) -> Anchor | None:
    return measure.anchor if isinstance(measure, InAll | WeightedSets) else None
