"""The workload of the demo grows with its nodes."""

import asyncio

import pytest

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.cache.node_info import NodeInfo
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import PODS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.live.templates import GPU
from kubestow.simulator.live.workload import (
    CHURN_MAX,
    LivingWorkload,
    WorkloadSize,
    first_nodes,
    first_objects,
    size_for,
)
from kubestow.simulator.node_shapes import node_documents, parse_shape
from kubestow.simulator.served import ServedCluster, ServedOptions
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


def pools(nodes: list[JsonObject]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in nodes:
        pool = node["metadata"]["labels"]["pool"]
        counts[pool] = counts.get(pool, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, {}),
        (1, {"usual": 1}),
        (2, {"usual": 1, "gpu": 1}),
        (10, {"usual": 6, "large": 3, "gpu": 1}),
        (2000, {"usual": 1200, "large": 600, "gpu": 200}),
    ],
)
def test_clusters_of_any_size_have_all_kinds_of_nodes(count: int, expected: dict[str, int]) -> None:
    nodes = first_nodes(count)
    assert pools(nodes) == expected
    assert len({node["metadata"]["name"] for node in nodes}) == count


def test_the_size_follows_what_nodes_have() -> None:
    assert size_for(first_nodes()) == WorkloadSize(1.0, 1.0, 9)
    assert size_for(first_nodes(100)) == WorkloadSize(10.0, 10.0, 90)
    # As much as the scarcer resource allows, and no GPUs.
    few = node_documents([parse_shape("cpu=48,memory=96Gi,count=4")], 0)
    assert size_for(few) == WorkloadSize(2.0, 0.0, 4)
    # Nodes may be added later.
    assert size_for([]) == WorkloadSize(1.0, 0.0, 0)


def shares(infos: list[NodeInfo]) -> tuple[float, float]:
    """How much of the cpu and of the GPUs is requested."""
    cpu = sum(info.requested.milli_cpu for info in infos)
    gpu = sum(info.requested.scalar.get(GPU, 0) for info in infos)
    gpus = sum(info.allocatable.scalar.get(GPU, 0) for info in infos)
    return cpu / sum(info.allocatable.milli_cpu for info in infos), gpu / gpus


@pytest.mark.slow
@pytest.mark.parametrize("node_count", [10, 300])
def test_about_half_of_any_cluster_is_used(node_count: int) -> None:
    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        nodes = first_nodes(node_count)
        size = size_for(nodes)
        cluster = ServedCluster(
            ServedOptions(nodes=0, shapes=()),
            clock,
            config=SchedulerConfig(),
            documents=[Document(one, "built-in") for one in (*nodes, *first_objects(size))],
        )
        cluster.parts.append(LivingWorkload(cluster.store, clock, size))
        async with cluster.running():
            await asyncio.sleep(30)
            assert cluster.embedded is not None
            scheduler = cluster.embedded.scheduler
            scheduler.snapshot.refresh(scheduler.cache)
            cpu, gpu = shares(scheduler.snapshot.node_infos)
            assert 0.4 < cpu < 0.8
            assert 0.3 < gpu < 0.7
            pods = [stored.document for stored in cluster.store.objects_of(PODS)]
            waiting = [pod for pod in pods if not value_at(pod, "spec", "nodeName")]
            # The database is too large for any node, and no node has the disk of two others.
            assert len(waiting) == 3
            created = len(pods)
            await asyncio.sleep(20)
            names = {stored.name for stored in cluster.store.objects_of(PODS)}
            new = names - {pod["metadata"]["name"] for pod in pods}
            assert 0 < len(new) < min(created, 60 * CHURN_MAX)

    run_in_virtual_time(main())
