"""Whether every node has enough, compared with a look at each of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index import least_free
from kubestow.index.least_free import LeastFree
from kubestow.testing import make_node, make_pod

REQUESTS = [None, 1, 500, 999, 1000, 1001, 2000, 4000]


def _covers(snapshot: Snapshot, cpu: int | None, memory: int | None) -> bool:
    """The slow reading: node by node."""
    for info in snapshot.node_infos:
        if len(info.pods) >= info.allocatable.allowed_pods:
            return False
        if cpu is not None and cpu > info.allocatable.milli_cpu - info.requested.milli_cpu:
            return False
        if memory is not None and memory > info.allocatable.memory - info.requested.memory:
            return False
    return True


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["place", "place", "place", "leave", "node", "gone"]),
        st.integers(0, 5),
        st.sampled_from([1, 500, 1000, 3000]),
    ),
    max_size=30,
)


@given(steps=STEPS)
def test_a_request_is_covered_only_where_every_node_has_enough(
    steps: list[tuple[str, int, int]],
) -> None:
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n0", cpu="4", memory=4000, pods=3))
    snapshot.refresh(cache)
    free = snapshot.derived(LeastFree)
    placed = []
    for number, (step, node, amount) in enumerate(steps):
        name = f"n{node}"
        match step:
            case "place":
                pod = PodInfo(make_pod(f"p{number}", cpu=f"{amount}m", memory=amount, node=name))
                cache.add_pod(pod)
                placed.append(pod)
            case "leave" if placed:
                cache.remove_pod(placed.pop(node % len(placed)).pod)
            case "node" if name not in cache.nodes or cache.nodes[name].node is None:
                cache.add_node(make_node(name, cpu="4", memory=4000, pods=3))
            case "gone" if node and name in snapshot.names:
                cache.remove_node(cache.nodes[name].node)
            case _:
                pass
        snapshot.refresh(cache)
        for cpu in REQUESTS:
            for memory in (None, 1000):
                if free.covers((cpu, memory, None)):
                    assert _covers(snapshot, cpu, memory)


def test_what_pods_that_left_had_taken_is_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_free, "_RECOUNT_MIN", 2)
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n", cpu="4"))
    snapshot.refresh(cache)
    free = snapshot.derived(LeastFree)
    pod = PodInfo(make_pod("p", cpu=3, node="n"))
    cache.add_pod(pod)
    snapshot.refresh(cache)
    assert not free.covers((2000, None, None))
    cache.remove_pod(pod.pod)
    snapshot.refresh(cache)
    assert free.covers((4000, None, None))
    assert not free.covers((4001, None, None))
