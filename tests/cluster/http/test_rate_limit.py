"""The bucket of tokens (spec 09 §4.1)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.cluster.http.session import RateLimit
from kubestow.testing.clock import ManualClock


def test_the_burst_is_free_then_it_goes_at_the_rate():
    clock = ManualClock(1000)
    limit = RateLimit(clock, qps=50, burst=100)
    assert [limit.take() for _ in range(100)] == [0.0] * 100
    assert [limit.take() for _ in range(3)] == pytest.approx([0.02, 0.04, 0.06])


def test_the_bucket_fills_up_again_and_no_further():
    clock = ManualClock()
    limit = RateLimit(clock, qps=10, burst=2)
    assert [limit.take() for _ in range(3)] == pytest.approx([0, 0, 0.1])
    clock.advance_s(0.2)
    assert limit.take() == 0.0
    assert limit.take() == pytest.approx(0.1)
    clock.advance_s(3600)
    assert [limit.take() for _ in range(3)] == pytest.approx([0, 0, 0.1])


def test_a_negative_rate_is_no_limit():
    limit = RateLimit(ManualClock(), qps=-1, burst=0)
    assert limit.is_unlimited
    assert all(limit.take() == 0.0 for _ in range(1000))


def test_a_request_beyond_the_burst_waits():
    async def main() -> list[float]:
        delays: list[float] = []

        async def sleep(delay_s: float) -> None:
            delays.append(delay_s)

        limit = RateLimit(ManualClock(), qps=4, burst=1, sleep=sleep)
        waited = [await limit.wait_turn() for _ in range(3)]
        assert waited == [0.0, *delays]
        return delays

    assert asyncio.run(main()) == pytest.approx([0.25, 0.5])


@given(
    steps=st.lists(st.floats(0, 2), min_size=1, max_size=50),
    qps=st.floats(0.5, 100),
    burst=st.integers(1, 20),
)
def test_no_window_of_time_holds_more_than_burst_and_rate_allow(
    steps: list[float], qps: float, burst: int
):
    clock = ManualClock()
    limit = RateLimit(clock, qps=qps, burst=burst)
    sent_s: list[float] = []
    for step_s in steps:
        clock.advance_s(step_s)
        sent_s.append(clock.monotonic_s() + limit.take())
    assert sent_s == sorted(sent_s)
    for first in range(len(sent_s)):
        for last in range(first, len(sent_s)):
            allowed = burst + (sent_s[last] - sent_s[first]) * qps
            assert last - first + 1 <= allowed + 1e-6
