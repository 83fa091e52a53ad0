"""Counting, and the text Prometheus reads."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kubestow.service.metrics import buckets
from kubestow.service.metrics.instruments import (
    UNEXPECTED,
    Histogram,
    KeptSeries,
    go_float,
    label_text,
)
from kubestow.service.metrics.registry import MetricsRegistry, parse_allowed_labels


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (1, "1"),
        (-2.5, "-2.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5000000000000002e-05, "1.5000000000000002e-05"),
        (5242.88, "5242.88"),
        (999999, "999999"),
        (1000000, "1e+06"),
        (134217728, "1.34217728e+08"),
        (1e21, "1e+21"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_go_writes_them(number: float, text: str) -> None:
    assert go_float(number) == text


@given(st.floats(allow_nan=False))
def test_numbers_read_back_as_the_same(number: float) -> None:
    assert float(go_float(number)) == number


def test_bounds_are_those_of_the_specification() -> None:
    assert buckets.A[-1] == 0.2048
    assert buckets.B[-1] == 16.384
    assert buckets.C[-1] == 64
    assert buckets.D[-1] == 5242.88
    assert buckets.E == (1, 2, 4, 8, 16)
    assert buckets.F[:7] == (
        1e-05,
        1.5000000000000002e-05,
        2.2500000000000005e-05,
        3.375000000000001e-05,
        5.062500000000001e-05,
        7.593750000000002e-05,
        0.00011390625000000003,
    )
    assert buckets.F[-2:] == (0.014778918800354007, 0.02216837820053101)
    assert buckets.G[-1] == 819.2
    assert buckets.H[-1] == 0.02048
    counts = [len(getattr(buckets, name)) for name in "ABCDEFGH"]
    assert counts == [12, 15, 7, 20, 5, 20, 14, 12]


@given(st.lists(st.floats(-1, 20) | st.sampled_from(buckets.B), max_size=30))
def test_a_histogram_counts_each_value_in_every_bucket_that_holds_it(values: list[float]) -> None:
    histogram = Histogram(buckets.B)
    for value in values:
        histogram.observe(value)
    lines = list(histogram.samples("h", ""))
    counts = [int(line.rpartition(" ")[2]) for line in lines[: len(buckets.B) + 1]]
    assert counts == [
        *(sum(value <= bound for value in values) for bound in buckets.B),
        len(values),
    ]
    assert histogram.sum == pytest.approx(sum(values))


def test_text_is_what_the_library_reads() -> None:
    registry = MetricsRegistry()
    registry.counter("c_total", "Counts.", ("b", "a")).labels('x"\\\n', "y").inc(3)
    registry.histogram("h_seconds", "Times.", buckets=(1, 2)).only.observe(1.5)
    registry.gauge("g", "Is.", stability="STABLE").only.set(-1)
    families = {
        family.name: family for family in text_string_to_metric_families("".join(registry.texts()))
    }
    assert list(families) == ["c", "g", "h_seconds"]
    assert families["c"].documentation == "[ALPHA] Counts."
    assert families["c"].samples[0].labels == {"a": "y", "b": 'x"\\\n'}
    assert families["c"].samples[0].value == 3
    assert families["g"].documentation == "[STABLE] Is."
    histogram = {
        (sample.name, sample.labels.get("le")): sample.value
        for sample in families["h_seconds"].samples
    }
    assert histogram == {
        ("h_seconds_bucket", "1"): 0,
        ("h_seconds_bucket", "2"): 1,
        ("h_seconds_bucket", "+Inf"): 1,
        ("h_seconds_sum", None): 1.5,
        ("h_seconds_count", None): 1,
    }


def test_labels_are_written_by_name_and_the_bound_comes_last() -> None:
    assert label_text(("b", "a"), ("1", "2")) == 'a="2",b="1"'
    registry = MetricsRegistry()
    registry.histogram("h", "x", ("z",), buckets=(1,)).labels("v").observe(0)
    assert 'h_bucket{z="v",le="1"} 1\n' in "".join(registry.texts())


def test_a_disabled_metric_is_not_shown_and_can_still_be_used() -> None:
    registry = MetricsRegistry(disabled=["c_total"])
    registry.counter("c_total", "x").only.inc()
    assert registry.names() == []
    assert registry.disabled_count == 1


def test_values_that_are_not_allowed_become_unexpected() -> None:
    allowed = parse_allowed_labels({"c_total,plugin": "'A,B'"})
    family = MetricsRegistry(allowed_labels=allowed).counter("c_total", "x", ("plugin", "other"))
    for plugin in ("A", "C", "D"):
        family.labels(plugin, "o").inc()
    assert {values: child.value for values, child in family.children().items()} == {
        ("A", "o"): 1,
        (UNEXPECTED, "o"): 2,
    }


def test_a_kept_series_is_found_by_its_labels_once() -> None:
    family = MetricsRegistry().counter("c_total", "x", ("plugin", "other"))
    asked: list[str] = []
    kept = KeptSeries(lambda key: asked.append(key) or family.labels(key, "o"))
    kept["A"].value += 1
    kept["A"].value += 1
    assert asked == ["A"]
    assert family.labels("A", "o").value == 2


def test_reset_sets_counters_to_0_and_leaves_gauges() -> None:
    registry = MetricsRegistry()
    counter, gauge = registry.counter("c_total", "x").only, registry.gauge("g", "x").only
    histogram = registry.histogram("h", "x", buckets=(1,)).only
    counter.inc(5)
    gauge.set(7)
    histogram.observe(1)
    registry.reset()
    assert (counter.value, gauge.value, histogram.count, histogram.sum) == (0, 7, 0, 0)
