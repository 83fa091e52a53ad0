"""How fast nodes that are not ready get the taint that evicts their pods, zone by zone.

Many nodes lost at once are more likely a fault of the network than of the nodes, so evictions then
slow down or stop:

    zone               state               nodes tainted per second
    some nodes ready   normal              0.1
    55 % not ready     partly disrupted    0.01, or none in a zone of at most 50 nodes
    no node ready      fully disrupted     0.1; none if every zone is fully disrupted

Pure rules and one limiter; `node_lifecycle` applies them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

RATE: Final = 0.1
REDUCED_RATE: Final = 0.01
LARGE_ZONE: Final = 50
UNHEALTHY_SHARE: Final = 0.55


class ZoneState(Enum):
    NORMAL = "normal"
    PARTLY_DISRUPTED = "partly disrupted"
    FULLY_DISRUPTED = "fully disrupted"


def zone_state(ready_count: int, not_ready_count: int) -> ZoneState:
    if not ready_count and not_ready_count:
        return ZoneState.FULLY_DISRUPTED
    share = not_ready_count / max(ready_count + not_ready_count, 1)
    if not_ready_count > 2 and share >= UNHEALTHY_SHARE:
        return ZoneState.PARTLY_DISRUPTED
    return ZoneState.NORMAL


def zone_rate(state: ZoneState, node_count: int) -> float:
    """Nodes per second that may be tainted, unless all zones are fully disrupted."""
    if state is ZoneState.PARTLY_DISRUPTED:
        return REDUCED_RATE if node_count > LARGE_ZONE else 0.0
    return RATE


def are_all_disrupted(states: Mapping[str, ZoneState]) -> bool:
    """Whether no zone has a ready node: then the cause is not the nodes."""
    return all(state is ZoneState.FULLY_DISRUPTED for state in states.values())


class Limiter:
    """Admits one node, and the next after the time of the rate."""

    def __init__(self) -> None:
        self._rate = RATE
        self._free_s = 0.0

    def set_rate(self, rate: float, now_s: float) -> None:
        if rate == self._rate:
            return
        is_free = self._rate > 0 and now_s >= self._free_s
        self._rate = rate
        # A limiter that was in use does not become free by getting another rate.
        self._free_s = now_s if is_free or not rate else now_s + 1 / rate

    def wait_s(self, now_s: float) -> float | None:
        """Seconds until the next node is admitted; None if none will be at this rate."""
        return max(self._free_s - now_s, 0.0) if self._rate else None

    def take(self, now_s: float) -> bool:
        """Admit a node now, if the rate allows."""
        if not self._rate or now_s < self._free_s:
            return False
        self._free_s = now_s + 1 / self._rate
        return True
