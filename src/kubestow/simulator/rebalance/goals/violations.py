"""Pods on nodes where the scheduler would not place them now.

A pod is taken off its node in thought, and the node is judged by the scheduler's own filters: node
affinity and selector, taints, the pod's required affinity and anti-affinity to others, and its hard
spread constraints. A closed (cordoned) node is no violation, nor is too little room. Pods that go
with their node do not count: no scheduler places static pods, and no plan moves daemons.
"""

from collections.abc import Hashable, Iterator
from typing import Final

from kubestow.api.pod_info import PodClass, PodInfo
from kubestow.api.taints import first_untolerated
from kubestow.explain.cluster import StillCluster
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import (
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    Restriction,
)
from kubestow.framework.profile import Profile
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.inter_pod_affinity.filtering import FORBIDDEN
from kubestow.plugins.pod_topology_spread.constraints import HARD
from kubestow.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubestow.simulator.rebalance.goals.empty_nodes import keeps_node
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.ground import Ground

NODE_AFFINITY: Final = "NodeAffinity"
POD_AFFINITY: Final = "InterPodAffinity"
SPREAD: Final = PodTopologySpread.name
TAINTS: Final = "TaintToleration"
# Of closed nodes.
_CLOSED_TAINT: Final = "node.kubernetes.io/unschedulable"


class Violations(Goal):
    """The number of pods whose rules no longer hold."""

    unit = "pods against their rules"

    def __init__(self) -> None:
        self.text = "violations"

    def start(self, ground: Ground) -> None:
        self._cluster = ground.cluster
        snapshot = ground.cluster.refresh()
        # By UID; where the pods are that have rules about others, by what these rules are.
        self._broken: set[str] = set()
        self._bound: dict[Hashable, dict[str, tuple[PodInfo, int]]] = {}
        self._examples: dict[Hashable, PodInfo] = {}
        self._kinds: dict[str, Hashable] = {}
        self._concerned: dict[tuple[Hashable, PodClass], bool] = {}
        for row, info in enumerate(snapshot.node_infos):
            for pod in info.pods:
                self._follow(pod, row)
                if self.is_violated(pod, row):
                    self._broken.add(pod.uid)
        # Pods whose verdict a move may have changed, judged when the figure is read.
        self._stale: dict[str, tuple[PodInfo, int]] = {}

    def take(self, pod: PodInfo, row: int) -> None:
        self._broken.discard(pod.uid)
        self._stale.pop(pod.uid, None)
        kind = self._kinds.pop(pod.uid, None)
        if kind is not None:
            del self._bound[kind][pod.uid]
        self._mark_stale(pod)

    def put(self, pod: PodInfo, row: int) -> None:
        self._follow(pod, row)
        self._stale[pod.uid] = pod, row
        self._mark_stale(pod)

    def figure(self) -> float:
        self._cluster.refresh()
        for pod, row in self._stale.values():
            if self.is_violated(pod, row):
                self._broken.add(pod.uid)
            else:
                self._broken.discard(pod.uid)
        self._stale.clear()
        return float(len(self._broken))

    def pressure(self, pod: PodInfo, row: int) -> float:
        return float(pod.uid in self._broken)

    def rows(self) -> Iterator[int]:
        snapshot = self._cluster.snapshot
        for row, info in enumerate(snapshot.node_infos):
            if any(pod.uid in self._broken for pod in info.pods):
                yield row

    def is_violated(self, pod: PodInfo, row: int) -> bool:
        """Whether the filters would keep a pod off the node that it is on."""
        profile = self._cluster.profile_of(pod.pod)
        if profile is None or not keeps_node(pod.pod):
            return False
        return self._is_tainted(profile, pod, row) or any(
            self._is_rejected(profile, name, pod, row)
            for name in (NODE_AFFINITY, POD_AFFINITY, SPREAD)
        )

    def _is_tainted(self, profile: Profile, pod: PodInfo, row: int) -> bool:
        taints = self._cluster.snapshot.nodes[row].spec.taints
        if not taints or TAINTS not in profile.plugins:
            return False
        others = [taint for taint in taints if taint.key != _CLOSED_TAINT]
        return first_untolerated(others, pod.tolerations, comparison_operators=True) is not None

    def _is_rejected(self, profile: Profile, name: str, pod: PodInfo, row: int) -> bool:
        plugin = profile.plugins.get(name)
        if not isinstance(plugin, FilterPlugin) or not isinstance(plugin, PreFilterPlugin):
            return False
        snapshot, state = self._cluster.snapshot, CycleState()
        answer = plugin.pre_filter(state, pod, nodes_of(snapshot))
        if isinstance(answer, Restriction):
            if snapshot.names[row] not in answer.node_names:
                return True
        elif answer is not None and not answer.is_success:
            return answer.is_rejected  # Skipped: it has no such rules.
        node = SimulatedNode(snapshot, row)
        node.remove_pod(pod)
        if isinstance(plugin, PreFilterExtensions):
            plugin.remove_pod(state, pod, pod, row)
        codes = plugin.filter(state, pod, node)
        code = 0 if codes is None else int(codes[0])
        # The rules of another pod are not this one's.
        return code != 0 and not (name == POD_AFFINITY and code == FORBIDDEN)

    # --- Rules about other pods ---------------------------------------------------------------

    def _follow(self, pod: PodInfo, row: int) -> None:
        kind = self._kind(pod)
        if kind is not None:
            self._kinds[pod.uid] = kind
            self._bound.setdefault(kind, {})[pod.uid] = pod, row
            self._examples.setdefault(kind, pod)

    def _mark_stale(self, moved: PodInfo) -> None:
        for kind, pods in self._bound.items():
            if pods and self._concerns(kind, moved.pod_class):
                self._stale.update(pods)

    def _kind(self, pod: PodInfo) -> Hashable | None:
        """Equal for pods with the same rules about others; None if a pod has none."""
        spread = self._spread(pod)
        hard = spread is not None and bool(spread.constraints.of(pod.pod, HARD))
        terms = (*pod.required_affinity_terms, *pod.required_anti_affinity_terms)
        if not hard and not terms:
            return None
        return (
            pod.pod_class,
            pod.frame,
            terms,
            hard and spread and (spread.constraints.kind_of(pod)),
        )

    def _concerns(self, kind: Hashable, pod_class: PodClass) -> bool:
        """Whether the rules of pods of a kind are about a class of pods."""
        key = kind, pod_class
        known = self._concerned.get(key)
        if known is None:
            known = self._concerned[key] = self._is_about(self._examples[kind], pod_class)
        return known

    def _is_about(self, pod: PodInfo, other: PodClass) -> bool:
        spread = self._spread(pod)
        if (
            spread is not None
            and other.namespace == pod.namespace
            and any(
                constraint.selector.matches(other.labels)
                for constraint in spread.constraints.of(pod.pod, HARD)
            )
        ):
            return True
        namespace = self._cluster.objects.namespaces.get(other.namespace)
        labels = {} if namespace is None else namespace.metadata.labels
        return any(
            term.matches(other.namespace, other.labels, labels)
            for term in (*pod.required_affinity_terms, *pod.required_anti_affinity_terms)
        )

    def _spread(self, pod: PodInfo) -> PodTopologySpread | None:
        return spread_of(self._cluster, pod)


def spread_of(cluster: StillCluster, pod: PodInfo) -> PodTopologySpread | None:
    profile = cluster.profile_of(pod.pod)
    plugin = None if profile is None else profile.plugins.get(SPREAD)
    return plugin if isinstance(plugin, PodTopologySpread) else None
