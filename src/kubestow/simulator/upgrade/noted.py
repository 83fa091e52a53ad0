"""Pods of a cluster that a change between two editions is about."""

from collections.abc import Sequence

from kubestow.api.pod import Pod, first_condition, is_assigned, key_of, priority_of
from kubestow.api.requests import has_status_amounts
from kubestow.engine.failure import POD_SCHEDULED
from kubestow.explain.cluster import StillCluster
from kubestow.explain.waiting import gate_of
from kubestow.simulator.upgrade.pair import EditionPair


class NotedPods:
    """Pods of both clusters that a change is about."""

    def __init__(self, pair: EditionPair) -> None:
        self._pair = pair
        self._resized: dict[str, Pod] = {}
        self._gated: dict[str, Pod] = {}
        self._unbound: dict[str, Pod] = {}
        for pod in pair.older.objects.pods.list():
            self.changed(pod)

    @property
    def resized(self) -> Sequence[Pod]:
        """Pods on nodes that take other room in the other edition."""
        return tuple(self._resized.values())

    @property
    def gated(self) -> Sequence[Pod]:
        """Gated pods with a nomination, which only the newer edition counts."""
        return tuple(self._gated.values())

    def unbound_below(self, priority: int) -> Sequence[Pod]:
        """Pods of a lower priority that wait at Permit or in PreBind for their binding.

        They have a nominated node (spec 04 §12.2), and no attempt has failed.
        """
        return tuple(
            pod
            for pod in self._unbound.values()
            if priority_of(pod) < priority and not self._is_assumed(pod)
        )

    def unstarted_below(self, priority: int) -> Sequence[Pod]:
        """Pods of a lower priority that are on a node and have not started."""
        return tuple(
            pod
            for pod in self._pair.older.objects.pods.list()
            if is_assigned(pod) and pod.status.start_time is None and priority_of(pod) < priority
        )

    def _is_assumed(self, pod: Pod) -> bool:
        now = self._pair.older.find(pod)
        return now is None or is_assigned(now)

    def changed(self, pod: Pod) -> None:
        """Both clusters have this pod now, or do not have it any more."""
        key = key_of(pod)
        self._resized.pop(key, None)
        self._gated.pop(key, None)
        self._unbound.pop(key, None)
        now = self._pair.older.find(pod)
        if now is None:
            return
        if is_assigned(now):
            if self._takes_other_room(now):
                self._resized[key] = now
        elif now.status.nominated_node_name:
            if _is_gated(self._pair.newer, now):
                self._gated[key] = now
            elif first_condition(now.status.conditions, POD_SCHEDULED) is None:
                self._unbound[key] = now

    def _takes_other_room(self, pod: Pod) -> bool:
        if not has_status_amounts(pod.status):
            return False
        mine, other = self._pair.older.scheduler.cache, self._pair.newer.scheduler.cache
        return mine.info_of(pod).accounted != other.info_of(pod).accounted


def _is_gated(cluster: StillCluster, pod: Pod) -> bool:
    profile = cluster.profile_of(pod)
    return profile is not None and gate_of(profile, pod) is not None
