"""Spec 05 §5.3: a host port can be had once per node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    UNSCHEDULABLE_POD_DELETE,
    Hint,
)
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.node_ports import NodePorts
from kubestow.testing import (
    make_container,
    make_handle,
    make_node,
    make_pod,
    make_port,
    make_snapshot,
    run_filter,
    run_hint,
    run_pre_filter,
)

TAKEN = Status.unschedulable("node(s) didn't have free ports for the requested pod ports")


@pytest.fixture
def plugin() -> NodePorts:
    return NodePorts(None, make_handle())


@pytest.mark.parametrize(
    ("used", "wanted", "passes"),
    [
        pytest.param(["0.0.0.0:80/TCP"], [":80/TCP"], False, id="2-empty-ip-is-any"),
        pytest.param(["127.0.0.1:80"], ["10.0.0.1:80"], True, id="3-other-address"),
        pytest.param(["127.0.0.1:80"], ["0.0.0.0:80"], False, id="4-any-and-all"),
        pytest.param(["0.0.0.0:80/UDP"], ["0.0.0.0:80/TCP"], True, id="5-other-protocol"),
        pytest.param(["0.0.0.0:80"], ["10.0.0.1:80", "10.0.0.1:81"], False, id="6-one-of-two"),
        pytest.param([":::80"], ["10.0.0.1:80"], True, id="v6-any-is-no-wildcard"),
    ],
)
def test_ports_conflict(
    plugin: NodePorts, used: list[str], wanted: list[str], passes: bool
) -> None:
    snapshot = make_snapshot(
        [make_node("n1"), make_node("n2")], [make_pod(node="n1", host_ports=used)]
    )
    rejected = run_filter(plugin, make_pod(host_ports=wanted), snapshot)
    assert rejected == ({} if passes else {"n1": TAKEN})


def test_1_a_pod_without_host_ports_skips(plugin: NodePorts) -> None:
    assert run_pre_filter(plugin, make_pod(host_ports=[0]), make_snapshot()) == Status.skip()


def test_7_ports_of_ordinary_init_containers_are_not_held(plugin: NodePorts) -> None:
    init = make_container("i", host_ports=[90])
    sidecar = make_container("s", host_ports=[91], restart_policy="Always")
    running = make_pod(node="n1", init_containers=[init, sidecar])
    snapshot = make_snapshot([make_node("n1")], [running])
    assert run_filter(plugin, make_pod(host_ports=[90]), snapshot) == {}
    assert run_filter(plugin, make_pod(host_ports=[91]), snapshot) == {"n1": TAKEN}


def test_a_simulated_node_has_the_simulated_pods(plugin: NodePorts) -> None:
    running = make_pod(node="n1", host_ports=[80])
    snapshot = make_snapshot([make_node("n1")], [running])
    node = SimulatedNode(snapshot, 0)
    assert run_filter(plugin, make_pod(host_ports=[80]), node) == {"n1": TAKEN}
    node.remove_pod(PodInfo(running))
    assert run_filter(plugin, make_pod(host_ports=[80]), node) == {}
    assert run_filter(plugin, make_pod(host_ports=[80]), snapshot) == {"n1": TAKEN}


def test_filter_needs_pre_filter(plugin: NodePorts) -> None:
    text = 'reading "PreFilterNodePorts" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        plugin.filter(CycleState(), PodInfo(make_pod()), nodes_of(make_snapshot()))


@pytest.mark.parametrize(
    ("freed", "placed", "hint"),
    [
        pytest.param("127.0.0.1:80/TCP", {"node": "n1"}, Hint.QUEUE, id="H5-conflict-is-gone"),
        pytest.param("80/UDP", {"node": "n1"}, Hint.SKIP, id="H5-other-protocol"),
        pytest.param("80", {"nominated_node": "n1"}, Hint.QUEUE, id="nominated-counts"),
        pytest.param("80", {}, Hint.SKIP, id="unplaced"),
        pytest.param(None, {"node": "n1"}, Hint.SKIP, id="without-ports"),
    ],
)
def test_a_deleted_pod_wakes_those_who_want_its_ports(
    plugin: NodePorts, freed: str | None, placed: dict[str, str], hint: Hint
) -> None:
    pod = make_pod(host_ports=["0.0.0.0:80/TCP"])
    deleted = make_pod(host_ports=[freed] if freed else [], **placed)
    event = ASSIGNED_POD_DELETE if "node" in placed else UNSCHEDULABLE_POD_DELETE
    assert run_hint(plugin, event, pod, deleted, None) is hint


def test_a_new_node_wakes_the_pod(plugin: NodePorts) -> None:
    assert run_hint(plugin, NODE_ADD, make_pod(host_ports=[80]), None, make_node()) is Hint.QUEUE


ports = st.builds(
    lambda ip, port, protocol: f"{ip}:{port}/{protocol}",
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([80, 81]),
    st.sampled_from(["", "TCP", "UDP"]),
)


@given(
    placements=st.lists(st.tuples(st.integers(0, 3), st.lists(ports, max_size=2)), max_size=8),
    removed=st.sets(st.integers(0, 7)),
    wanted=st.lists(ports, min_size=1, max_size=3),
)
def test_arrays_equal_the_scalar_reading(
    placements: list[tuple[int, list[str]]], removed: set[int], wanted: list[str]
) -> None:
    plugin = NodePorts(None, make_handle())
    pod = make_pod(host_ports=wanted)
    cache, snapshot = Cache(), Snapshot()
    for number in range(4):
        cache.add_node(make_node(f"n{number}"))
    running = [make_pod(node=f"n{number}", host_ports=used) for number, used in placements]
    for each in running:
        cache.add_pod(PodInfo(each))
    snapshot.refresh(cache)
    run_filter(plugin, pod, snapshot)  # Columns are kept from here on and have to follow.
    for number in removed & set(range(len(running))):
        cache.remove_pod(running[number])
    snapshot.refresh(cache)
    # A set, not a count: removing one of two pods with the same port frees it.
    held = {f"n{number}": set[tuple[str, str, int]]() for number in range(4)}
    for number, used in placements:
        held[f"n{number}"] |= {_triple(text) for text in used}
    for number in sorted(removed & set(range(len(running)))):
        held[f"n{placements[number][0]}"] -= {_triple(text) for text in placements[number][1]}
    assert set(run_filter(plugin, pod, snapshot)) == {
        name
        for name, triples in held.items()
        if any(_conflicts(_triple(text), triples) for text in wanted)
    }


def _triple(text: str) -> tuple[str, str, int]:
    port = make_port(text)
    return port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port


def _conflicts(wanted: tuple[str, str, int], held: set[tuple[str, str, int]]) -> bool:
    return any(
        wanted[1:] == other[1:] and (wanted[0] == other[0] or "0.0.0.0" in (wanted[0], other[0]))
        for other in held
    )
