"""Every workload builds, places its pods, and decides as without any reuse."""

import gc
from dataclasses import replace

import pytest

from kubestow.simulator.bench import WORKLOADS, Variant, Workload, measure, variant_of


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.parametrize("percentage", [0, 100])
def test_a_small_one_decides_as_without_reuse(
    workload: Workload, percentage: int, variant: Variant
) -> None:
    init_pods = 800 if "preemption" in workload.tags else 100
    small = replace(workload, nodes=200, init_pods=init_pods, measured_pods=40)
    check_every = 3 if variant is Variant.PLAIN else 6
    result = measure(variant_of(small, variant), percentage=percentage, check_every=check_every)
    assert (result.workload, result.variant) == (workload.name, variant)
    assert result.checked > 0
    assert result.differing == 0
    assert result.measure_pods == 40
    # One of 21 pods is too large on purpose; all others are placed.
    assert result.scheduled == (39 if workload.name.startswith("Unschedulable") else 40)


def test_loading_is_timed_apart_and_the_collector_runs_again_afterwards() -> None:
    basic = next(workload for workload in WORKLOADS if workload.name == "SchedulingBasic")
    result = measure(basic, nodes=20, pods=5)
    assert result.load_s > 0
    assert result.first_us > 0
    assert result.p50_us <= result.p99_us
    assert result.us_per_pod_min == result.us_per_pod == result.us_per_pod_max
    assert result.cpu_us_per_pod > 0
    assert gc.isenabled()
