"""The order in which another scheduler decides on pods, as far as it is known from outside.

A scheduler takes the pod with the highest priority from its queue, and of several the one that came
first. So of two pods that wait for their first attempt, the one that came first is decided on first
if its priority is not lower. Nothing is known of pods that wait for anything but their turn.
"""

from typing import Final, NamedTuple

from kubestow.api.pod import Pod, first_condition
from kubestow.engine.failure import POD_SCHEDULED

_GATED: Final = "SchedulingGated"


class Queued(NamedTuple):
    """A waiting pod: `position` is that of the change by which it came (`known`)."""

    pod: Pod
    position: int
    is_ordered: bool = True

    @classmethod
    def now(cls, pod: Pod, position: int, *, is_new: bool) -> "Queued":
        """A pod that was not queued. If it is not new, it was gated, and counts from before."""
        spec = pod.spec
        waits = bool(spec.resource_claims) or spec.scheduling_group is not None
        return cls(pod, position, is_new and not waits and not was_tried(pod))

    def tried_again(self) -> "Queued":
        return self._replace(is_ordered=False)

    def is_before(self, other: "Queued") -> bool:
        """Whether it is decided on before the other for sure."""
        if not (self.is_ordered and other.is_ordered):
            return False
        priority, others = self.pod.spec.priority or 0, other.pod.spec.priority or 0
        return self.position < other.position and priority >= others


def was_tried(pod: Pod) -> bool:
    """Whether an attempt has failed: the pod is tried again at a time that is not known."""
    condition = first_condition(pod.status.conditions, POD_SCHEDULED)
    return condition is not None and condition.status == "False" and condition.reason != _GATED
