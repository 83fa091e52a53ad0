"""Pods whose resize waits for free resources on their node (spec 12 §11)."""

from typing import Final

from kubestow.api.pod import Pod, first_condition

DEFERRED_RESIZES: Final = "InPlacePodVerticalScalingSchedulerPreemption"


def is_deferred(pod: Pod) -> bool:
    """Whether the kubelet has put the resize of the pod off."""
    # The first condition of the type decides, by its reason alone.
    condition = first_condition(pod.status.conditions, "PodResizePending")
    return condition is not None and condition.reason == "Deferred"
