"""Whether a request tolerates the taints of a device (spec 08 B7.4)."""

from collections.abc import Iterable
from typing import Final

from kubestow.api.device import DeviceTaint, DeviceToleration

_HARD_EFFECTS: Final = frozenset(("NoSchedule", "NoExecute"))


def tolerates_all(taints: Iterable[DeviceTaint], tolerations: Iterable[DeviceToleration]) -> bool:
    """Whether every taint that counts is tolerated; taints of other effects do not count."""
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _HARD_EFFECTS
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    # tolerationSeconds matters for eviction, not here.
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case _:
            return False
