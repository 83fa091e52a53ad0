"""Several runs become one by medians, and are compared only if the machine was calm."""

from typing import Any

import msgspec
import pytest

from kubestow.simulator.bench import Measurement, Variant, compare, median_of
from kubestow.simulator.bench.upstream import CALIBRATION_S


def measurement(us_per_pod: float = 100, **changes: Any) -> Measurement:
    values: dict[str, Any] = {
        "workload": "SchedulingBasic",
        "nodes": 5000,
        "init_pods": 1000,
        "measure_pods": 200,
        "percentage_of_nodes_to_score": 0,
        "scheduled": 200,
        "pods_per_s": 1e6 / us_per_pod,
        "us_per_pod": us_per_pod,
        "cpu_us_per_pod": us_per_pod,
        "peak_memory_mib": 100.0,
        "us_per_pod_min": us_per_pod,
        "us_per_pod_max": us_per_pod,
        "cores": 2,
        "foreign_cores": 0.0,
        "calibration_ms": CALIBRATION_S * 1000,
        "calibration_spread": 1.0,
        "first_us": us_per_pod * 10,
        "p50_us": us_per_pod * 0.9,
        "p99_us": us_per_pod * 2,
        **changes,
    }
    return Measurement(**values)


def test_figures_are_medians_not_the_best() -> None:
    runs = [
        measurement(50, checked=3, foreign_cores=0.1),
        measurement(90, checked=3, differing=1, foreign_cores=1.9),
        measurement(60, checked=4, foreign_cores=0.2),
    ]
    merged = median_of(runs)
    assert (merged.us_per_pod, merged.us_per_pod_min, merged.us_per_pod_max) == (60, 50, 90)
    assert (merged.first_us, merged.p99_us, merged.cpu_us_per_pod) == (600, 120, 60)
    assert (merged.runs, merged.checked, merged.differing) == (3, 10, 1)
    assert merged.foreign_cores == 0.2
    assert (merged.nodes, merged.measure_pods, merged.title) == (5000, 200, "SchedulingBasic")


def test_one_run_is_its_own_median() -> None:
    run = measurement(variant=Variant.UNLIKE, foreign_cores=None)
    assert median_of([run]) == run


@pytest.mark.parametrize(
    ("changes", "upstream_us", "ratio", "is_estimated"),
    [
        pytest.param({}, 1072, 10.7, False, id="adaptive"),
        pytest.param({"percentage_of_nodes_to_score": 100}, 6507, 65.1, False, id="all-nodes"),
        pytest.param({"variant": Variant.UNLIKE}, 1072, 10.7, False, id="unlike"),
        pytest.param({"variant": Variant.ALL_UNLIKE}, 1072, 10.7, False, id="all-unlike"),
        pytest.param(
            {"calibration_ms": CALIBRATION_S * 2000}, 2144, 21.4, False, id="half-as-fast"
        ),
        pytest.param({"workload": "SchedulingSecrets"}, 925.9, 9.3, True, id="estimated"),
        pytest.param({"nodes": 4000}, None, None, False, id="another-size"),
        pytest.param({"percentage_of_nodes_to_score": 7}, None, None, False, id="another-percent"),
        pytest.param({"foreign_cores": 0.5}, None, None, False, id="busy"),
        pytest.param({"cpu_us_per_pod": 80.0}, None, None, False, id="waited"),
        pytest.param({"calibration_spread": 1.4}, None, None, False, id="unsteady"),
    ],
)
def test_comparison(
    changes: dict[str, Any], upstream_us: float | None, ratio: float | None, is_estimated: bool
) -> None:
    compared = compare(measurement(**changes))
    assert (compared.upstream_us_per_pod, compared.ratio) == (upstream_us, ratio)
    assert compared.upstream_is_estimated == is_estimated


def test_a_line_of_json_reads_back() -> None:
    compared = compare(measurement(variant=Variant.ALL_UNLIKE))
    line = msgspec.json.encode(compared)
    assert b'"variant":"all-unlike"' in line
    assert b'"initPods":1000' in line
    assert msgspec.json.decode(line, type=type(compared)) == compared
