"""The scores of cpu and memory in doubles, compared with integers, node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.index.bare_nodes import BareNodes
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.plugins._shared import basic_loads
from kubestow.plugins._shared.basic_loads import BasicLoads
from kubestow.testing import make_node, make_pod, make_snapshot

LIMIT = 1 << 46


def least_allocated(info: NodeInfo, cpu: int, memory: int) -> int:
    free_cpu = info.allocatable.milli_cpu - info.non_zero_cpu - cpu
    free_memory = info.allocatable.memory - info.non_zero_memory - memory
    cpu_score = max(free_cpu, 0) * 100 // info.allocatable.milli_cpu
    return (cpu_score + max(free_memory, 0) * 100 // info.allocatable.memory) // 2


def evenness(info: NodeInfo, cpu: int, memory: int) -> int:
    cpu_share = min((info.requested.milli_cpu + cpu) / info.allocatable.milli_cpu, 1.0)
    memory_share = min((info.requested.memory + memory) / info.allocatable.memory, 1.0)
    return int((1 - abs((cpu_share - memory_share) / 2)) * 100)


def is_exact(info: NodeInfo) -> bool:
    offered = info.allocatable.milli_cpu, info.allocatable.memory
    used = info.requested.milli_cpu, info.requested.memory, info.non_zero_cpu, info.non_zero_memory
    return all(0 < amount < LIMIT for amount in offered) and max(used) < LIMIT


def check(nodes: Nodes, cpu: int, memory: int) -> None:
    loads = BasicLoads.of(nodes, cpu, memory)
    if not all(map(is_exact, nodes.snapshot.node_infos)):
        assert loads is None
        return
    assert loads is not None
    infos = nodes.infos()
    least = loads.least_allocated(nodes, cpu, memory).tolist()
    assert least == [least_allocated(info, cpu, memory) for info in infos]
    after, before = loads.evenness(nodes, cpu, memory)
    assert after.tolist() == [evenness(info, cpu, memory) for info in infos]
    assert before.tolist() == [evenness(info, 0, 0) for info in infos]


# Hundredths and tenths often come out on the border where a score is cut.
SIZES = st.sampled_from([100, 1000, 4000]) | st.integers(1, 10**6)
MEMORIES = st.sampled_from([100, 1000, 64 << 30, LIMIT - 1]) | st.integers(1, LIMIT - 1)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["place", "place", "place", "leave", "node", "odd", "gone"]),
        st.integers(0, 5),
        SIZES,
        MEMORIES,
    ),
    max_size=25,
)


@given(
    steps=STEPS,
    cpu=st.just(0) | SIZES,
    memory=st.just(0) | MEMORIES,
    rows=st.lists(st.integers(0, 5), unique=True),
    few=st.sampled_from([0, 1, 8]),
)
def test_it_equals_integers(
    steps: list[tuple[str, int, int, int]], cpu: int, memory: int, rows: list[int], few: int
) -> None:
    """Whatever changed since it was last read, one by one or all together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basic_loads, "_ROWS_FEW", few)
        cache, snapshot = Cache(), Snapshot()
        cache.add_node(make_node("n0", cpu="4", memory=4000))
        placed: list[PodInfo] = []
        for number, (step, node, size, amount) in enumerate(steps):
            name = f"n{node}"
            entry = cache.nodes.get(name)
            known = None if entry is None else entry.node
            match step:
                case "place":
                    pod = make_pod(f"p{number}", cpu=f"{size}m", memory=amount, node=name)
                    placed.append(PodInfo(pod))
                    cache.add_pod(placed[-1])
                case "leave" if placed:
                    cache.remove_pod(placed.pop(node % len(placed)).pod)
                case "node" if known is None:
                    cache.add_node(make_node(name, cpu=f"{size}m", memory=amount))
                case "odd" if known is None:
                    cache.add_node(make_node(name, cpu=size % 2, memory=LIMIT - 1 + size % 3))
                case "gone" if node and known is not None:
                    cache.remove_node(known)
                case _:
                    continue
            if number % 3 != 1:
                snapshot.refresh(cache)
                check(nodes_of(snapshot), cpu, memory)
        snapshot.refresh(cache)
        there = np.array([row for row in rows if row < len(snapshot)], np.intp)
        check(nodes_of(snapshot, there), cpu, memory)
        check(nodes_of(snapshot, slice(1, 3)), cpu, memory)


def test_one_view_may_be_read_before_and_after_a_change() -> None:
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n", cpu="4", memory=4000))
    snapshot.refresh(cache)
    nodes = nodes_of(snapshot, np.array([0]))
    check(nodes, 500, 500)
    cache.add_pod(PodInfo(make_pod("p", cpu="1", memory=100, node="n")))
    snapshot.refresh(cache)
    check(nodes, 500, 500)


@pytest.mark.parametrize(("cpu", "memory"), [(LIMIT, 0), (0, LIMIT), (-1, 0), (0, -1)])
def test_requests_that_are_not_exact_are_left_to_others(cpu: int, memory: int) -> None:
    nodes = nodes_of(make_snapshot([make_node()]))
    assert BasicLoads.of(nodes, cpu, memory) is None
    assert BasicLoads.of(nodes, LIMIT - 1, LIMIT - 1) is not None


def test_views_with_other_pods_are_left_to_others() -> None:
    snapshot = make_snapshot([make_node()])
    assert BasicLoads.of(SimulatedNode(snapshot, 0), 1, 1) is None
    assert BasicLoads.of(BareNodes(snapshot, np.array([0])), 1, 1) is None
