"""Reviews by the API server: how long their answers are kept, and how many may be under way of one
kind for clients that none has accepted yet.

Each request with another token, or for another path, needs a review by the API server. Where that
answers slowly, any client could have as many under way as the port has connections, and those of
Prometheus would wait behind them. So the reviews of others leave some connections to those who
were accepted before.
"""

from collections import OrderedDict
from collections.abc import Generator, Hashable
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

from kubestow.clock import Clock

# Half of the connections that a client has to the API server.
REVIEWS_MAX: Final = 16
# How long what was accepted counts as known.
KNOWN_S: Final = 3600.0


class TooManyReviewsError(Exception):
    """The client should try again later."""


class ReviewLimit:
    def __init__(self, clock: Clock) -> None:
        self._known = ExpiringCache[Hashable, bool](clock)
        self._count = 0

    @contextmanager
    def reviewing(self, key: Hashable) -> Generator[None, None, None]:
        """Count the review of a key while inside; TooManyReviewsError if there are too many."""
        if self._known.get(key):
            yield
            return
        if self._count >= REVIEWS_MAX:
            raise TooManyReviewsError
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    def accepted(self, key: Hashable) -> None:
        self._known.put(key, True, ttl_s=KNOWN_S)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ENTRIES_MAX: Final = 4096


class ExpiringCache(Generic[K, V]):
    """Values by key, each with its own time to live; the oldest are dropped when there are too
    many."""

    def __init__(self, clock: Clock, *, entries_max: int = ENTRIES_MAX) -> None:
        self._clock = clock
        self._entries_max = entries_max
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires_s, value = entry
        if expires_s <= self._clock.monotonic_s():
            del self._entries[key]
            return None
        return value

    def put(self, key: K, value: V, *, ttl_s: float) -> None:
        if ttl_s <= 0:
            return
        self._entries.pop(key, None)
        self._entries[key] = (self._clock.monotonic_s() + ttl_s, value)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
