"""Scores as Trimaran's LowRiskOverCommitment makes them, of this plugin's measurements.

For each resource of a node, the larger one of both counts:

    risk by limits   (limits - capacity) / (limits - requests), where limits are above the capacity
    risk by load     how likely the node uses more than its pods request, if its use is a beta
                     distribution with the measured mean and deviation

Requests and limits are sums over the pods of the node; those of the pod itself count for limits
only. Nothing of the risk by load depends on the pod, so it is kept until the node changes.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Container, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import CPU, MEMORY
from kubestow.arrays import BoolArray, FloatArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.config.load_aware_args import RESOURCES, LowRiskOverCommitment
from kubestow.framework.handle import Handle
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.load_aware.rows import LoadRows
from kubestow.plugins.load_aware.scoring import with_mean
from kubestow.usage.measurement import Amounts

_DEFAULT_WEIGHT: Final = 0.5
# The variance is at most this share of what a beta distribution can have.
_VARIANCE_SHARE: Final = 0.99
# Beyond this a beta distribution is a normal one, as far as scores show; its series gets long.
_NORMAL_FROM: Final = 1e5
_PRECISION: Final = 1e-12
_TINY: Final = 1e-300
_SUMS: Final = "LoadAware requests and limits"
_RISK: Final = "LoadAware risk by load"


class OvercommitmentStrategy:
    """LowRiskOverCommitment: limits and load beyond requests make the risk."""

    def __init__(self, args: LowRiskOverCommitment, load: LoadRows, handle: Handle) -> None:
        self._weights = [args.risk_limit_weights.get(name, _DEFAULT_WEIGHT) for name in RESOURCES]
        self._smoothing = math.sqrt(args.smoothing_window_size)
        self._load = load
        self._handle = handle

    def of(self, pod: PodInfo, estimate: Amounts) -> IntArray:
        requests, limits = requests_and_limits(pod.pod)
        load = self._load
        if not any((*requests, *limits)):
            # As there: pods without requests and limits are no concern of it.
            return np.zeros(len(load.usable), np.int64)
        nodes = nodes_of(self._handle.snapshot)
        sums: IntArray = nodes.tracked(_SUMS, Depends.PODS, _sums)
        by_load: FloatArray = nodes.tracked(
            (_RISK, self, load.build), Depends.PODS, self._risk_by_load, is_large=True
        )
        risks: list[FloatArray] = []
        for place, weight in enumerate(self._weights):
            offered = load.allocatable[place]
            limit = sums[2 + place] + limits[place]
            request = np.minimum(sums[place] + requests[place], offered)
            over = limit > offered
            by_limits = np.where(over, (limit - offered) / np.where(over, limit - request, 1), 0.0)
            risks.append(np.clip(weight * by_limits + (1 - weight) * by_load[place], 0.0, 1.0))
        scores = np.floor((1 - np.maximum(*risks)) * 100 + 0.5).astype(np.int64)
        return with_mean(scores, load)

    def _risk_by_load(self, nodes: Nodes) -> FloatArray:
        """float64[resource, node]: how likely more is used than what pods request."""
        sums, load = _sums(nodes), self._load
        risks = np.zeros((len(RESOURCES), len(nodes)))
        for place in range(len(RESOURCES)):
            offered = np.maximum(load.allocatable[place][nodes.rows], 1).astype(np.float64)
            mean = np.clip(load.average[place][nodes.rows] / offered, 0.0, 1.0)
            deviation = np.clip(load.deviation[place][nodes.rows] / offered, 0.0, 1.0)
            deviation = np.minimum(
                deviation * self._smoothing, np.sqrt(mean * (1 - mean) * _VARIANCE_SHARE)
            )
            requested = np.minimum(sums[place] / offered, 1.0)
            risks[place] = 1 - probability(mean, deviation, requested, sums[2 + place] / offered)
        return risks


def probability(
    mean: FloatArray, deviation: FloatArray, requested: FloatArray, limit: FloatArray
) -> FloatArray:
    """How likely a node uses no more than what is requested, given that it uses no more than the
    limit; all as shares of what it offers."""
    found: FloatArray = np.where((mean == 0) | (mean <= requested), 1.0, 0.0)
    is_spread = (mean > 0) & (deviation > 0)
    if is_spread.any():
        found[is_spread] = _spread_probability(
            mean[is_spread], deviation[is_spread], requested[is_spread], limit[is_spread]
        )
    found[limit == 0] = 1.0  # Zero of zero.
    return found


def _spread_probability(
    mean: FloatArray, deviation: FloatArray, requested: FloatArray, limit: FloatArray
) -> FloatArray:
    shape = np.maximum(mean * (1 - mean) / (deviation * deviation) - 1, _TINY)
    alpha, beta = mean * shape, (1 - mean) * shape
    found = beta_below(alpha, beta, requested)
    is_limited = limit < 1
    below_limit = np.ones_like(found)
    below_limit[is_limited] = beta_below(alpha[is_limited], beta[is_limited], limit[is_limited])
    below_limit[below_limit <= 0] = 1.0
    return np.clip(found / below_limit, 0.0, 1.0)


# --- the beta distribution ---


def beta_below(alpha: FloatArray, beta: FloatArray, values: FloatArray) -> FloatArray:
    """How likely a beta distribution is not above each value of 0 to 1."""
    found: FloatArray = np.where(values >= 1, 1.0, 0.0)
    inside = (values > 0) & (values < 1)
    is_normal = inside & (alpha + beta > _NORMAL_FROM)
    found[is_normal] = _normal_below(alpha[is_normal], beta[is_normal], values[is_normal])
    inside &= ~is_normal
    found[inside] = _incomplete_beta(alpha[inside], beta[inside], values[inside])
    return np.clip(found, 0.0, 1.0)


def _normal_below(alpha: FloatArray, beta: FloatArray, values: FloatArray) -> FloatArray:
    total = alpha + beta
    mean = alpha / total
    deviation = np.sqrt(mean * (1 - mean) / (total + 1))
    return 0.5 * (1 + _each(math.erf, (values - mean) / (deviation * math.sqrt(2))))


def _incomplete_beta(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """The regularised incomplete beta function, 0 < x < 1, by its continued fraction."""
    if not len(x):
        return x
    # The fraction converges fast below the mean; above, the other end is computed.
    is_turned: BoolArray = x > (a + 1) / (a + b + 2)
    a, b = np.where(is_turned, b, a), np.where(is_turned, a, b)
    x = np.where(is_turned, 1 - x, x)
    whole, of_a, of_b = (_each(math.lgamma, values) for values in (a + b, a, b))
    power = whole - of_a - of_b + a * np.log(x) + b * np.log1p(-x)
    found = np.exp(power) * _fraction(a, b, x) / a
    return np.where(is_turned, 1 - found, found)


def _fraction(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """The continued fraction, by Lentz's method; steps grow with the root of a + b."""
    ratio = np.ones_like(x)
    inverse = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = inverse.copy()
    steps = 20 + int(4 * math.sqrt(_NORMAL_FROM))
    for step in range(1, steps):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        change = np.ones_like(x)
        for term in (even, odd):
            inverse = 1 / _not_zero(1 + term * inverse)
            ratio = _not_zero(1 + term / ratio)
            change = inverse * ratio
            result *= change
        if np.all(np.abs(change - 1) < _PRECISION):
            break
    return result


def _each(function: Callable[[float], float], values: FloatArray) -> FloatArray:
    return np.array([function(value) for value in values.tolist()], np.float64)


def _not_zero(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) < _TINY, _TINY, values)


# --- requests and limits ---


def _sums(nodes: Nodes) -> IntArray:
    """int64[requests and limits of each resource, node], over the pods of each node."""
    sums = np.zeros((2 * len(RESOURCES), len(nodes)), np.int64)
    for position, info in enumerate(nodes.infos()):
        total = [0, 0, 0, 0]
        for pod in info.pods:
            requests, limits = requests_and_limits(pod.pod)
            total = [sum(pair) for pair in zip(total, (*requests, *limits), strict=True)]
        sums[:, position] = total
    return sums


def requests_and_limits(pod: Pod) -> tuple[Amounts, Amounts]:
    """What a pod requests and its limits, which are at least that: sums over its containers, or the
    most of an init container, and the overhead."""
    requests = _effective(pod, lambda container: container.resources.requests or {})
    limits = _effective(pod, lambda container: container.resources.limits or {})
    return requests, Amounts(*map(max, requests, limits))


def _effective(pod: Pod, read: Callable[[Container], ResourceList]) -> Amounts:
    cpu_milli = memory_bytes = 0
    for container in pod.spec.containers:
        one = _amounts(read(container))
        cpu_milli += one.cpu_milli
        memory_bytes += one.memory_bytes
    for container in pod.spec.init_containers or ():
        one = _amounts(read(container))
        cpu_milli = max(cpu_milli, one.cpu_milli)
        memory_bytes = max(memory_bytes, one.memory_bytes)
    overhead = _amounts(pod.spec.overhead or {})
    return Amounts(cpu_milli + overhead.cpu_milli, memory_bytes + overhead.memory_bytes)


def _amounts(quantities: ResourceList) -> Amounts:
    cpu, memory = quantities.get(CPU), quantities.get(MEMORY)
    return Amounts(0 if cpu is None else cpu.milli_value(), 0 if memory is None else memory.value())
