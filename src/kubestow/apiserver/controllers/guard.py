"""A fault in the work for one object ends that attempt, never the controller.

Controllers do their work for one object at a time through a `Guard`. A fault (an object with a
field of the wrong type, a refused write, a defect) is logged with the object's name, and the work
is tried again: after a pause that doubles with each failure, or at once when the controller gets
another event about the object.

    work ──► done
      └────► fault: logged ──pause, or an event──► work … RETRIES_MAX times, then only after events
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kubestow.apiserver.store import StoredObject
from kubestow.errors import ApiError

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
RETRY_S_MAX: Final = 300.0
RETRIES_MAX: Final = 15

_Step = tuple[str, str]


class Faults:
    """Failures in a row, by object: logged, counted, and how long to wait after each."""

    def __init__(self, controller: str) -> None:
        self._controller = controller
        # By UID of the object, and step of the work.
        self.counts: Final[dict[_Step, int]] = {}

    def failed(self, stored: StoredObject, error: Exception, step: str = "") -> float | None:
        """Log the failure; return the seconds to the next try, None if there is none."""
        key = stored.uid, step
        count = self.counts[key] = self.counts.get(key, 0) + 1
        delay_s: float | None = min(RETRY_S * 2 ** (count - 1), RETRY_S_MAX)
        if count > RETRIES_MAX:
            del self.counts[key]
            delay_s = None
        is_refusal = isinstance(error, ApiError)
        logger.log(
            logging.WARNING if is_refusal else logging.ERROR,
            "%s: %s %s: %s; %s",
            self._controller,
            stored.resource.kind,
            "/".join(filter(None, stored.key)),
            error if is_refusal else f"{type(error).__name__}: {error}",
            "next try after its next change" if delay_s is None else f"next try in {delay_s:g} s",
            # A traceback shows where a defect is. One is enough.
            exc_info=error if count == 1 and not is_refusal else None,
        )
        return delay_s

    def succeeded(self, stored: StoredObject, step: str = "") -> None:
        self.counts.pop((stored.uid, step), None)


class Guard:
    """Runs the work of one controller, and its second tries. Needs a running event loop."""

    def __init__(self, controller: str) -> None:
        self._faults = Faults(controller)
        # What has failed and not been done since.
        self.failed: Final = self._faults.counts
        self._timers: dict[_Step, asyncio.TimerHandle] = {}

    def run(self, stored: StoredObject, work: Callable[[], object], step: str = "") -> None:
        """Do the work for an object; it replaces an earlier try of the same step that is due."""
        # Faults are rare: mostly there is nothing to look up.
        if self._timers and (timer := self._timers.pop((stored.uid, step), None)) is not None:
            timer.cancel()
        try:
            work()
        except Exception as error:
            # Any fault: the other objects are independent of this one.
            key = stored.uid, step
            delay_s = self._faults.failed(stored, error, step)
            if delay_s is not None:
                loop = asyncio.get_running_loop()
                self._timers[key] = loop.call_later(delay_s, self.run, stored, work, step)
        else:
            if self.failed:
                self._faults.succeeded(stored, step)

    def close(self) -> None:
        """Cancel the tries that are due."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
