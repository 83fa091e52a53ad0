"""How fast nodes of a zone may be tainted."""

import pytest

from kubestow.simulator.controllers.zone_disruption import (
    Limiter,
    ZoneState,
    are_all_disrupted,
    zone_rate,
    zone_state,
)

NORMAL, PARTLY, FULLY = ZoneState.NORMAL, ZoneState.PARTLY_DISRUPTED, ZoneState.FULLY_DISRUPTED


@pytest.mark.parametrize(
    ("ready", "not_ready", "expected"),
    [
        pytest.param(0, 0, NORMAL, id="empty"),
        pytest.param(0, 1, FULLY, id="the-only-node"),
        pytest.param(1, 2, NORMAL, id="two-are-not-many"),
        pytest.param(2, 3, PARTLY, id="60-percent"),
        pytest.param(9, 11, PARTLY, id="55-percent"),
        pytest.param(10, 12, NORMAL, id="54-percent"),
    ],
)
def test_state_of_a_zone(ready: int, not_ready: int, expected: ZoneState):
    assert zone_state(ready, not_ready) is expected


@pytest.mark.parametrize(
    ("state", "count", "expected"),
    [(NORMAL, 10, 0.1), (FULLY, 10, 0.1), (PARTLY, 50, 0.0), (PARTLY, 51, 0.01)],
)
def test_rate_of_a_zone(state: ZoneState, count: int, expected: float):
    assert zone_rate(state, count) == expected


def test_all_zones_disrupted():
    assert are_all_disrupted({"a": FULLY, "b": FULLY})
    assert not are_all_disrupted({"a": FULLY, "b": PARTLY})


def test_the_limiter_admits_one_every_ten_seconds():
    limiter = Limiter()
    assert [second for second in range(25) if limiter.take(second)] == [0, 10, 20]
    assert limiter.wait_s(25) == 5


def test_another_rate_keeps_a_used_limiter_used():
    limiter = Limiter()
    assert limiter.take(0)
    limiter.set_rate(0.01, 1)
    assert not limiter.take(100)
    assert limiter.take(101)


def test_a_rate_of_zero_admits_none():
    limiter = Limiter()
    limiter.set_rate(0.0, 0)
    assert not limiter.take(1_000)
    assert limiter.wait_s(1_000) is None
    limiter.set_rate(0.1, 1_000)
    assert not limiter.take(1_000)
    assert limiter.take(1_010)
