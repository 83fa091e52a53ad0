"""The faults there are, and how often each of them happens in one place.

Requests, watches, plugins and extenders ask `FaultRates.happens` wherever a fault is possible. So a
fault is counted, and the state that it met is recorded (`coverage`), in one place.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import numpy as np


class Fault(StrEnum):
    """What can happen to a request, an answer, a watch, or a call."""

    BUSY = "429"
    RETRY_AFTER = "429 with Retry-After"
    ERROR = "500"
    CONFLICT = "409"
    DROPPED = "connection closed before the request arrived"
    ANSWER_LOST = "answer lost after the write"
    TRUNCATED = "answer that ends in the middle of its JSON"
    SLOW = "slow answers"
    SLOW_LIST = "lists that take tens of seconds"
    WATCH_CLOSED = "watch closed"
    WATCH_CUT = "watch cut in the middle of a batch"
    WATCH_GONE = "410 on a watch"
    WATCH_DELAYED = "watch delayed"
    WATCH_REPEATED = "watch events repeated"
    WATCH_LOST = "watch event lost, 410 later"
    PLUGIN_RAISES = "plugin raises an exception"
    PLUGIN_JUNK = "plugin returns a wrong answer"
    EXTENDER_SLOW = "extender answers late"
    EXTENDER_SILENT = "extender does not answer in time"
    EXTENDER_ERROR = "extender answers with an error"
    EXTENDER_JUNK = "extender answers with something else"
    PROVISION_LATE = "volumes provisioned late"
    PROVISION_FAILS = "provisioner gives the node back"
    PROVISION_ELSEWHERE = "volume provisioned for another node"


REQUEST_FAULTS: Final = (
    Fault.BUSY,
    Fault.RETRY_AFTER,
    Fault.ERROR,
    Fault.CONFLICT,
    Fault.DROPPED,
    Fault.ANSWER_LOST,
    Fault.TRUNCATED,
    Fault.SLOW,
    Fault.SLOW_LIST,
)
WATCH_FAULTS: Final = (
    Fault.WATCH_CLOSED,
    Fault.WATCH_CUT,
    Fault.WATCH_GONE,
    Fault.WATCH_DELAYED,
    Fault.WATCH_REPEATED,
    Fault.WATCH_LOST,
)
# What only bytes can show.
WIRE_FAULTS: Final = (Fault.RETRY_AFTER, Fault.TRUNCATED, Fault.SLOW_LIST)
PLUGIN_FAULTS: Final = (Fault.PLUGIN_RAISES, Fault.PLUGIN_JUNK)
EXTENDER_FAULTS: Final = (
    Fault.EXTENDER_SLOW,
    Fault.EXTENDER_SILENT,
    Fault.EXTENDER_ERROR,
    Fault.EXTENDER_JUNK,
)
PROVISION_FAULTS: Final = (
    Fault.PROVISION_LATE,
    Fault.PROVISION_FAILS,
    Fault.PROVISION_ELSEWHERE,
)


class Point(StrEnum):
    """The extension points at which a plugin is called."""

    PRE_FILTER = "prefilter"
    FILTER = "filter"
    SCORE = "score"
    RESERVE = "reserve"
    UNRESERVE = "unreserve"
    PERMIT = "permit"
    PRE_FLIGHT = "preflight"
    PRE_BIND = "prebind"
    POST_BIND = "postbind"


class FaultRates:
    """How often each fault happens to one replica, or to the cluster around them.

    `met` is called with each fault that happens; of a plugin, with the point of the call too.
    """

    def __init__(
        self, rng: np.random.Generator, met: Callable[[Fault, Point | None], None]
    ) -> None:
        self.rng: Final = rng
        self._rates: dict[Fault, float] = {}
        self._met = met

    def set(self, fault: Fault, rate: float) -> None:
        self._rates[fault] = rate

    def end(self, fault: Fault) -> None:
        self._rates.pop(fault, None)

    def end_all(self) -> None:
        self._rates.clear()

    def happens(self, fault: Fault, point: Point | None = None) -> bool:
        rate = self._rates.get(fault)
        if rate is None or self.rng.random() >= rate:
            return False
        self._met(fault, point)
        return True
