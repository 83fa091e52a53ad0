"""How long a client waits before it repeats a request (spec 09 §4.3, step 4)."""

import numpy as np
import pytest

from kubestow.cluster.informer import Backoff


def test_delays_double_up_to_thirty_seconds_with_jitter():
    backoff = Backoff(np.random.default_rng(1), 0.0)
    bases = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    for now_s, base_s in enumerate(bases):
        assert base_s <= backoff.next_delay_s(float(now_s)) < 2 * base_s


@pytest.mark.parametrize(
    ("failures_s", "expected_base_s"),
    [
        pytest.param([0.0] * 5 + [120.0], 25.6, id="not-yet"),
        pytest.param([0.0] * 5 + [120.1], 0.8, id="two-minutes-after-the-start"),
        pytest.param([*range(0, 121, 15), 121.0], 0.8, id="also-while-requests-fail"),
        pytest.param([121.0] * 5 + [241.0], 25.6, id="counted-from-the-last-reset"),
        pytest.param([121.0] * 5 + [200.0, 241.1], 0.8, id="counted-from-the-reset-only"),
    ],
)
def test_two_minutes_after_the_last_reset_delays_begin_again(
    failures_s: list[float], expected_base_s: float
):
    backoff = Backoff(np.random.default_rng(1), 0.0)
    *_, last_s = [backoff.next_delay_s(now_s) for now_s in failures_s]
    assert expected_base_s <= last_s < 2 * expected_base_s


def test_the_same_seed_gives_the_same_delays():
    def delays() -> list[float]:
        backoff = Backoff(np.random.default_rng(7), 0.0)
        return [backoff.next_delay_s(0.0) for _ in range(3)]

    assert delays() == delays()
