"""How long a client waits before it repeats a request (spec 09 §4.3, step 4)."""

import numpy as np

from kubestow.cluster.backoff import Backoff


def test_delays_double_up_to_thirty_seconds_with_jitter():
    backoff = Backoff(np.random.default_rng(1))
    bases = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    for now_s, base_s in enumerate(bases):
        assert base_s <= backoff.next_delay_s(float(now_s)) < 2 * base_s


def test_two_minutes_without_use_reset_the_delay():
    backoff = Backoff(np.random.default_rng(1))
    for _ in range(5):
        backoff.next_delay_s(100.0)
    assert backoff.next_delay_s(220.0) >= 25.6
    assert backoff.next_delay_s(340.1) < 1.6


def test_the_same_seed_gives_the_same_delays():
    def delays() -> list[float]:
        backoff = Backoff(np.random.default_rng(7))
        return [backoff.next_delay_s(0.0) for _ in range(3)]

    assert delays() == delays()
