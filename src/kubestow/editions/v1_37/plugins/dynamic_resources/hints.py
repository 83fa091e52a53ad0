"""Which events may help a pod that waits for devices in v1.37 (spec 12 §3.3)."""

from kubestow.api.device import ResourceClaim
from kubestow.api.pod import Pod
from kubestow.editions.v1_37.queue.narrowing import IsConcerned
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.plugins.dynamic_resources.hints import ClaimHints
from kubestow.plugins.dynamic_resources.resolve import refers_to


class ClaimHintsV137(ClaimHints):
    def registrations(self) -> Registrations:
        return [
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE, self.for_any),
            on(
                Resource.TARGET_POD,
                Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
                self.for_own_update,
            ),
            *(
                registration
                for registration in super().registrations()
                if registration.event.resource not in (Resource.RESOURCE_CLAIM, Resource.POD)
            ),
        ]

    def for_any(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> Hint:
        """A claim was added, changed or deleted."""
        if new is not None:
            return self.for_claim(pod, old, new)
        is_freed = old is None or old.status.allocation is not None
        return Hint.QUEUE if is_freed else Hint.SKIP

    def find_concerned(
        self, old: ResourceClaim | None, new: ResourceClaim | None
    ) -> IsConcerned | None:
        """Freed devices concern all pods, other changes of a claim those that refer to it."""
        claim = old if new is None else new
        was_allocated = old is not None and old.status.allocation is not None
        is_allocated = new is not None and new.status.allocation is not None
        if claim is None or (was_allocated and not is_allocated):
            return None
        return lambda pod: refers_to(pod, claim)

    def for_own_update(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        return Hint.QUEUE if self._are_resolvable(new) else Hint.SKIP
