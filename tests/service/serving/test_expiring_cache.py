"""Values expire, and the oldest are dropped."""

from kubestow.service.serving.reviews import ExpiringCache
from kubestow.testing import ManualClock


def test_a_value_expires() -> None:
    clock = ManualClock()
    cache = ExpiringCache[str, int](clock)
    cache.put("a", 1, ttl_s=10)
    cache.put("never", 2, ttl_s=0)
    clock.advance_s(9)
    assert (cache.get("a"), cache.get("never")) == (1, None)
    clock.advance_s(1)
    assert cache.get("a") is None


def test_the_oldest_are_dropped_when_there_are_too_many() -> None:
    cache = ExpiringCache[str, int](ManualClock(), entries_max=2)
    for number, key in enumerate("abac"):
        cache.put(key, number, ttl_s=10)
    assert [cache.get(key) for key in "abc"] == [2, None, 3]
