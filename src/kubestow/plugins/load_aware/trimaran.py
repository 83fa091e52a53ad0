"""Scores as Trimaran's plugins make them, of this plugin's measurements (guide, "Trimaran").

Float64 in the order of the formulas there; rounded half away from zero, as all values are positive.
"""

import numpy as np

from kubestow.api.pod import Container
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import CPU
from kubestow.arrays import FloatArray, IntArray
from kubestow.config.load_aware_args import LoadVariationRiskBalancing, TargetLoadPacking
from kubestow.plugins.load_aware.rows import LoadRows
from kubestow.plugins.load_aware.scoring import with_mean
from kubestow.usage.measurement import Amounts


class PackingStrategy:
    """TargetLoadPacking: the score rises up to the target utilisation of CPU, and falls beyond.

    What placed pods are expected to use is this plugin's estimate, faded, in place of Trimaran's
    whole one for a minute.
    """

    def __init__(self, args: TargetLoadPacking, load: LoadRows) -> None:
        self._target = float(args.target_utilization)
        self._multiplier = float(args.default_requests_multiplier)
        cpu = args.default_requests.get("cpu", "0")
        self._default_milli = parse_quantity(cpu).milli_value()
        self._load = load

    def of(self, pod: PodInfo, estimate: Amounts) -> IntArray:
        load, target = self._load, self._target
        spec = pod.pod.spec
        expected = sum(self._expected(container) for container in spec.containers)
        if spec.overhead is not None and CPU in spec.overhead:
            expected += spec.overhead[CPU].milli_value()
        used = (load.measured[0] + load.pending[0] + expected).astype(np.float64)
        percent: FloatArray = 100 * used / np.maximum(load.allocatable[0], 1)
        rising: FloatArray = (100 - target) * percent / target + target
        falling: FloatArray = target * (100 - percent) / (100 - target)
        scores: FloatArray = np.where(percent > target, falling, rising)
        return with_mean(rounded(scores * (percent <= 100)), load)

    def _expected(self, container: Container) -> int:
        limits, requests = container.resources.limits or {}, container.resources.requests or {}
        if CPU in limits:
            return limits[CPU].milli_value()
        if CPU in requests:
            return int(requests[CPU].milli_value() * self._multiplier + 0.5)
        return self._default_milli


class BalancingStrategy:
    """LoadVariationRiskBalancing: mean and deviation of both resources make the risk."""

    def __init__(self, args: LoadVariationRiskBalancing, load: LoadRows) -> None:
        self._margin = args.safe_variance_margin
        self._sensitivity = args.safe_variance_sensitivity
        self._load = load

    def of(self, pod: PodInfo, estimate: Amounts) -> IntArray:
        requested = pod.accounted.requested
        asked = requested.milli_cpu, requested.memory
        of_both = [self._scores(place, request) for place, request in enumerate(asked)]
        return with_mean(rounded(np.minimum(*of_both)), self._load)

    def _scores(self, place: int, request: int) -> FloatArray:
        load = self._load
        offered = np.maximum(load.allocatable[place], 1).astype(np.float64)
        used = np.minimum(load.average[place] + load.pending[place], offered)
        mean = np.clip((used + request) / offered, 0.0, 1.0)
        deviation = np.clip(load.deviation[place] / offered, 0.0, 1.0)
        if self._sensitivity > 0:
            deviation = np.power(deviation, 1 / self._sensitivity)
        elif self._sensitivity == 0:
            # One divided by zero is infinite there: only a deviation of all counts.
            deviation = np.where(deviation < 1, 0.0, 1.0)
        deviation = np.clip(deviation * self._margin, 0.0, 1.0)
        return (1.0 - (mean + deviation) / 2) * 100


def rounded(scores: FloatArray) -> IntArray:
    return np.clip(np.floor(scores + 0.5), 0, 100).astype(np.int64)
