"""Whole simulations of workloads place their pods."""

from dataclasses import replace

import pytest

from kubestow.simulator.bench import WORKLOADS, Variant, variant_of
from kubestow.simulator.bench.throughput import measure_simulation


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize(
    "name",
    [
        "SchedulingBasic",
        "TopologySpreading",
        "DefaultTopologySpreading",
        "SchedulingCSIPVs",
        "ManyShapes",
    ],
)
def test_all_pods_are_placed(name: str, variant: Variant) -> None:
    workload = next(one for one in WORKLOADS if one.name == name)
    small = replace(workload, nodes=30, init_pods=20, measured_pods=15)
    result = measure_simulation(variant_of(small, variant), percentage=100)
    assert (result.nodes, result.init_pods, result.measure_pods) == (30, 20, 15)
    assert result.scheduled == 15
    # Rounded to a tenth, which is much on a machine that is busy otherwise.
    assert result.pods_per_s == pytest.approx(1e6 / result.us_per_pod, rel=0.01, abs=0.06)
    assert result.cpu_us_per_pod > 0
    assert (result.workload, result.variant) == (name, variant)
