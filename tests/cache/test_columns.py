"""Numbers of nodes as arrays: resources get columns at first use."""

import numpy as np
import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.cache import resource_columns
from kubestow.cache.columns import CPU, Columns
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.numbering import numbered_max
from kubestow.cache.resource_columns import BASIC_RESOURCES
from kubestow.testing import make_node, make_pod, make_taint

GPU, FPGA = "example.com/gpu", "example.com/fpga"


def columns_of(*infos: NodeInfo) -> Columns:
    columns = Columns()
    columns.reorder(np.full(len(infos), -1, np.intp))
    for row, info in enumerate(infos):
        assert info.node is not None
        columns.write_node(row, info, info.node)
        columns.write_pods(row, info)
    return columns


def info_of(name: str, **allocatable: int) -> NodeInfo:
    info = NodeInfo(name)
    info.set_node(
        make_node(name, allocatable={f"example.com/{k}": v for k, v in allocatable.items()})
    )
    return info


def test_the_basic_resources_have_fixed_columns() -> None:
    assert [Columns().resources.column(name) for name in BASIC_RESOURCES] == [0, 1, 2]


def test_a_resource_seen_late_gets_a_column_in_both_arrays() -> None:
    plain, gpus = info_of("plain"), info_of("gpus", gpu=4)
    columns = columns_of(plain, gpus)
    gpu = columns.resources.column(GPU)
    assert gpu == 3
    assert columns.allocatable[gpu].tolist() == [0, 4]
    gpus.add_pod(PodInfo(make_pod(cpu="1", requests={GPU: 3, FPGA: 1})))
    columns.write_pods(1, gpus)
    fpga = columns.resources.column(FPGA)
    assert fpga == 4
    assert [columns.requested[column][1] for column in range(5)] == [1000, 0, 0, 3, 1]
    assert [columns.allocatable[column][1] for column in range(5)] == [8000, 32 * 2**30, 0, 4, 0]


def test_a_resource_a_node_no_longer_offers_is_zero() -> None:
    info = info_of("n", gpu=4)
    columns = columns_of(info)
    node = make_node("n")
    info.set_node(node)
    columns.write_node(0, info, node)
    assert columns.allocatable[3].tolist() == [0]


def test_rows_move_whole() -> None:
    first, second = info_of("first", gpu=1), info_of("second", gpu=2)
    second.set_node(
        make_node("second", cpu="2", pods=7, unschedulable=True, taints=["k:NoExecute"])
    )
    second.add_pod(PodInfo(make_pod(cpu="1")))
    columns = columns_of(first, second)
    columns.reorder(np.array([1, -1, 0], np.intp))
    assert len(columns) == 3
    assert columns.allocatable[CPU].tolist()[::2] == [2000, 8000]
    assert columns.requested[CPU].tolist()[::2] == [1000, 0]
    assert columns.non_zero[0].tolist()[::2] == [1000, 0]
    assert columns.allowed_pods.tolist()[::2] == [7, 110]
    assert columns.pod_count.tolist()[::2] == [1, 0]
    assert columns.unschedulable.tolist()[::2] == [True, False]
    assert [columns.taint_sets.lists[i] for i in columns.taint_set[::2]] == [
        (make_taint("k:NoExecute"),),
        (),
    ]


def test_a_new_row_takes_nothing_from_the_row_it_was_made_of() -> None:
    full, empty = info_of("full", gpu=9), info_of("empty")
    full.add_pod(PodInfo(make_pod(cpu="1", requests={GPU: 5})))
    columns = columns_of(full)
    columns.reorder(np.array([0, -1], np.intp))
    assert empty.node is not None
    columns.write_node(1, empty, empty.node)
    columns.write_pods(1, empty)
    assert [columns.requested[column][1] for column in range(4)] == [0, 0, 0, 0]
    assert columns.allocatable[3].tolist() == [9, 0]


def test_equal_taint_lists_share_a_number() -> None:
    columns = Columns()
    taints = (make_taint("a=b:NoSchedule"), make_taint("c:NoExecute"))
    number = columns.taint_sets.id_of(taints)
    assert columns.taint_sets.id_of(tuple(taints)) == number
    assert columns.taint_sets.id_of(taints[::-1]) != number  # the order decides which is first
    assert columns.taint_sets.id_of(()) == 0
    assert columns.taint_sets.lists[number] == taints


def test_taint_lists_that_no_node_has_lose_their_number() -> None:
    """Autoscalers write the time into a taint: each node brings lists of its own."""
    changing, tainted, plain = info_of("changing"), info_of("tainted"), info_of("plain")
    columns = columns_of(changing, tainted, plain)
    # Its number is not the first, so it gets another one.
    kept = make_node("tainted", taints=["k=v:NoExecute"])
    columns.taint_sets.id_of((make_taint("gone:NoSchedule"),))
    tainted.set_node(kept)
    columns.write_node(1, tainted, kept)
    for second in range(numbered_max(3) + 10):
        node = make_node("changing", taints=[f"to-be-deleted={second}:NoSchedule"])
        changing.set_node(node)
        columns.write_node(0, changing, node)
        assert len(columns.taint_sets.lists) <= numbered_max(3) + 1
        assert [columns.taint_sets.lists[number] for number in columns.taint_set] == [
            node.spec.taints,
            (make_taint("k=v:NoExecute"),),
            (),
        ]


def test_resources_that_neither_node_nor_pod_has_lose_their_column() -> None:
    first, second = info_of("first", gpu=4), info_of("second")
    second.add_pod(PodInfo(make_pod("keeps", requests={FPGA: 1})))
    columns = columns_of(first, second)
    names_max = numbered_max(len(BASIC_RESOURCES) + 3)
    for number in range(names_max + 10):
        pod = PodInfo(make_pod(f"p{number}", requests={f"example.com/{number}": 2, GPU: 1}))
        first.add_pod(pod)
        columns.write_pods(0, first)
        assert first.node is not None
        columns.write_node(0, first, first.node)
        assert len(columns.resources) <= names_max + 1
        new, gpu, fpga = (
            columns.resources.ensure(name) for name in (f"example.com/{number}", GPU, FPGA)
        )
        assert columns.resources.names[gpu] == GPU
        assert columns.requested[new].tolist() == [2, 0]
        assert columns.requested[gpu].tolist() == [1, 0]
        assert columns.allocatable[gpu].tolist() == [4, 0]
        assert columns.requested[fpga].tolist() == [0, 1]
        first.remove_pod(pod.pod)
        columns.write_pods(0, first)
        assert columns.requested[new].tolist() == [0, 0]


def test_the_arrays_asked_for_last_stay_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_columns, "LAID_OUT_MAX", 2)
    columns = columns_of(info_of("n", a=1, b=2, c=3))
    first = columns.allocatable[3]
    columns.allocatable[4]
    assert columns.allocatable[3] is first
    columns.allocatable[5]
    assert columns.allocatable[3] is first
    columns.allocatable[4]
    columns.allocatable[5]
    assert columns.allocatable[3] is not first
    assert columns.allocatable[3].tolist() == [1]
