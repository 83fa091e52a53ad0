"""SelectorSpreadPriority: spreads pods of a service or controller (spec 06 §6.6.3)."""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from kubestow.api.labels import Selector, SelectorError, parse_label_selector, selector_from_map
from kubestow.api.meta import LabelSelector
from kubestow.api.owners import services_of
from kubestow.api.pod_info import PodClass
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL
from kubestow.arrays import IntArray
from kubestow.editions.shared.zone_spread import spread
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, Attempt, NamedRule
from kubestow.index.nodes import Nodes
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.measures import Live


class SelectorSpreadPriority(NamedRule):
    """Spreads equal pods. ServiceSpreadingPriority, too, has the controllers' selectors (spec 06
    §6.6.4)."""

    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        selectors = frozenset(spread_selectors(attempt))
        if not selectors:
            return np.zeros(len(nodes), np.int64)
        pods = Live(InAny(attempt.pod.namespace, selectors))
        return TopologyCounts.at(nodes.snapshot).pods(pods).rows.array()[nodes.rows]

    def reduce(self, attempt: Attempt, nodes: Nodes, scores: IntArray) -> IntArray:
        return spread(scores, _zones(nodes), best=MAX_PRIORITY)


class InAny(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Counts the pods of a namespace that any of the selectors matches."""

    namespace: str
    selectors: frozenset[Selector]

    @property
    def size(self) -> int:
        return len(self.selectors)

    def weigh(self, pod_class: PodClass, /) -> int:
        return int(
            pod_class.namespace == self.namespace
            and any(selector.matches(pod_class.labels) for selector in self.selectors)
        )


def spread_selectors(attempt: Attempt) -> Iterator[Selector]:
    """One selector per service and controller that selects the pod, found by its labels."""
    pod, objects = attempt.pod.pod, attempt.cluster.objects
    namespace, labels = attempt.pod.namespace, pod.metadata.labels
    for service in services_of(pod, objects.services.list_namespace(namespace)):
        yield selector_from_map(service.spec.selector)
    if not labels:
        return  # Controllers do not select pods without labels.
    for controller in objects.replication_controllers.list_namespace(namespace):
        selector = selector_from_map(controller.spec.selector)
        if not selector.is_empty and selector.matches(labels):
            yield selector
    sets = (
        *objects.replica_sets.list_namespace(namespace),
        *objects.stateful_sets.list_namespace(namespace),
    )
    for selector in _parsed(owner.spec.selector for owner in sets):
        if not selector.is_empty and selector.matches(labels):
            yield selector


def _zones(nodes: Nodes) -> npt.NDArray[np.intp]:
    """Numbers of the pairs of region and zone; 0 for nodes with neither, or only empty ones."""
    regions, zones = (_values(nodes, key) for key in (BETA_REGION_LABEL, BETA_ZONE_LABEL))
    pairs = regions * (int(zones.max(initial=0)) + 1) + zones
    if int(pairs.max(initial=0)) < len(pairs):
        return pairs
    # The empty pair is number 0 already; the others become small.
    return np.unique(np.append(pairs, 0), return_inverse=True)[1][:-1]


def _values(nodes: Nodes, key: str) -> IntArray:
    # An empty value counts as no label.
    ids = nodes.label_ids(key).astype(np.int64)
    values = nodes.label_values(key)
    if "" in values:
        ids[ids == values.index("")] = 0
    return ids


def _parsed(selectors: Iterable[LabelSelector | None]) -> Iterator[Selector]:
    for selector in selectors:
        try:
            yield parse_label_selector(selector)
        except SelectorError:
            continue  # Its owner cannot select pods.
