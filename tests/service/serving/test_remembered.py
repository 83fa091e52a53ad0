"""Answers that are good for a while."""

from kubestow.service.serving.remembered import Remembered
from kubestow.testing import ManualClock


def test_a_value_is_good_until_its_time_is_over() -> None:
    clock = ManualClock()
    remembered = Remembered[str, int](clock)
    remembered.put("a", 1, ttl_s=10)
    remembered.put("never", 2, ttl_s=0)
    clock.advance_s(9)
    assert (remembered.get("a"), remembered.get("never")) == (1, None)
    clock.advance_s(1)
    assert remembered.get("a") is None


def test_the_oldest_go_when_there_are_too_many() -> None:
    remembered = Remembered[str, int](ManualClock(), entries_max=2)
    for number, key in enumerate("abac"):
        remembered.put(key, number, ttl_s=10)
    assert [remembered.get(key) for key in "abc"] == [2, None, 3]
