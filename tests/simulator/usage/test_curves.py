"""Curves of use, against a plain reading for one pod."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.simulator.usage.curves import Curve, key_of, noise_factors, spread_factor, uniform

_MASK = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
KEYS = np.array([key_of(f"web#{number}") for number in range(2000)], np.uint64)


def mixed(value: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = ((value ^ (value >> shift)) * factor) & _MASK
    return value ^ (value >> 31)


def number_of(key: int, seed: int, stream: int, slot: int = 0) -> float:
    salt = mixed(mixed((seed * _GAMMA + stream) & _MASK) ^ ((slot * _GAMMA) & _MASK))
    return (mixed(key ^ salt) >> 11) / 2**53


def position_of(curve: Curve, time_s: float, key: int, seed: int) -> float:
    if curve.kind == "constant":
        return 0.0
    if curve.kind == "daily":
        turn = (time_s - curve.peak_s) / curve.period_s
        return 0.5 + 0.5 * math.cos(2 * math.pi * turn)
    if curve.kind == "peaks":
        digest = hashlib.blake2b(curve.group.encode(), digest_size=8).digest()
        key = int.from_bytes(digest, "little")
    own_s = time_s + number_of(key, seed, 0) * curve.period_s
    slot = math.floor(own_s / curve.period_s)
    begin_s = number_of(key, seed, 1, slot) * (curve.period_s - curve.lasts_s)
    return float(0 <= own_s - slot * curve.period_s - begin_s < curve.lasts_s)


@given(
    kind=st.sampled_from(["constant", "daily", "bursts", "peaks"]),
    time_s=st.floats(0, 2e9),
    period_s=st.floats(60, 1e5),
    part=st.floats(0.01, 1),
    seed=st.integers(0, 2**40),
)
def test_positions_equal_those_of_each_pod_alone(
    kind: str, time_s: float, period_s: float, part: float, seed: int
) -> None:
    curve = Curve(kind, period_s, 100.0, part * period_s, "sale")  # pyright: ignore[reportArgumentType]
    keys = KEYS[:7]
    found = curve.positions(time_s, keys, seed)
    expected = [position_of(curve, time_s, int(key), seed) for key in keys]
    assert found.tolist() == pytest.approx(expected)


@given(seed=st.integers(0, 2**40), stream=st.integers(0, 9), slot=st.integers(-(2**40), 2**40))
def test_random_numbers_equal_those_of_plain_integers(seed: int, stream: int, slot: int) -> None:
    keys = KEYS[:5]
    found = uniform(keys, seed, stream, float(slot))
    assert found.tolist() == [number_of(int(key), seed, stream, slot) for key in keys]


def test_bursts_are_spread_over_time_and_peaks_are_not() -> None:
    bursts = Curve("bursts", period_s=1200, lasts_s=240)
    shares = [bursts.positions(time_s, KEYS, 1).mean() for time_s in range(0, 2400, 60)]
    assert 0.16 < min(shares) <= max(shares) < 0.24
    peaks = Curve("peaks", period_s=1200, lasts_s=240, group="sale")
    values = [peaks.positions(time_s, KEYS, 1) for time_s in range(0, 12000, 60)]
    assert all(len(set(value.tolist())) == 1 for value in values)
    assert 0.15 < np.mean(values) < 0.25


def test_noise_stays_within_its_share_and_changes_by_the_minute() -> None:
    noise = np.full(len(KEYS), 0.1)
    factors = noise_factors(noise, KEYS, 1, 600.0)
    assert 0.9 <= factors.min() < 0.91
    assert 1.09 < factors.max() <= 1.1
    assert (factors == noise_factors(noise, KEYS, 1, 659.0)).all()
    assert (factors != noise_factors(noise, KEYS, 1, 660.0)).any()


def test_spread_is_log_normal_with_the_median_one() -> None:
    logs = np.log([spread_factor(0.4, int(key), 1) for key in KEYS])
    assert abs(np.median(logs)) < 0.03
    assert abs(logs.std() - 0.4) < 0.02
    assert spread_factor(0.0, 7, 1) == 1.0
