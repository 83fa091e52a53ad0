"""Scores by the formulas of Trimaran's plugins, and what arguments are refused."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubestow.config.load_aware_args import (
    LoadAwareArgs,
    LoadEstimate,
    LoadSource,
    LoadThresholds,
    LoadVariationRiskBalancing,
    MetricProvider,
    TargetLoadPacking,
    load_aware_errors,
    source_of,
)
from kubestow.testing import make_pod

GIB = 1 << 30


def half_up(value):
    return math.floor(value + 0.5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 4500), st.integers(0, 4000), st.integers(1, 99))
def test_target_load_packing_equals_a_slow_reading(load_cluster, used, requested, target):
    packing = TargetLoadPacking(target_utilization=target)
    cluster = load_cluster(1, target_load_packing=packing)
    cluster.measure({"n0": used})
    expected = 1000 if not requested else half_up(requested * 1.5)
    percent = 100 * float(used + expected) / 4000
    if percent > 100:
        score = 0
    elif percent > target:
        score = half_up(target * (100 - percent) / (100 - target))
    else:
        score = half_up((100 - target) * percent / target + target)
    pod = make_pod("p", cpu=f"{requested}m") if requested else make_pod("p")
    assert cluster.scores(pod) == [score]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 4500), min_size=1, max_size=4),
    st.integers(0, 4000),
    st.floats(0, 3),
    st.floats(0.1, 3),
)
def test_risk_balancing_equals_a_slow_reading(load_cluster, used, requested, margin, sensitivity):
    balancing = LoadVariationRiskBalancing(
        safe_variance_margin=margin, safe_variance_sensitivity=sensitivity
    )
    cluster = load_cluster(1, load_variation_risk_balancing=balancing)
    for each in used:
        cluster.clock.advance_s(1)
        cluster.measure({"n0": each}, {"n0": 0})
    mean = sum(used) // len(used)
    deviation = math.isqrt(sum((each - mean) ** 2 for each in used) // len(used))
    mu = min((min(mean, 4000) + requested) / 4000, 1.0)
    sigma = min(deviation / 4000, 1.0) ** (1 / sensitivity)
    risk = (mu + min(sigma * margin, 1.0)) / 2
    pod = make_pod("p", cpu=f"{requested}m")
    assert cluster.scores(pod) == [pytest.approx(half_up((1 - risk) * 100), abs=1e-9)]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"thresholds": LoadThresholds(average={"gpu": 5})}, "thresholds.average: Unsupported"),
        ({"thresholds": LoadThresholds(peak={"cpu": 0})}, "thresholds.peak.cpu: Invalid value: 0"),
        ({"statistic": "median"}, 'statistic: Unsupported value: "median"'),
        ({"resources": ()}, "resources: Required value"),
        ({"max_age_seconds": 0}, "maxAgeSeconds: Invalid value: 0"),
        ({"estimate": LoadEstimate(defaults={"cpu": "x"})}, "estimate.defaults.cpu: Invalid"),
        ({"source": LoadSource(type="Graphite")}, "source.type: Unsupported value"),
        ({"source": LoadSource(type="Prometheus")}, "source.address: Required value"),
        ({"source": LoadSource(type="Prometheus", address="ftp://x")}, "source.address: Invalid"),
        ({"source": LoadSource(type="Prometheus", address="http://u@x")}, "must have no user"),
        ({"source": LoadSource(address="http://x")}, "source.address: Forbidden"),
        ({"source": LoadSource(type="File")}, "source.path: Required value"),
        (
            {
                "target_load_packing": TargetLoadPacking(),
                "load_variation_risk_balancing": LoadVariationRiskBalancing(),
            },
            "loadVariationRiskBalancing: Forbidden",
        ),
        ({"target_load_packing": TargetLoadPacking(watcher_address="x")}, "load watcher is not"),
        ({"target_load_packing": TargetLoadPacking(target_utilization=100)}, "targetUtilization"),
        (
            {"target_load_packing": TargetLoadPacking(default_requests_multiplier="nan")},
            "defaultRequestsMultiplier: Invalid",
        ),
        (
            {
                "target_load_packing": TargetLoadPacking(
                    metric_provider=MetricProvider(type="SignalFx", token="t")
                )
            },
            "metricProvider.type: Unsupported",
        ),
    ],
)
def test_wrong_arguments_are_named(args, error):
    assert load_aware_errors(LoadAwareArgs()) == []
    assert any(error in found for found in load_aware_errors(LoadAwareArgs(**args)))


def test_the_metric_provider_of_trimaran_is_a_source():
    provider = MetricProvider(type="Prometheus", address="http://p:9090")
    args = LoadAwareArgs(target_load_packing=TargetLoadPacking(metric_provider=provider))
    assert source_of(args) == LoadSource(type="Prometheus", address="http://p:9090")
    assert source_of(LoadAwareArgs()) == LoadSource()
