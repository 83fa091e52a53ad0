"""Figures of the guide on the trace openb: the half-full cluster, and what it is compared with."""

from pathlib import Path

import numpy as np
import pytest

from tools.rebalance import openb

NODES = """sn,cpu_milli,memory_mib,gpu,model
big-0,64000,262144,8,V100M32
big-1,64000,262144,8,P100
small-0,32000,131072,2,T4
cpu-0,32000,131072,0,
"""
POD_HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / openb.NODES_FILE).write_text(NODES)
    pods = [f"p{index},1000,1024,1,1000,{'P100' if index < 2 else ''}\n" for index in range(18)]
    (tmp_path / openb.PODS_FILE).write_text(POD_HEAD + "".join(pods))
    return tmp_path


def test_half_of_the_gpus_are_requested(folder: Path) -> None:
    cluster = openb.half_full(folder, seed=1)
    assert cluster.has[:, 0].sum() == 18
    assert cluster.requests[:, 0].sum() == 9
    names = [one.raw["metadata"]["name"] for one in cluster.documents if one.raw["kind"] == "Pod"]
    assert len(names) == 9
    allowed = {name for name, models in zip(names, cluster.allowed, strict=True) if models}
    assert allowed <= {"p0", "p1"}


def of_requests(*gpus: int, allowed: str = "") -> openb.OpenbCluster:
    """Nodes with 8, 8, 2 and no GPUs; pods that need these many and a core."""
    has = np.array([[8, 64, 64], [8, 64, 64], [2, 32, 32], [0, 32, 32]], np.int64)
    requests = np.array([[count, 1, 1] for count in gpus], np.int64)
    models = ("V100M32", "P100", "T4", "")
    return openb.OpenbCluster((), has, models, requests, [frozenset(allowed.split())] * len(gpus))


def test_first_fit_decreasing_fills_few_nodes() -> None:
    cluster = of_requests(1, 4, 2, 1, 0)
    assert openb.bound_of(cluster, "empty-nodes") == 1
    taken = openb.first_fit_decreasing(cluster, spares_large=False)
    assert taken[:, 0].tolist() == [8, 0, 0, 0]


def test_first_fit_decreasing_spares_large_nodes() -> None:
    cluster = of_requests(1, 1)
    assert openb.bound_of(cluster, "defragment=nvidia.com/gpu:8") == 2
    assert openb.bound_of(cluster, "empty-nodes") == 1


def test_first_fit_decreasing_keeps_to_models() -> None:
    taken = openb.first_fit_decreasing(of_requests(1, allowed="P100"), spares_large=False)
    assert taken[:, 0].tolist() == [0, 1, 0, 0]


def test_the_guide_has_the_table_of_the_script() -> None:
    text = openb.GUIDE.read_text()
    table = text.partition(openb.BEGIN)[2].partition(openb.END)[0]
    for goal in openb.GOALS:
        assert table.count(f"| `{goal}` |") == len(openb.MOVES)
