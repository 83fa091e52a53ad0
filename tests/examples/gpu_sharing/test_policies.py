"""Every score, verdict and choice of a GPU equals the procedure, read one node at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import procedure
import pytest
from gpu_sharing.config import POLICIES
from gpu_sharing.fgd import FGD, FGDArgs
from gpu_sharing.fragmentation import Fragmentation, TypicalPod, typical_pods
from gpu_sharing.gpu_share import GpuShare
from gpu_sharing.policies import (
    BestFit,
    DotProd,
    GpuClustering,
    GpuPacking,
    Random,
    RandomArgs,
)
from gpu_sharing.requests import GPU_COUNT, GPU_INDEX, GPU_MILLI, GPU_MODEL, gpu_request
from hypothesis import given
from hypothesis import strategies as st
from procedure import SlowNode, SlowPod, Typical

from kubestow.plugin import PodInfo, nodes_of
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot, run_filter, run_score

MODELS = ("T4", "P100", "G2")
MILLIS = st.sampled_from((100, 250, 333, 500, 700, 990))


@st.composite
def slow_pods(draw: st.DrawFn) -> SlowPod:
    # Some are as large as nodes, or as what is left of them.
    cpu = draw(st.sampled_from((100, 4000, 16_000, 28_000, 32_000)))
    kind = draw(st.sampled_from(("cpu", "share", "whole")))
    if kind == "cpu":
        return SlowPod(cpu)
    models = frozenset(draw(st.sets(st.sampled_from(MODELS), max_size=2)))
    if kind == "share":
        return SlowPod(cpu, count=1, milli=draw(MILLIS), models=models)
    return SlowPod(cpu, count=draw(st.sampled_from((1, 1, 2, 4, 8))), milli=1000, models=models)


class Cluster:
    """The same nodes and placed pods twice: plain, and as a snapshot."""

    def __init__(self, nodes: list[SlowNode], typical: Typical) -> None:
        self.nodes, self.typical = nodes, typical
        self._api_nodes = [
            make_node(
                node.name,
                cpu=f"{node.cpu}m",
                pods=1001,
                labels={GPU_MODEL: node.model},
                allocatable={GPU_COUNT: len(node.gpus)},
            )
            for node in nodes
        ]
        self._api_pods: list[Any] = []

    def place(self, pod: SlowPod, node: SlowNode, gpus: tuple[int, ...]) -> None:
        node.place(pod, gpus)
        annotations = {GPU_INDEX: "-".join(map(str, gpus))} if gpus else {}
        self._api_pods.append(api_pod(pod, node=node.name, annotations=annotations))

    def snapshot(self) -> Any:
        return make_snapshot(self._api_nodes, self._api_pods)


def api_pod(pod: SlowPod, *, node: str = "", annotations: dict[str, str] | None = None) -> Any:
    found = dict(annotations or {})
    if pod.count:
        found |= {GPU_MILLI: str(pod.milli), GPU_COUNT: str(pod.count)}
        found[GPU_MODEL] = "|".join(sorted(pod.models))
    return make_pod("p", cpu=f"{pod.cpu}m", node=node, annotations=found)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    nodes = [
        SlowNode(
            f"n{number}",
            draw(st.sampled_from((32_000, 64_000, 128_000))),
            0,
            [1000] * draw(st.sampled_from((1, 2, 4, 8))),
            draw(st.sampled_from(MODELS)),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    typical = procedure.typical_of(draw(st.lists(slow_pods(), min_size=1, max_size=8)))
    cluster = Cluster(nodes, typical)
    for pod in draw(st.lists(slow_pods(), max_size=12)):
        node = draw(st.sampled_from(nodes))
        if node.fits(pod):
            fitting = [gpu for gpu, left in enumerate(node.gpus) if left >= pod.milli]
            gpus = tuple(draw(st.permutations(fitting))[: pod.count])
            cluster.place(pod, node, gpus)
    return cluster


def as_typical(typical: Typical) -> tuple[TypicalPod, ...]:
    return tuple(
        TypicalPod(
            cpu_milli=shape.cpu,
            gpu_count=shape.count,
            gpu_milli=shape.milli,
            gpu_models=tuple(sorted(shape.models)),
            pods=count,
        )
        for shape, count in typical
    )


def plugin(policy: str, typical: Typical, handle: Any) -> Any:
    makers: dict[str, Callable[[], Any]] = {
        "Random": lambda: Random(RandomArgs(seed=7), handle),
        "DotProd": lambda: DotProd(None, handle),
        "BestFit": lambda: BestFit(None, handle),
        "GpuPacking": lambda: GpuPacking(None, handle),
        "GpuClustering": lambda: GpuClustering(None, handle),
        "FGD": lambda: FGD(FGDArgs(typical_pods=as_typical(typical)), handle),
    }
    return makers[policy]()


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "Random"])
@given(cluster=clusters(), pod=slow_pods())
def test_scores_equal_the_procedure(policy: str, cluster: Cluster, pod: SlowPod) -> None:
    rows = [row for row, node in enumerate(cluster.nodes) if node.fits(pod)]
    if not rows:
        return
    snapshot = cluster.snapshot()
    # The order of a snapshot is that of its nodes.
    assert [node.name for node in cluster.nodes] == list(snapshot.names)
    found = run_score(
        plugin(policy, cluster.typical, make_handle(snapshot)),
        api_pod(pod),
        nodes_of(snapshot, np.array(rows)),
    )
    fitting = [cluster.nodes[row] for row in rows]
    assert found == procedure.scores(policy, fitting, pod, cluster.typical)


@given(cluster=clusters(), pod=slow_pods())
def test_verdicts_equal_the_procedure(cluster: Cluster, pod: SlowPod) -> None:
    snapshot = cluster.snapshot()
    verdicts = run_filter(GpuShare(None, make_handle(snapshot)), api_pod(pod), snapshot)
    for node in cluster.nodes:
        fits = pod.count == 0 or (node.allows(pod) and node.has_gpus(pod))
        assert (node.name not in verdicts) == fits


@given(cluster=clusters(), pod=slow_pods().filter(lambda pod: 0 < pod.milli < 1000))
def test_fgd_takes_the_best_gpu(cluster: Cluster, pod: SlowPod) -> None:
    snapshot = cluster.snapshot()
    fgd = plugin("FGD", cluster.typical, make_handle(snapshot))
    new = PodInfo(api_pod(pod))
    for row, node in enumerate(cluster.nodes):
        if node.fits(pod):
            by_gpu = procedure.fgd_scores(node, pod, cluster.typical)
            best = max(score for score in by_gpu if score is not None)
            chosen = fgd.choose_gpu(new, gpu_request(new.pod), nodes_of(snapshot, np.array([row])))
            assert chosen == by_gpu.index(best)


@given(cluster=clusters())
def test_fragmentation_equals_the_procedure(cluster: Cluster) -> None:
    fragmentation = Fragmentation(as_typical(cluster.typical))
    found = fragmentation.of_nodes(fragmentation.state(nodes_of(cluster.snapshot())))
    expected = [
        float(procedure.fragmentation(node.cpu, node.gpus, node.model, cluster.typical))
        for node in cluster.nodes
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


@given(st.lists(slow_pods(), min_size=1, max_size=40))
def test_typical_pods_are_the_most_frequent(pods: list[SlowPod]) -> None:
    counted = typical_pods(as_typical([(pod, 1) for pod in pods]))
    assert counted == as_typical(procedure.typical_of(pods))


def test_random_takes_each_feasible_node_and_gpu_about_as_often() -> None:
    nodes = [make_node(f"n{number}", allocatable={GPU_COUNT: 4}) for number in range(5)]
    snapshot = make_snapshot(nodes)
    random = Random(RandomArgs(seed=3), make_handle(snapshot))
    feasible = nodes_of(snapshot, np.array([0, 2, 3]))
    chosen_nodes, chosen_gpus = [0] * 3, [0] * 4
    for number in range(600):
        pod = make_pod("p", uid=f"u{number}", annotations={GPU_MILLI: "500"})
        scores = run_score(random, pod, feasible)
        assert scores is not None
        assert sorted(scores) == [0, 0, 100]
        assert scores == run_score(random, pod, feasible)
        chosen_nodes[scores.index(100)] += 1
        node = nodes_of(snapshot, np.array([0]))
        chosen_gpus[random.choose_gpu(PodInfo(pod), gpu_request(pod), node)] += 1
    assert min(chosen_nodes) > 150
    assert min(chosen_gpus) > 100
