"""Deferred resizes: pods that run, and are queued until their new size fits (spec 12 §11).

    kubelet defers a resize ──► queue ──► cycle on the pod's own node ──┬── fits: cannot be assumed
                                  ▲                                     └── does not: preemption
                                  └──────────────── back, nothing is reported ─────────┘

The kubelet carries a resize out; the scheduler only evicts for it. All of this needs the gate
InPlacePodVerticalScalingSchedulerPreemption.
"""

from typing import Final

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.editions.v1_37.api.deferred import is_deferred
from kubestow.editions.v1_37.engine.group_handlers import GroupHandlers
from kubestow.engine.failure import FailureHandler
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import PreFilterPlugin, PreFilterResult
from kubestow.framework.profile import Profile
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.queue import QueuedPod

# Plugins that do not look at a pod that runs already.
SKIPPED: Final = frozenset(
    (
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    )
)


class DeferredHandlers(GroupHandlers):
    """Pods with a deferred resize are in the cache, as all that run, and in the queue."""

    def _cache_add(self, pod: Pod) -> None:
        super()._cache_add(pod)
        if self._is_queued(pod):
            self._queue.add(pod)

    def _cache_update(self, old: Pod, new: Pod) -> None:
        super()._cache_update(old, new)
        was_queued, is_queued = self._is_queued(old), self._is_queued(new)
        if was_queued and is_queued:
            self._queue.update(old, new)
        elif is_queued:
            self._queue.add(new)
        elif was_queued:
            self._queue.delete(old)

    def _cache_delete(self, pod: Pod) -> None:
        super()._cache_delete(pod)
        if self._is_queued(pod):
            self._queue.delete(pod)

    def _is_queued(self, pod: Pod) -> bool:
        return is_deferred(pod) and self._is_responsible(pod)


class DeferredFailures(FailureHandler):
    """A failed attempt of a deferred resize is not reported: the pod itself is scheduled."""

    def _requeue(self, queued_pod: QueuedPod) -> bool:
        pod = queued_pod.pod
        if not is_deferred(pod):
            return super()._requeue(queued_pod)
        known = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        if known is None or known.metadata.uid != pod.metadata.uid or not is_deferred(known):
            self._queue.done(queued_pod.uid)
        else:
            self._put_back(queued_pod, known)
        return False


class _SkippedIfDeferred:
    """PreFilter of a plugin that leaves deferred resizes alone."""

    def __init__(self, plugin: PreFilterPlugin) -> None:
        self._plugin = plugin

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        if is_deferred(pod.pod):
            return Status.skip()
        return self._plugin.pre_filter(state, pod, nodes)


def skip_if_deferred(profile: Profile) -> None:
    """Let the plugins of the profile that do not look at running pods skip deferred resizes."""
    profile.pre_filter_steps = [
        (name, _SkippedIfDeferred(plugin) if name in SKIPPED else plugin)
        for name, plugin in profile.pre_filter_steps
    ]


def is_asked_for(pod: PodInfo) -> bool:
    """Whether answers for the pod are of no use for others: what it needs depends on its node."""
    return is_deferred(pod.pod)
