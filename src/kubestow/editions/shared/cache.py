"""A cache in which assumed pods expire, as in v1.9, v1.17 and v1.20 (spec 03 §14).

                 assume              add
      absent ------------> ASSUMED ---------> ADDED --+ update
        ^ ^                  |                  |  ^--+
        | +-- forget, expire-+                  |
        +--------------------- remove ----------+

Not here: the callers of the sweep (`editions.v1_9.engine`, `editions.v1_20.engine.expiry`).
"""

import logging
from typing import Final

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.cache.cache import Cache
from kubestow.clock import NANOSECONDS, Clock
from kubestow.errors import CacheError

log = logging.getLogger(__name__)

# Spec 03 §14.2: how long an assumed pod is kept after its binding ended; how often they are swept.
ASSUMED_POD_TTL_NS: Final = 30 * NANOSECONDS
EXPIRY_SWEEP_S: Final = 1.0


class CacheWithExpiry(Cache):
    """A cache that drops an assumed pod that is not confirmed in time. v1.9 has no other.

    `_deadlines_ns` has the assumed pods whose binding has ended.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._deadlines_ns: dict[str, int] = {}

    def finish_binding(self, pod: Pod) -> None:
        """Start the time to live of an assumed pod."""
        key = self._key(pod)
        if key in self._assumed:
            self._deadlines_ns[key] = self._clock.now_ns() + ASSUMED_POD_TTL_NS

    def expire_assumed_pods(self) -> None:
        """Drop assumed pods whose binding ended longer ago than the time to live."""
        now_ns = self._clock.now_ns()
        for key in sorted(self._assumed):
            pod = self._pods[key].pod
            deadline_ns = self._deadlines_ns.get(key)
            if deadline_ns is None:
                self._note_unfinished(pod)
            elif now_ns > deadline_ns:
                log.warning("Pod %s expired", object_ref(pod.metadata))
                try:
                    self._remove(pod)
                except CacheError as error:
                    log.error("ExpirePod failed for %s: %s", key, error)

    def _note_unfinished(self, pod: Pod) -> None:
        """v1.9 does not log pods that cannot expire yet."""

    def _drop(self, key: str) -> None:
        super()._drop(key)
        self._deadlines_ns.pop(key, None)
