"""What the scheduler of v1.37 derives from a pod."""

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import AccountedRequest
from kubestow.editions.v1_37.api.requests import accounted_footprint, has_amounts


class PodInfoV137(PodInfo):
    """A pod that is being resized counts with its footprint (spec 12 §6)."""

    __slots__ = ()

    # The clock is read once for each pod, in their order on the node (spec 12 §9.2).
    reverses_unstarted = False

    def update(self, pod: Pod) -> None:
        """Replace the pod; what it takes from a node is computed again (spec 12 §4.3)."""
        super().update(pod)
        self._accounted = None

    @property
    def accounted(self) -> AccountedRequest:
        found = self._accounted
        if found is not None:
            return found
        status = self.pod.status
        # Most pods that wait have nothing of that: no more is looked for then.
        has_status = (
            status.container_statuses
            or status.init_container_statuses
            or status.resources
            or status.conditions
        )
        if has_status and has_amounts(self.pod):
            self._accounted = accounted_footprint(self.pod)
        return super().accounted
