"""Moments of an attempt at which something can be made to happen: exactly there, not at a time.

The steps of an attempt are a few milliseconds apart, so that actions at random times hardly ever
meet them. An action that is armed for a moment happens when a replica next reaches it.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum

from kubestow.api.pod import Pod
from tools.faults.fault import FaultRates


class Moment(StrEnum):
    PERMIT = "at permit"
    PRE_BIND = "in prebind"
    BIND = "binding sent"


class Reached:
    """A replica has reached a moment with this pod and node."""

    def __init__(self, replica: str, pod: Pod, node_name: str) -> None:
        self.replica = replica
        self.pod = pod
        self.node_name = node_name


Strike = Callable[[Reached], None]


class Moments:
    """The strikes that are armed: each hits when its moment comes."""

    def __init__(self) -> None:
        self._armed: dict[Moment, deque[Strike]] = {moment: deque() for moment in Moment}

    def arm(self, moment: Moment, strike: Strike) -> None:
        self._armed[moment].append(strike)

    def disarm(self) -> None:
        for strikes in self._armed.values():
            strikes.clear()

    def reach(self, moment: Moment, reached: Reached) -> None:
        if self._armed[moment]:
            self._armed[moment].popleft()(reached)


class Surroundings:
    """What the plugin of one replica knows of the simulation around it."""

    def __init__(self, replica: str, faults: FaultRates, moments: Moments) -> None:
        self._replica = replica
        self._moments = moments
        self.faults = faults

    def reach(self, moment: Moment, pod: Pod, node_name: str) -> None:
        self._moments.reach(moment, Reached(self._replica, pod, node_name))
