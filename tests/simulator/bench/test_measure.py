"""Every workload builds, places its pods, and decides as without any reuse."""

import gc

import pytest

from kubestow.simulator.bench import WORKLOADS, Workload, measure
from kubestow.simulator.bench.upstream import UPSTREAM


def test_every_workload_has_a_figure_to_compare_with_and_every_figure_a_workload() -> None:
    assert {workload.name for workload in WORKLOADS} == set(UPSTREAM)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.parametrize("percentage", [0, 100])
def test_a_small_one_decides_as_without_reuse(workload: Workload, percentage: int) -> None:
    small = Workload(
        name=workload.name,
        nodes=200,
        init_pods=800 if "preemption" in workload.tags else 100,
        measured_pods=40,
        build=workload.build,
        tags=workload.tags,
    )
    result = measure(small, percentage=percentage, check_every=3)
    assert result.checked > 0
    assert result.differing == 0
    assert result.measure_pods == 40
    # One of 21 pods is too large on purpose; all others are placed.
    assert result.scheduled == (39 if workload.name.startswith("Unschedulable") else 40)


def test_loading_is_timed_apart_and_the_collector_runs_again_afterwards() -> None:
    basic = next(workload for workload in WORKLOADS if workload.name == "SchedulingBasic")
    result = measure(basic, nodes=20, pods=5)
    assert result.load_s > 0
    assert gc.isenabled()
