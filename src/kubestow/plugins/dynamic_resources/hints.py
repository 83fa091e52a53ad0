"""Which events may help a pod that waits for devices (spec 02 §7.2, §7.3h; 08 B12)."""

from kubestow.api.device import ResourceClaim
from kubestow.api.pod import Pod
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.index.devices.claims import Claims
from kubestow.plugins.dynamic_resources.resolve import are_resolvable, uses


class ClaimHints:
    def __init__(self, claims: Claims, *, accepts_groups: bool = False) -> None:
        self._claims = claims
        self._accepts_groups = accepts_groups

    def registrations(self) -> Registrations:
        added_or_changed = Action.ADD | Action.UPDATE
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
            ),
            on(Resource.RESOURCE_CLAIM, added_or_changed, self.for_claim),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self.for_pod),
            on(Resource.DEVICE_CLASS, added_or_changed),
            on(Resource.RESOURCE_SLICE, added_or_changed),
        )

    def for_claim(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim) -> Hint:
        if not self._are_resolvable(pod):
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE  # Devices are free now.
        if not uses(pod, new, self._claims, accepts_groups=self._accepts_groups):
            return Hint.SKIP
        if old is not None and old.status == new.status:
            return Hint.SKIP
        return Hint.QUEUE

    def for_pod(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        if new.metadata.uid != pod.metadata.uid:
            return Hint.SKIP
        return Hint.QUEUE if self._are_resolvable(new) else Hint.SKIP

    def _are_resolvable(self, pod: Pod) -> bool:
        return are_resolvable(pod, self._claims, accepts_groups=self._accepts_groups)
