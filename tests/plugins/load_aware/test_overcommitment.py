"""Scores by the formulas of Trimaran's LowRiskOverCommitment, and the beta distribution of them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubestow.api.pod import Container, ResourceRequirements
from kubestow.api.quantity import parse_quantity
from kubestow.config.load_aware_args import (
    LoadAwareArgs,
    LowRiskOverCommitment,
    MetricProvider,
    load_aware_errors,
    source_of,
)
from kubestow.plugins.load_aware.overcommitment import beta_below, probability, requests_and_limits
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot

CPU, MEMORY = 4000, 16 << 30


def below(alpha: float, beta: float, value: float) -> float:
    return float(beta_below(np.array([alpha]), np.array([beta]), np.array([value]))[0])


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 100))
def test_whole_parameters_equal_a_sum_of_binomials(alpha, beta, percent):
    x, count = Fraction(percent, 100), alpha + beta - 1
    exact = sum(
        math.comb(count, number) * x**number * (1 - x) ** (count - number)
        for number in range(alpha, count + 1)
    )
    assert below(alpha, beta, percent / 100) == pytest.approx(float(exact), abs=1e-9)


def slow_below(alpha: float, beta: float, value: float) -> float:
    """The power series, one number at a time."""
    if value <= 0 or value >= 1:
        return float(value >= 1)
    if value > alpha / (alpha + beta):
        return 1 - slow_below(beta, alpha, 1 - value)
    term = total = 1 / alpha
    number = 0
    while abs(term) > 1e-16 * abs(total) and number < 100_000:
        number += 1
        term *= (alpha + beta + number - 1) * value / (alpha + number) * (alpha + number - 1)
        term /= alpha + number - 1
        total += term
    front = math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta)
    return math.exp(front + alpha * math.log(value) + beta * math.log1p(-value)) * total


@given(st.floats(0.01, 300), st.floats(0.01, 300), st.floats(0.001, 0.999))
def test_any_parameters_equal_a_power_series(alpha, beta, value):
    assert below(alpha, beta, value) == pytest.approx(slow_below(alpha, beta, value), abs=1e-6)


def test_very_narrow_distributions_are_normal_ones():
    # The series of 99,999 and the normal distribution of 100,001 agree where both are in use.
    for value in (0.299, 0.3, 0.3005, 0.302):
        narrow = below(0.3 * 99_999, 0.7 * 99_999, value)
        assert below(0.3 * 100_001, 0.7 * 100_001, value) == pytest.approx(narrow, abs=2e-3)


@pytest.mark.parametrize(
    ("mean", "deviation", "requested", "limit", "expected"),
    [
        pytest.param(0.0, 0.0, 0.0, 2.0, 1.0, id="nothing-in-use"),
        pytest.param(0.5, 0.0, 0.5, 2.0, 1.0, id="constant-and-requested"),
        pytest.param(0.6, 0.0, 0.5, 2.0, 0.0, id="constant-and-more-than-requested"),
        pytest.param(0.6, 0.1, 0.0, 0.0, 1.0, id="no-pods"),
        pytest.param(0.5, math.sqrt(0.05), 0.5, 2.0, 0.5, id="beta-2-2"),
        pytest.param(0.5, math.sqrt(0.05), 0.5, 0.5, 1.0, id="no-more-than-the-limit"),
    ],
)
def test_how_likely_no_more_is_used(mean, deviation, requested, limit, expected):
    numbers = [np.array([value]) for value in (mean, deviation, requested, limit)]
    assert probability(*numbers).tolist() == [pytest.approx(expected, abs=1e-9)]


# --- scores ---


def slow_score(sums, pod, measured, window, weights):
    """One node: `sums` and `pod` are requests and limits, `measured` mean and deviation."""
    risks = []
    for place, offered in enumerate((CPU, MEMORY)):
        request = min(sums[0][place] + pod[0][place], offered)
        limit = sums[1][place] + pod[1][place]
        by_limits = (limit - offered) / (limit - request) if limit > offered else 0.0
        mean = min(measured[0][place] / offered, 1.0)
        most = math.sqrt(mean * (1 - mean) * 0.99)
        deviation = min(min(measured[1][place] / offered, 1.0) * math.sqrt(window), most)
        requested = min(sums[0][place] / offered, 1.0)
        limited = sums[1][place] / offered
        if mean == 0 or deviation == 0:
            known = 1.0 if mean <= requested or limited == 0 else 0.0
        else:
            shape = mean * (1 - mean) / deviation**2 - 1
            alpha, beta = mean * shape, (1 - mean) * shape
            known = below(alpha, beta, requested)
            if limited == 0:
                known = 1.0
            elif limited < 1 and (within := below(alpha, beta, limited)) > 0:
                known = min(known / within, 1.0)
        risks.append(
            min(max(weights[place] * by_limits + (1 - weights[place]) * (1 - known), 0), 1)
        )
    return math.floor((1 - max(risks)) * 100 + 0.5)


amounts = st.tuples(st.integers(0, 3000), st.integers(0, 5000))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(amounts, max_size=3),
    amounts,
    st.lists(st.integers(0, 4500), min_size=1, max_size=4),
    st.integers(1, 9),
    st.floats(0, 1),
)
def test_scores_equal_a_slow_reading(load_cluster, placed, asked, used, window, weight):
    low_risk = LowRiskOverCommitment(
        smoothing_window_size=window, risk_limit_weights={"cpu": weight}
    )
    cluster = load_cluster(2, low_risk_over_commitment=low_risk)
    pods = [pod_of(f"p{number}", each, node="n1") for number, each in enumerate(placed)]
    nodes = [make_node(name, cpu="4", memory="16Gi", pods=1000) for name in cluster.names]
    cluster.snapshot = make_snapshot(nodes, pods)
    cluster.handle = make_handle(cluster.snapshot, clock=cluster.clock)
    cluster.handle.usage = cluster.usage
    cluster.plugin = type(cluster.plugin)(cluster.plugin.args, cluster.handle)
    for each in used:
        cluster.clock.advance_s(1)
        cluster.measure({"n0": each, "n1": each})
    mean = sum(used) // len(used)
    deviation = math.isqrt(sum((each - mean) ** 2 for each in used) // len(used))
    measured = (mean, 1 << 30), (deviation, 0)
    pod = pod_of("new", asked)
    both = [requests_and_limits(each) for each in pods]
    sums = [[sum(each[kind][place] for each in both) for place in (0, 1)] for kind in (0, 1)]
    own = requests_and_limits(pod)
    expected = [
        slow_score(each, own, measured, window, (weight, 0.5)) for each in ([[0, 0], [0, 0]], sums)
    ]
    if not any(own[1]):
        expected = [0, 0]
    assert cluster.scores(pod) == expected


def container_of(requests, limits):
    lists = [
        {name: parse_quantity(text) for name, text in given.items()} for given in (requests, limits)
    ]
    return Container(name="c", resources=ResourceRequirements(requests=lists[0], limits=lists[1]))


def pod_of(name, amounts, node=""):
    request, limit = (f"{amount}m" for amount in amounts)
    container = container_of({"cpu": request}, {"cpu": limit})
    return make_pod(name, containers=[container], node=node)


def test_requests_and_limits_are_those_of_containers_init_containers_and_overhead():
    pod = make_pod(
        "p",
        containers=[
            container_of({"cpu": "1"}, {"cpu": "2"}),
            container_of({"cpu": "1", "memory": "1Ki"}, {}),
        ],
        init_containers=[container_of({"memory": "2Ki"}, {"cpu": "3"})],
        overhead={"cpu": "100m"},
    )
    requests, limits = requests_and_limits(pod)
    assert requests == (2100, 2048)
    # Limits are at least the requests.
    assert limits == (3100, 2048)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"smoothing_window_size": 0}, "lowRiskOverCommitment.smoothingWindowSize: Invalid value"),
        ({"risk_limit_weights": {"cpu": 1.5}}, "riskLimitWeights.cpu: Invalid value: 1.5"),
        ({"risk_limit_weights": {"gpu": 1}}, 'riskLimitWeights: Unsupported value: "gpu"'),
        ({"watcher_address": "http://w"}, "lowRiskOverCommitment.watcherAddress: Forbidden"),
    ],
)
def test_wrong_arguments_are_named(args, error):
    given = LoadAwareArgs(low_risk_over_commitment=LowRiskOverCommitment(**args))
    assert any(error in found for found in load_aware_errors(given))


def test_the_metric_provider_is_a_source():
    provider = MetricProvider(type="Prometheus", address="http://p:9090")
    low_risk = LowRiskOverCommitment(metric_provider=provider)
    assert source_of(LoadAwareArgs(low_risk_over_commitment=low_risk)).address == "http://p:9090"
