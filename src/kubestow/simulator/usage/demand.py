"""The running pods as columns, and what each of them asks for at a time.

A pod has a row while it runs. The last row takes the place of one that goes, so the rows are always
the first ones of the arrays; their order depends on nothing but the order of events.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod, priority_of
from kubestow.api.requests import accounted_request
from kubestow.api.resources import CPU, MEMORY, amount
from kubestow.arrays import FloatArray, IntArray
from kubestow.simulator.usage.curves import Curve, noise_factors, spread_factor
from kubestow.simulator.usage.plan import ResourceCurve, UsagePlan, WorkloadCurves
from kubestow.simulator.usage.series import UsageSeries
from kubestow.usage.workload import workload_of

_NO_LIMIT: Final = 2**62
_ROWS_MIN: Final = 64
_RESOURCES: Final = ("cpu", "memory")
_ROW: Final = np.dtype(
    [
        ("node", np.intp),
        ("owner", np.int32),
        # Of the pod in the series of a trace; -1 if it is not there.
        ("series", np.intp),
        ("key", np.uint64),
        ("priority", np.int64),
        ("noise", np.float64),
        *(
            (f"{resource}_{field}", kind)
            for resource in _RESOURCES
            for field, kind in (
                ("curve", np.int32),
                ("low", np.float64),
                ("high", np.float64),
                ("request", np.int64),
                ("limit", np.int64),
            )
        ),
    ]
)


class PodName(NamedTuple):
    """`workload` is that of measurements (`usage.workload`)."""

    uid: str
    namespace: str
    name: str
    workload: str


class RunningPods:
    def __init__(self, plan: UsagePlan, seed: int) -> None:
        self._series: UsageSeries | None = plan.series
        self._seed = seed
        self._curves: dict[Curve, int] = {}
        self._rows = np.zeros(_ROWS_MIN, _ROW)
        self._row_of: dict[str, int] = {}
        # Of each row.
        self.names: list[PodName] = []

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, uid: str) -> bool:
        return uid in self._row_of

    def column(self, name: str) -> npt.NDArray[Any]:
        """The values of all rows."""
        return self._rows[name][: len(self)]

    def add(self, pod: Pod, entry: WorkloadCurves, *, node: int, owner: int, key: int) -> None:
        """Add a pod that runs on a node. `key` decides on what is random about it."""
        metadata, row = pod.metadata, len(self)
        if row == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros(row, _ROW)])
        factor = spread_factor(entry.spread, key, self._seed)
        requests = accounted_request(pod).requested
        cpu = self._of_resource(entry.cpu, requests.milli_cpu, limit_of(pod, CPU), factor)
        memory = self._of_resource(entry.memory, requests.memory, limit_of(pod, MEMORY), factor)
        series = -1
        if self._series is not None:
            series = self._series.number(f"{metadata.namespace}/{metadata.name}")
        priority = priority_of(pod)
        self._rows[row] = (node, owner, series, key, priority, entry.noise, *cpu, *memory)
        self._row_of[metadata.uid] = row
        workload = workload_of(pod)
        self.names.append(PodName(metadata.uid, metadata.namespace, metadata.name, workload))

    def remove(self, uid: str) -> None:
        """Remove a pod, if it is there."""
        row = self._row_of.pop(uid, None)
        if row is None:
            return
        last = self.names.pop()
        if last.uid != uid:
            self._rows[row] = self._rows[len(self)]
            self.names[row] = last
            self._row_of[last.uid] = row

    def _of_resource(
        self, given: ResourceCurve, requested: int, limit: int, factor: float
    ) -> tuple[int, float, float, int, int]:
        """The columns of one resource of a row."""
        curve = self._curves.setdefault(given.curve, len(self._curves))
        low, high = given.low.of(requested) * factor, given.high.of(requested) * factor
        return curve, low, high, requested, limit

    # --- demand ---

    def demand(self, date_s: float, time_s: float) -> IntArray:
        """What pods ask for: int64[resource, pod], in thousandths of a core and in bytes.

        date_s   seconds since 1970, for curves
        time_s   seconds from the start of the run, for traces
        """
        amounts = [self._of_curves(resource, date_s) for resource in _RESOURCES]
        keys, noise = self.column("key"), self.column("noise")
        amounts[0] = amounts[0] * noise_factors(noise, keys, self._seed, date_s)
        if self._series is not None:
            self._put_series(self._series, amounts, time_s)
        limits = [self.column(f"{resource}_limit") for resource in _RESOURCES]
        whole = np.rint(np.maximum(np.stack(amounts), 0.0)).astype(np.int64)
        return np.minimum(whole, np.stack(limits))

    def _of_curves(self, resource: str, date_s: float) -> FloatArray:
        low, high = self.column(f"{resource}_low"), self.column(f"{resource}_high")
        chosen, keys = self.column(f"{resource}_curve"), self.column("key")
        positions = np.zeros(len(self))
        for curve, number in self._curves.items():
            if curve.kind != "constant":
                rows = np.flatnonzero(chosen == number)
                positions[rows] = curve.positions(date_s, keys[rows], self._seed)
        return low + (high - low) * positions

    def _put_series(self, series: UsageSeries, amounts: list[FloatArray], time_s: float) -> None:
        """Use of pods that the trace has replaces that of curves."""
        numbers = self.column("series")
        rows = np.flatnonzero(numbers >= 0)
        for index, values in enumerate(series.at(time_s, numbers[rows])):
            if series.are_shares:
                values = values * self.column(f"{_RESOURCES[index]}_request")[rows]
            is_known = ~np.isnan(values)
            amounts[index][rows[is_known]] = values[is_known]


def limit_of(pod: Pod, resource: str) -> int:
    """The most a pod can use; a large number if one of its containers has no limit."""
    if (own := _amount(pod.spec.resources and pod.spec.resources.limits, resource)) is not None:
        return own
    limits = [_amount(each.resources.limits, resource) for each in pod.spec.containers]
    known = [limit for limit in limits if limit is not None]
    return sum(known) if known and len(known) == len(limits) else _NO_LIMIT


def _amount(resources: ResourceList | None, resource: str) -> int | None:
    quantity = (resources or {}).get(resource)
    return None if quantity is None else amount(resource, quantity)
