"""How uneven pods are spread, beyond what their constraints allow.

For every distinct constraint, hard or soft, its own or of the profile by default: the skew of a
domain is its number of matching pods above the domain with the fewest. The figure is the sum of all
skews beyond the largest that is allowed. Which nodes and pods count is as in PodTopologySpread
(spec 06 §6.3.4): pods that are ending do not.
"""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kubestow.api.pod import is_terminating
from kubestow.api.pod_info import PodClass, PodInfo
from kubestow.arrays import IntArray
from kubestow.errors import PluginError
from kubestow.explain.cluster import StillCluster
from kubestow.index.nodes import nodes_of
from kubestow.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    Constraint,
    Constraints,
    Eligibilities,
    topology_keys,
)
from kubestow.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.ground import Ground

_NO_DOMAIN = -1


class Spread(Goal):
    """The sum of skews beyond the constraints."""

    unit = "pods beyond the allowed skew"

    def __init__(self) -> None:
        self.text = "spread"

    def start(self, ground: Ground) -> None:
        self._counters = _counters_of(ground.cluster)
        # By class of pods; there are as many as the cluster has.
        self._counting: dict[PodClass, Sequence[_SkewCounter]] = {}
        for row, info in enumerate(ground.cluster.refresh().node_infos):
            for pod in info.pods:
                for counter in self._of(pod):
                    counter.add(row, 1)
        self._total = sum(counter.excess() for counter in self._counters)

    def take(self, pod: PodInfo, row: int) -> None:
        self._add(pod, row, -1)

    def put(self, pod: PodInfo, row: int) -> None:
        self._add(pod, row, 1)

    def figure(self) -> float:
        return float(self._total)

    def tendency(self) -> float:
        """The sum of all skews, the allowed ones too."""
        return float(sum(counter.unevenness for counter in self._counters))

    def pressure(self, pod: PodInfo, row: int) -> float:
        return float(sum(counter.excess_at(row) for counter in self._of(pod)))

    def rows(self) -> Iterator[int]:
        """Nodes in domains that have too many, those of the worst constraint first."""
        seen: set[int] = set()
        worst = sorted(self._counters, key=lambda counter: -counter.known_excess)
        for counter in worst:
            if not counter.known_excess:
                return
            for row in counter.crowded_rows():
                if row not in seen:
                    seen.add(row)
                    yield row

    def _add(self, pod: PodInfo, row: int, sign: int) -> None:
        for counter in self._of(pod):
            self._total -= counter.known_excess
            counter.add(row, sign)
            self._total += counter.excess()

    def _of(self, pod: PodInfo) -> "Sequence[_SkewCounter]":
        """The counters that count a pod."""
        if is_terminating(pod.pod):
            return ()
        pod_class = pod.pod_class
        found = self._counting.get(pod_class)
        if found is None:
            found = [counter for counter in self._counters if counter.counts(pod_class)]
            self._counting[pod_class] = found
        return found


class _SkewCounter:
    """One constraint with its pods per domain.

    domains   intp[node]   the number of its domain; -1 if the node does not count
    pods      int64[domain]
    """

    def __init__(
        self, namespace: str, constraint: Constraint, domains: npt.NDArray[np.intp]
    ) -> None:
        self._namespace = namespace
        self._constraint = constraint
        self._domains = domains
        self._pods: IntArray = np.zeros(int(domains.max(initial=-1)) + 1, np.int64)
        self.known_excess = 0
        self.unevenness = 0

    def counts(self, pod_class: PodClass) -> bool:
        selector = self._constraint.selector
        return (
            pod_class.namespace == self._namespace
            and not selector.is_empty
            and selector.matches(pod_class.labels)
        )

    def add(self, row: int, sign: int) -> None:
        domain = self._domains.item(row)
        if domain != _NO_DOMAIN:
            self._pods[domain] += sign

    def excess(self) -> int:
        """The skews of all domains beyond the allowed one."""
        if not len(self._pods):
            return 0
        above = self._pods - self._lowest()
        self.unevenness = int((above * above).sum())
        self.known_excess = int(np.maximum(above - self._constraint.max_skew, 0).sum())
        return self.known_excess

    def excess_at(self, row: int) -> int:
        domain = self._domains.item(row)
        if domain == _NO_DOMAIN or not self.known_excess:
            return 0
        skew = self._pods.item(domain) - self._lowest()
        return max(0, skew - self._constraint.max_skew)

    def crowded_rows(self) -> Iterator[int]:
        above = self._pods - self._lowest() - self._constraint.max_skew
        counted = self._domains != _NO_DOMAIN
        of_row = np.where(counted, above[self._domains], 0)
        order = np.argsort(-of_row, kind="stable")
        for row in order.tolist():
            if of_row[row] <= 0:
                return
            yield row

    def _lowest(self) -> int:
        if len(self._pods) < self._constraint.min_domains:
            return 0
        return int(self._pods.min())


def _counters_of(cluster: StillCluster) -> "list[_SkewCounter]":
    """A counter for each distinct constraint of pods on nodes."""
    nodes = nodes_of(cluster.refresh())
    counters: dict[Hashable, _SkewCounter] = {}
    kinds: set[Hashable] = set()
    for info in cluster.snapshot.node_infos:
        for pod in info.pods:
            plugin = _plugin_of(cluster, pod)
            if plugin is None or is_terminating(pod.pod):
                continue
            kind = plugin.constraints.kind_of(pod)
            if kind is not None and kind in kinds:
                continue
            kinds.add(kind)
            for constraint, keys in _constraints_of(plugin.constraints, pod):
                eligibility = Eligibilities(pod, keys, comparison_operators=True).of(constraint)
                key = pod.namespace, constraint, eligibility
                if key not in counters:
                    ids = nodes.label_ids(constraint.topology_key)
                    is_counted = eligibility.admits(nodes) & (ids != 0)
                    counters[key] = _SkewCounter(
                        pod.namespace, constraint, _numbered(ids, is_counted)
                    )
    return list(counters.values())


def _plugin_of(cluster: StillCluster, pod: PodInfo) -> PodTopologySpread | None:
    profile = cluster.profile_of(pod.pod)
    plugin = None if profile is None else profile.plugins.get(PodTopologySpread.name)
    return plugin if isinstance(plugin, PodTopologySpread) else None


def _constraints_of(
    constraints: Constraints, pod: PodInfo
) -> Iterator[tuple[Constraint, tuple[str, ...]]]:
    """The constraints of a pod, each with the labels that a node must have to count."""
    has_own = bool(pod.pod.spec.topology_spread_constraints)
    for action in (HARD, SOFT):
        try:
            found = constraints.of(pod.pod, action)
        except PluginError:
            continue  # An illegal one: no attempt gets beyond it.
        needs_keys = action == HARD or has_own or not constraints.is_system_defaulted
        for constraint in found:
            yield constraint, topology_keys(found) if needs_keys else (constraint.topology_key,)


def _numbered(
    ids: npt.NDArray[np.int32], is_counted: npt.NDArray[np.bool_]
) -> npt.NDArray[np.intp]:
    """The domains of nodes that count, numbered from 0; -1 for others."""
    domains = np.full(len(ids), _NO_DOMAIN, np.intp)
    _, numbers = np.unique(ids[is_counted], return_inverse=True)
    domains[is_counted] = numbers
    return domains
