"""Curves of use: a position between a low and a high amount, as a function of time.

constant   always 0, so the low amount holds
daily      a wave with one peak in each period
bursts     once in each slot of time a pod is high for a while, each pod at another time
peaks      as bursts, but all pods of one group at the same time

What is random is a hash of the seed, the pod and the slot of time: a value does not depend on how
often, in which order or for which other pods it was computed.
"""

import hashlib
import math
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.arrays import FloatArray

KeyArray = npt.NDArray[np.uint64]
CurveKind = Literal["constant", "daily", "bursts", "peaks"]
DAY_S: Final = 86_400.0
# Noise is another number in each slot of this length.
NOISE_S: Final = 60.0

_MASK: Final = 2**64 - 1
_GAMMA: Final = 0x9E3779B97F4A7C15
_MIX: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
# Numbers of the streams of one key.
_PHASE_STREAM, _BURST_STREAM, _NOISE_STREAM, _FIRST_STREAM, _SECOND_STREAM = range(5)


class Curve(NamedTuple):
    """When use is high. Times are seconds; `peak_s` is a time of the day.

    group   of `peaks`: curves with the same group, period and duration peak together
    """

    kind: CurveKind = "constant"
    period_s: float = DAY_S
    peak_s: float = 0.0
    lasts_s: float = 0.0
    group: str = ""

    def positions(self, time_s: float, keys: KeyArray, seed: int) -> FloatArray:
        """0 where use is low, 1 where it is high, for the pods with these keys."""
        if self.kind == "daily":
            return np.full(len(keys), self._wave(time_s))
        if self.kind == "bursts":
            return self._bursts(time_s, keys, seed)
        if self.kind == "peaks":
            group = np.array([key_of(self.group)], np.uint64)
            return np.broadcast_to(self._bursts(time_s, group, seed), len(keys))
        return np.zeros(len(keys))

    def _wave(self, time_s: float) -> float:
        return (1 + math.cos(2 * math.pi * (time_s - self.peak_s) / self.period_s)) / 2

    def _bursts(self, time_s: float, keys: KeyArray, seed: int) -> FloatArray:
        # Slots begin at another time for each key: else no pod would be high where one ends.
        times = time_s + uniform(keys, seed, _PHASE_STREAM) * self.period_s
        slots = np.floor(times / self.period_s)
        begins_s = uniform(keys, seed, _BURST_STREAM, slots) * (self.period_s - self.lasts_s)
        since_s = times - slots * self.period_s - begins_s
        return ((since_s >= 0) & (since_s < self.lasts_s)).astype(np.float64)


def noise_factors(noise: FloatArray, keys: KeyArray, seed: int, time_s: float) -> FloatArray:
    """A factor of each pod for the minute: between 1 - noise and 1 + noise."""
    numbers = uniform(keys, seed, _NOISE_STREAM, math.floor(time_s / NOISE_S))
    return 1 + noise * (2 * numbers - 1)


def spread_factor(sigma: float, key: int, seed: int) -> float:
    """By how much a pod differs from others of its workload: log-normal with the median 1."""
    if sigma == 0:
        return 1.0
    keys = np.array([key], np.uint64)
    first = float(uniform(keys, seed, _FIRST_STREAM)[0])
    second = float(uniform(keys, seed, _SECOND_STREAM)[0])
    normal = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
    return math.exp(sigma * normal)


def key_of(text: str) -> int:
    """A number for a text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def uniform(keys: KeyArray, seed: int, stream: int, slots: FloatArray | float = 0.0) -> FloatArray:
    """A number in [0, 1) for each key, from a seed, the number of a stream and a slot of time."""
    salt = np.array([(seed * _GAMMA + stream) & _MASK], np.uint64)
    slot_numbers = np.atleast_1d(slots).astype(np.int64).view(np.uint64)
    values = _mixed(keys ^ _mixed(_mixed(salt) ^ (slot_numbers * np.uint64(_GAMMA))))
    return (values >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(values: KeyArray) -> KeyArray:
    """64-bit numbers whose bits all depend on all bits of the values."""
    for shift, factor in _MIX:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
