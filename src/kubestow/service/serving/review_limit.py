"""How many reviews of one kind may be under way for clients that none has accepted yet.

Each request with another token, or for another path, needs a review by the API server. Where that
answers slowly, any client could have as many under way as the port has connections, and those of
Prometheus would wait behind them. So the reviews of others leave some connections to those who
were accepted before.
"""

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from typing import Final

from kubestow.clock import Clock
from kubestow.service.serving.expiring_cache import ExpiringCache

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
