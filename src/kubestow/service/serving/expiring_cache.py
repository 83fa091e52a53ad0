"""Answers of the API server about tokens and requests, kept for a limited time."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from kubestow.clock import Clock

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
