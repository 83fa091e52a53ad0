"""How much work a pod causes, counted rather than timed: a lost optimisation shows here.

Every bound is a little above what is needed. A change that exceeds one makes every pod slower.
"""

import gc
import sys
from types import FrameType
from typing import Any

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.simulator.bench import WORKLOADS, Variant, variant_of
from kubestow.simulator.bench.gangs import GangBench, GangCase
from kubestow.simulator.bench.measure import Bench
from kubestow.simulator.virtual_time import run_in_virtual_time

NODES = 1000
WARM_UP = 150
COUNTED = 50
BY_NAME = {workload.name: workload for workload in WORKLOADS}


class StillClock:
    """Time stands still: on a busy machine, the log of slow plugins would be counted, too.

    Its functions are built in, as those of the real clock, so that they are no calls.
    """

    now_ns = staticmethod(int)
    monotonic_s = staticmethod(float)


def warm(
    name: str, *, percentage: int, variant: Variant = Variant.PLAIN
) -> tuple[Bench, list[PodInfo]]:
    """A bench that has placed some pods of the workload, and those that come next."""
    workload = variant_of(BY_NAME[name], variant)
    cluster = workload.build(NODES, min(workload.init_pods, NODES // 2), WARM_UP + COUNTED)
    bench = Bench(cluster, percentage=percentage, clock=StillClock())
    pods = [bench.enqueue(pod) for pod in cluster.measured]
    for pod in pods[:WARM_UP]:
        bench.cycle(pod)
    return bench, pods[WARM_UP:]


class CallCounter:
    """Counts calls of Python functions while it is active."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> "CallCounter":
        # Garbage of other tests has callbacks, which would be counted.
        gc.disable()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)
        gc.enable()

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        self.calls += event == "call"


# Calls for a pod that equals the others, one with labels of its own, and one with amounts of its
# own as well.
CALLS = {
    "SchedulingBasic": (105, 110, 275),
    "SchedulingNodeAffinity": (105, 110, 275),
    "SchedulingSecrets": (110, 113, 280),
    "MixedSchedulingBasePod": (120, 128, 292),
    "SchedulingDaemonset": (100, 103, 103),
    "TopologySpreading": (158, 172, 340),
    "PreferredTopologySpreading": (167, 182, 350),
    "DefaultTopologySpreading": (184, 202, 202),
    "SchedulingWithNodeInclusionPolicy": (200, 212, 380),
    "SchedulingPodAntiAffinity": (205, 228, 388),
    "SchedulingPodMatchingAntiAffinity": (178, 192, 350),
    "SchedulingPreferredPodAffinity": (218, 242, 475),
    "SchedulingCSIPVs": (228, 234, 393),
    "SchedulingWithExtendedResource": (285, 262, 262),
    "ManyShapes": (628, 624, 730),
    "ManyApps": (490, 490, 555),
    "ManyApps/Plain": (245, 247, 293),
}


@pytest.mark.parametrize("percentage", [0, 100])
@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("name", CALLS)
def test_calls_per_pod(name: str, variant: Variant, percentage: int) -> None:
    bench, pods = warm(name, percentage=percentage, variant=variant)
    with CallCounter() as counter:
        for pod in pods:
            bench.cycle(pod)
    assert counter.calls / len(pods) <= CALLS[name][list(Variant).index(variant)]


# Both cycles of a pod that evicts another one.
@pytest.mark.parametrize(
    ("variant", "most"),
    [(Variant.PLAIN, 320), (Variant.UNLIKE, 328), (Variant.ALL_UNLIKE, 1090)],
)
def test_calls_of_a_preemption(variant: Variant, most: int) -> None:
    workload = variant_of(BY_NAME["PreemptionBasic"], variant)
    cluster = workload.build(NODES, 4 * NODES, WARM_UP + COUNTED)
    bench = Bench(cluster, percentage=0, clock=StillClock())
    counter = CallCounter()
    for number, pod in enumerate(cluster.measured):
        if number == WARM_UP:
            counter.calls = 0
        info = bench.enqueue(pod)
        with counter:
            failed = bench.cycle(info)
        assert failed.post_filter is not None
        nominated = bench.evict_and_nominate(info, failed.post_filter)
        with counter:
            assert bench.cycle(nominated).is_scheduled
    assert counter.calls / COUNTED <= most


@pytest.mark.parametrize(
    ("name", "most"),
    [
        # One row changes with every pod, and that one is evaluated as plain numbers.
        ("SchedulingBasic", 0),
        ("MixedSchedulingBasePod", 0),
        # Placed pods change the counts, so both points evaluate the nodes they are given.
        ("TopologySpreading", 2 * NODES),
        ("PreferredTopologySpreading", NODES),
    ],
)
def test_rows_that_plugins_evaluate(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, pods = warm(name, percentage=100)
    asked: list[int] = []

    def count(plugin: object, method: str) -> None:
        original = getattr(plugin, method)

        def counting(state: Any, pod: Any, nodes: Any) -> Any:
            asked.append(len(nodes))
            return original(state, pod, nodes)

        monkeypatch.setattr(plugin, method, counting)

    for step in bench.profile.filter_steps:
        count(step.plugin, "filter")
    for step in bench.profile.score_steps:
        count(step.plugin, "score")
    for pod in pods:
        bench.cycle(pod)
    assert sum(asked) / len(pods) <= most


def test_a_pod_that_fits_on_no_node_calls_no_plugin_for_all_nodes_again() -> None:
    bench, pods = warm("Unschedulable", percentage=0)
    failing = next(pod for pod in pods if bench.cycle(pod).status is not None)
    with CallCounter() as counter:
        assert bench.cycle(failing).status is not None
    assert counter.calls <= 160


# Python calls of a whole cycle (queue, decision, result), per gang or pod.
@pytest.mark.parametrize(
    ("case", "most"),
    [
        pytest.param(GangCase("fits", 1, 200, "100m"), 200 * 410, id="a-gang-of-200-that-fits"),
        pytest.param(GangCase("waits", 4, 64, "100", 3), 64 * 180, id="gangs-of-64-that-wait"),
        pytest.param(GangCase("pods", 4, 0, "100", 3), 405, id="pods-that-wait"),
    ],
)
def test_calls_per_gang(case: GangCase, most: int) -> None:
    async def run() -> float:
        async with GangBench(case, NODES) as bench:
            for _ in range(case.rounds_before):
                bench.run_round()
                await bench.settle()
            with CallCounter() as counter:
                bench.run_round()
            return counter.calls / case.gangs

    assert run_in_virtual_time(run()) <= most
