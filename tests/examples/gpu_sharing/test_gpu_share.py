"""GpuShare in a whole scheduler: the choice is written, seen again, freed and undone."""

from typing import Any

import numpy as np
import pytest
from gpu_sharing.free_gpus import GpuChoices, free_gpus
from gpu_sharing.gpu_share import GpuShare
from gpu_sharing.requests import GPU_COUNT, GPU_INDEX, GPU_MILLI, GPU_MODEL

from kubestow.plugin import Action, CycleState, Hint, Pod, PodInfo, Resource, Status, nodes_of, on
from kubestow.testing import (
    ManualClock,
    make_handle,
    make_node,
    make_pod,
    make_simulation,
    make_snapshot,
    run_filter,
    run_hint,
    run_in_virtual_time,
    run_pre_filter,
    simulate,
)
from kubestow.testing.plugin_check import check_plugin


def gpu_node(name: str = "n", count: int = 2, model: str = "T4") -> Any:
    return make_node(name, labels={GPU_MODEL: model}, allocatable={GPU_COUNT: count})


def gpu_pod(
    name: str = "p", milli: int | str = 500, count: int = 1, index: str = "", **fields: Any
) -> Any:
    annotations = {GPU_MILLI: str(milli), GPU_COUNT: str(count)}
    if index:
        annotations[GPU_INDEX] = index
    models = fields.pop("models", "")
    return make_pod(name, annotations={**annotations, GPU_MODEL: models}, **fields)


def run_and_list(objects: list[Any]) -> tuple[list[Pod], int]:
    """The pods after a run, and how many choices the plugin still keeps."""

    async def run() -> tuple[list[Pod], int]:
        cluster = make_simulation(objects, GpuShare).cluster
        async with cluster.running():
            await cluster.settle(limit_s=60)
            pods = [pod for pod in objects if isinstance(pod, Pod)]
            found = [await cluster.client.get(Pod, "default", pod.metadata.name) for pod in pods]
            return found, len(cluster.scheduler.snapshot.derived(GpuChoices))

    return run_in_virtual_time(run())


def test_the_choice_is_written_to_the_pod_and_then_read_from_it() -> None:
    pods = [gpu_pod("a", 600), gpu_pod("b", 300), gpu_pod("c", 1000), gpu_pod("d", 200)]
    found, choices = run_and_list([gpu_node(count=2), *pods])
    written = [pod.metadata.annotations.get(GPU_INDEX) for pod in found]
    # The tightest fit: b shares the GPU of a, and nothing is left for d.
    assert written == ["0", "0", "1", None]
    assert [pod.spec.node_name for pod in found] == ["n", "n", "n", ""]
    assert choices == 0


def test_whole_gpus_are_taken_from_the_lowest_index_on() -> None:
    found, _ = run_and_list([gpu_node(count=4), gpu_pod("a", 400, index="1", node="n"),
                             gpu_pod("b", 1000, count=2)])  # fmt: skip
    assert found[1].metadata.annotations[GPU_INDEX] == "0-2"


def test_a_scheduler_that_starts_again_sees_the_gpus_of_placed_pods() -> None:
    placed = [gpu_pod("a", 600, index="0", node="n"), gpu_pod("b", 500, index="1", node="n")]
    snapshot = make_snapshot([gpu_node()], placed)
    assert free_gpus(nodes_of(snapshot))[:, 0].tolist() == [400, 500, 0, 0, 0, 0, 0, 0]
    plugin = GpuShare(None, make_handle(snapshot))
    assert not run_filter(plugin, gpu_pod(milli=500), snapshot)
    assert list(run_filter(plugin, gpu_pod(milli=501), snapshot)) == ["n"]


def test_a_pod_without_index_counts_as_the_tightest_fit() -> None:
    placed = [gpu_pod("a", 300, node="n"), gpu_pod("b", 600, index="1", node="n")]
    snapshot = make_snapshot([gpu_node()], placed)
    assert free_gpus(nodes_of(snapshot))[:2, 0].tolist() == [1000, 100]


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        pytest.param(gpu_pod(milli="half"), '"half"', id="no-number"),
        pytest.param(gpu_pod(milli=1001), "1001 thousandths", id="more-than-a-gpu"),
        pytest.param(gpu_pod(milli=500, count=2), "2 GPUs with 500", id="shares-of-several"),
    ],
)
def test_wrong_annotations_are_refused(pod: Pod, text: str) -> None:
    snapshot = make_snapshot([gpu_node()])
    status = run_pre_filter(GpuShare(None, make_handle(snapshot)), pod, snapshot)
    assert isinstance(status, Status)
    assert status.is_rejected
    assert text in status.message


def test_the_model_and_the_reasons() -> None:
    result = simulate(
        [
            gpu_node("a", model="T4"),
            gpu_node("b", 1, "P100"),
            gpu_pod(count=2, milli=1000, models="P100|G2"),
        ],
        GpuShare,
    )
    assert result.pods[0].message.startswith(
        "0/2 nodes are available: 1 node(s) had no GPU of the requested model, "
        "1 node(s) had too few GPUs with enough left."
    )


def test_reserve_does_not_count_the_pod_itself() -> None:
    # As in the scheduler: the pod is on its node before Reserve runs.
    assumed = gpu_pod("a", 1000, node="n")
    snapshot = make_snapshot([gpu_node(count=1)], [assumed])
    plugin = GpuShare(None, make_handle(snapshot))
    assert plugin.reserve(CycleState(), PodInfo(assumed), "n") is None
    assert plugin.reserved(assumed.metadata.uid) == (0,)


def test_unreserve_gives_the_gpus_back() -> None:
    snapshot = make_snapshot([gpu_node(count=1)])
    plugin = GpuShare(None, make_handle(snapshot))
    pod = PodInfo(gpu_pod("a", 1000))
    assert plugin.reserve(CycleState(), pod, "n") is None
    assert plugin.reserved(pod.uid) == (0,)
    plugin.unreserve(CycleState(), pod, "n")
    assert plugin.reserved(pod.uid) == ()
    assert len(snapshot.derived(GpuChoices)) == 0


def test_preemption_counts_the_gpus_of_victims() -> None:
    placed = [gpu_pod("low", 700, index="0", node="n", priority=1)]
    result = simulate([gpu_node(count=1), *placed, gpu_pod("high", 500, priority=9)], GpuShare)
    assert result.evicted == ["default/low"]
    assert result.pods[0].outcome == "Scheduled"


def test_a_waiting_pod_is_tried_when_a_pod_with_gpus_goes() -> None:
    plugin = GpuShare(None, make_handle(make_snapshot([gpu_node()])))
    deleted = on(Resource.POD, Action.DELETE).event
    assert run_hint(plugin, deleted, gpu_pod(), gpu_pod("gone"), None) is Hint.QUEUE
    assert run_hint(plugin, deleted, gpu_pod(), make_pod("gone"), None) is Hint.SKIP


def test_a_node_with_more_gpus_than_the_arrays_uses_the_first_ones() -> None:
    snapshot = make_snapshot([gpu_node(count=16)])
    assert np.count_nonzero(free_gpus(nodes_of(snapshot))) == 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "args"),
    [
        ("gpu_sharing.gpu_share:GpuShare", None),
        ("gpu_sharing.policies:Random", {"seed": 1}),
        (
            "gpu_sharing.fgd:FGD",
            {"typicalPods": [{"cpuMilli": 900, "gpuCount": 1, "gpuMilli": 60, "pods": 3}]},
        ),
    ],
)
def test_the_check_of_plugins_finds_nothing(reference: str, args: object) -> None:
    report = check_plugin(reference, args, ManualClock())
    assert not report.has_failed, report
