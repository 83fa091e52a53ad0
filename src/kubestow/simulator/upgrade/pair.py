"""The cluster of a user under two editions."""

from collections.abc import Sequence
from typing import NamedTuple

from kubestow.api.files import Document
from kubestow.api.group import group_key_of
from kubestow.api.pod import Pod, is_assigned, is_terminal, is_terminating, priority_of
from kubestow.clock import Clock
from kubestow.config.feature_gates import FeatureGates
from kubestow.explain.cluster import StillCluster
from kubestow.explain.waiting import gate_of
from kubestow.plugins.loading import LoadedPlugins
from kubestow.simulator.still import still_cluster


class EditionSide(NamedTuple):
    """One of the two versions: its gates, and the configuration as it reads it."""

    gates: FeatureGates
    loaded: LoadedPlugins


class EditionPair(NamedTuple):
    """One cluster under the older and the newer edition; `is_back`: the older one is next."""

    older: StillCluster
    newer: StillCluster
    is_back: bool

    @property
    def before(self) -> StillCluster:
        return self.newer if self.is_back else self.older


def pair_of(
    documents: Sequence[Document],
    before: EditionSide,
    after: EditionSide,
    clock: Clock,
    *,
    is_back: bool,
) -> EditionPair:
    """Make the two clusters; InputError names the object that one of them cannot have."""
    clusters = [
        still_cluster(
            documents,
            side.loaded.config,
            clock,
            registry=side.loaded.registry,
            gates=side.gates,
        )
        for side in (before, after)
    ]
    if is_back:
        clusters.reverse()
    return EditionPair(clusters[0], clusters[1], is_back)


class UndecidedPods(NamedTuple):
    """Pods that are decided on, in the order of the queue; how many are not, by reason."""

    pods: list[Pod]
    left_out: dict[str, int]


def waiting_pods(cluster: StillCluster) -> UndecidedPods:
    """The pods of a cluster without a node."""
    found: list[Pod] = []
    left_out: dict[str, int] = {}
    for pod in cluster.objects.pods.list():
        if is_assigned(pod) or is_terminal(pod) or is_terminating(pod):
            continue
        reason = why_not(cluster, pod)
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            found.append(pod)
    return UndecidedPods(sorted(found, key=_order), left_out)


def why_not(cluster: StillCluster, pod: Pod) -> str:
    """Why a waiting pod is not decided on; empty if it is."""
    profile = cluster.profile_of(pod)
    if profile is None:
        return "of another scheduler"
    if cluster.scheduler.groups is not None and group_key_of(pod) is not None:
        return "of a group, whose members are tried together"
    return "" if gate_of(profile, pod) is None else "held back by a scheduling gate"


def _order(pod: Pod) -> tuple[int, float]:
    created = pod.metadata.creation_timestamp
    return -priority_of(pod), 0.0 if created is None else created.timestamp()
