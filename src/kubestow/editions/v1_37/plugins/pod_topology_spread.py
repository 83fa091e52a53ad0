"""PodTopologySpread of v1.37: other hints for pods (spec 12 §3.3)."""

from kubestow.api.pod import Pod
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.plugins.pod_topology_spread.hints import Hints, is_recounted


class HintsV137(Hints):
    def for_assigned_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        """Whether a pod that came to a node, went or was relabelled there changes the counts."""
        changed = new if new is not None else old
        if changed is None or changed.metadata.namespace != pod.metadata.namespace:
            return Hint.SKIP
        constraints = self._hard_constraints(pod)
        if old is not None and new is not None:
            return Hint.QUEUE if is_recounted(old, new, constraints) else Hint.SKIP
        labels = changed.metadata.labels
        is_counted = any(constraint.selector.matches(labels) for constraint in constraints)
        return Hint.QUEUE if is_counted else Hint.SKIP

    def for_own_update(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        """Whether other nodes or other pods count for the updated pod."""
        constraints = self._hard_constraints(pod)
        if old.spec.tolerations != new.spec.tolerations and any(
            constraint.honors_taints for constraint in constraints
        ):
            return Hint.QUEUE
        return Hint.QUEUE if is_recounted(old, new, constraints) else Hint.SKIP


class PodTopologySpreadV137(PodTopologySpread):
    hints_type = HintsV137
    _hints: HintsV137

    def events(self) -> Registrations:
        return [
            on(
                Resource.ASSIGNED_POD,
                Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
                self._hints.for_assigned_pod,
            ),
            on(
                Resource.TARGET_POD,
                Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION,
                self._hints.for_own_update,
            ),
            *(
                registration
                for registration in super().events()
                if registration.event.resource != Resource.POD
            ),
        ]
