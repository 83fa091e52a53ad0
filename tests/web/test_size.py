"""The page of a large cluster: 5,000 nodes with 50,000 pods.

Limits are in CPU time of this process, far above what it takes, so that a busy machine does not
matter: they find work that grows with the cluster where it should not.
"""

import asyncio
import gc

import msgspec
import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import process_cpu_s
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.testing import ManualClock, make_node, make_pod
from kubestow.web.follower import FollowedParts, PageFollower
from kubestow.web.picture import PageFacts, state_of, take_picture
from kubestow.web.protocol import Batch
from kubestow.web.responses import gzipped

NODES = 5_000
PODS = 50_000
FACTS = PageFacts("run", "", "", (), "")


def large_cluster() -> StillCluster:
    clock = ManualClock()
    cluster = StillCluster(SchedulerConfig(), MemoryClient(MemoryCluster(clock)), clock)
    cluster.load(
        make_node(f"node-{i}", cpu="32", memory="128Gi", zone=f"z{i % 3}") for i in range(NODES)
    )
    cluster.load(
        make_pod(
            f"app-{i % 200}-{i}",
            namespace=f"team-{i % 50}",
            cpu=f"{100 + i % 40}m",
            node=f"node-{i % NODES}" if i % 20 else "",
        )
        for i in range(PODS)
    )
    return cluster


@pytest.mark.slow
def test_a_large_cluster_is_opened_and_followed_quickly():
    async def main() -> None:
        cluster = large_cluster()
        clock = cluster.clock
        follower = PageFollower(FollowedParts(cluster.scheduler, [], clock, clock))
        gc.freeze()  # What other tests left in this process is not gone over in the measured time.
        begin_s = process_cpu_s()
        await follower.start()
        picture = take_picture(follower)
        assert picture is not None
        body = msgspec.json.encode(state_of(picture, FACTS))
        compressed = gzipped(body)
        assert process_cpu_s() - begin_s < 2
        assert len(body) < 4_000_000
        assert len(compressed) < 800_000
        assert (len(picture.nodes), len(picture.pods)) == (NODES, PODS)

        changed = [pod for pod in cluster.objects.pods if pod.spec.node_name][:100]
        for pod in changed:
            cluster.put(msgspec.structs.replace(pod, spec=_important(pod.spec)))
        begin_s = process_cpu_s()
        batch = await follower.collect()
        assert isinstance(batch, Batch)
        sent = msgspec.json.encode(batch)
        assert process_cpu_s() - begin_s < 0.1
        assert batch.pods is not None
        assert len(batch.pods.set) == 100
        assert len(sent) < 20_000

    asyncio.run(main())


def _important(spec: msgspec.Struct) -> msgspec.Struct:
    return msgspec.structs.replace(spec, priority=1000)
