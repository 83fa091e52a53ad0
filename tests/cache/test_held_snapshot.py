"""A snapshot that is held while the cache changes, as in a cycle that waits for extenders."""

from typing import Any

import numpy as np
import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.testing import make_cache, make_node, make_pod


@pytest.mark.parametrize("seed", range(5))
def test_a_held_snapshot_stays_as_it_was(seed: int) -> None:
    """Compared with a copy of everything; afterwards a refresh equals a new snapshot."""
    rng = np.random.default_rng(seed)
    nodes = {f"n{i}": make_node(f"n{i}") for i in range(4)}
    pods = [make_pod(f"p{i}", node=f"n{i % 4}", cpu="1") for i in range(8)]
    cache = make_cache(nodes.values(), pods)
    snapshot = Snapshot()
    snapshot.refresh(cache)

    def state(read: Snapshot) -> list[Any]:
        return [
            (info.name, info.node, [pod.uid for pod in info.pods], info.requested.milli_cpu)
            for info in read.node_infos
        ]

    before = state(snapshot)
    with snapshot.held(cache):
        for step in range(20):
            name = f"n{rng.integers(4)}"
            match int(rng.integers(4)):
                case 0:
                    cache.add_pod(PodInfo(make_pod(f"new{step}", node=name, cpu="2")))
                case 1 if pods:
                    cache.remove_pod(pods.pop(int(rng.integers(len(pods)))))
                case 2 if name in nodes:
                    cache.update_node(nodes[name], make_node(name, labels={"v": str(step)}))
                case _ if name in nodes:
                    cache.remove_node(nodes.pop(name))
                case _:
                    nodes[name] = make_node(name)
                    cache.add_node(nodes[name])
            assert state(snapshot) == before
    snapshot.refresh(cache)
    fresh = Snapshot()
    fresh.refresh(cache)
    assert state(snapshot) == state(fresh)
    assert all(info is cache.nodes[info.name] for info in snapshot.node_infos)
