"""Use from a trace: for each pod steps in time, of amounts or of shares of its requests.

A step holds until the next one of the same pod; before the first one and after the last one, the
first and the last hold. Memory is one row of numbers for each step, up to a limit.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from kubestow.arrays import BoolArray, FloatArray, IntpArray
from kubestow.errors import InputError

# Of all pods of a trace; each takes 24 bytes.
STEPS_MAX: Final = 20_000_000


class UsePoint(NamedTuple):
    """The use of a pod from a time on. An amount that is not known is NaN.

    key        namespace and name of the pod, as NAMESPACE/NAME
    cpu        thousandths of a core, or a share of the request
    memory     bytes, or a share of the request
    """

    key: str
    time_s: float
    cpu: float
    memory: float


class UsageSeries:
    """All steps of a trace, pod after pod, each in the order of time."""

    def __init__(self, points: Iterable[UsePoint], *, are_shares: bool) -> None:
        """InputError if there are too many points."""
        self.are_shares: Final = are_shares
        self._numbers: dict[str, int] = {}
        pods, values = self._columns(points)
        order = np.lexsort((values[0], pods))
        self._times, self._cpu, self._memory = (column[order] for column in values)
        counts = np.bincount(pods, minlength=len(self._numbers))
        self._ends: IntpArray = np.cumsum(counts)
        self._starts: IntpArray = self._ends - counts

    def __len__(self) -> int:
        return len(self._times)

    @property
    def last_s(self) -> float:
        """The last time of all steps."""
        return float(self._times.max()) if len(self._times) else 0.0

    def number(self, key: str) -> int:
        """The number of a pod; -1 if the trace does not have it."""
        return self._numbers.get(key, -1)

    def at(self, time_s: float, numbers: IntpArray) -> tuple[FloatArray, FloatArray]:
        """CPU and memory of some pods at a time; NaN where the trace has none."""
        low, high = self._starts[numbers], self._ends[numbers] - 1
        # The last step that is not after the time, by bisection of all pods at once.
        while (is_open := low < high).any():
            middle = (low + high + 1) // 2
            is_later: BoolArray = self._times[middle] > time_s
            high = np.where(is_open & is_later, middle - 1, high)
            low = np.where(is_open & ~is_later, middle, low)
        return self._cpu[low], self._memory[low]

    def _columns(self, points: Iterable[UsePoint]) -> tuple[IntpArray, list[FloatArray]]:
        pods: list[int] = []
        values: tuple[list[float], ...] = ([], [], [])
        parts: list[tuple[IntpArray, list[FloatArray]]] = []
        for point in points:
            pods.append(self._numbers.setdefault(point.key, len(self._numbers)))
            for column, value in zip(values, point[1:], strict=True):
                column.append(value)
            if len(pods) == _PART:
                parts.append(_packed(pods, values))
                if len(parts) * _PART > STEPS_MAX:
                    raise InputError(f"more than {STEPS_MAX:,} rows; cut the file")
        parts.append(_packed(pods, values))
        return (
            np.concatenate([part[0] for part in parts]),
            [np.concatenate([part[1][column] for part in parts]) for column in range(3)],
        )


# Rows that are lists of Python numbers at a time.
_PART: Final = 100_000


def _packed(pods: list[int], values: tuple[list[float], ...]) -> tuple[IntpArray, list[FloatArray]]:
    """The rows as arrays; the lists are empty then."""
    packed = np.array(pods, np.intp), [np.array(column, np.float64) for column in values]
    for column in (pods, *values):
        column.clear()
    return packed
