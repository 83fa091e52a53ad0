"""How far a rolling update may go in one step: arithmetic on replica counts.

The update itself never causes more than `desired + max_surge` pods, or fewer than
`desired - max_unavailable` available ones. Pure.
"""

from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, value_at

_PERCENT: Final = "%"


class Limits(NamedTuple):
    max_surge: int
    max_unavailable: int


class Replicas(NamedTuple):
    """One ReplicaSet: its desired and its available replicas."""

    wanted: int
    available: int


def limits_of(deployment: JsonObject, desired: int) -> Limits:
    """Percentages of the desired count: `maxSurge` rounded up, `maxUnavailable` down."""
    if value_at(deployment, "spec", "strategy", "type") != "RollingUpdate":
        return Limits(0, desired)
    rolling = as_object(value_at(deployment, "spec", "strategy", "rollingUpdate"))
    surge = share(rolling.get("maxSurge", "25%"), desired, rounds_up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), desired, rounds_up=False)
    # With neither, no step would be possible.
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(surge, min(unavailable, desired))


def new_wanted(desired: int, limits: Limits, new: Replicas, old: list[Replicas]) -> int:
    """The next desired replicas of the new ReplicaSet."""
    if new.wanted >= desired:
        return desired
    total = new.wanted + sum(replicas.wanted for replicas in old)
    room = desired + limits.max_surge - total
    return new.wanted + max(0, min(room, desired - new.wanted))


def old_wanted(desired: int, limits: Limits, new: Replicas, old: list[Replicas]) -> list[int]:
    """The next desired replicas of the old ones, oldest first."""
    wanted = [replicas.wanted for replicas in old]
    min_available = desired - limits.max_unavailable
    total = new.wanted + sum(wanted)
    # Pods of the new one that are not available yet reduce what the old ones may lose.
    spare = total - min_available - (new.wanted - new.available)
    if spare <= 0:
        return wanted
    # First those that are not available anyway.
    for index, replicas in enumerate(old):
        unavailable = min(spare, max(0, wanted[index] - replicas.available))
        wanted[index] -= unavailable
        spare -= unavailable
    available = new.available + sum(
        min(replicas.available, count) for replicas, count in zip(old, wanted, strict=True)
    )
    spare = available - min_available
    for index, count in enumerate(wanted):
        removed = min(max(spare, 0), count)
        wanted[index] -= removed
        spare -= removed
    return wanted


def share(value: object, desired: int, *, rounds_up: bool) -> int:
    """A number, or a percentage of the desired count."""
    if isinstance(value, int):
        return value
    text = str(value)
    if not text.endswith(_PERCENT) or not text[:-1].isdecimal():
        return 0
    hundredths = int(text[:-1]) * desired
    return -(-hundredths // 100) if rounds_up else hundredths // 100
