"""The store of measurements: bounded, and equal to a slow reading, one node at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.usage import store as store_module
from kubestow.usage.measurement import CPU_MILLI_MAX, MEMORY_BYTES_MAX, Amounts, Measurement
from kubestow.usage.store import HISTORY_MAX, KEPT_NS, UsageStore

MIB = 1 << 20
COLUMNS = ("time_ns", "sample_count", "latest", "average", "p95", "peak", "deviation")
amounts = st.builds(
    Amounts, st.integers(0, CPU_MILLI_MAX), st.integers(0, MEMORY_BYTES_MAX)
) | st.builds(Amounts, st.integers(0, 64_000), st.integers(0, 1 << 38))
measurements = st.builds(
    Measurement,
    time_ns=st.integers(0, 300),
    average=amounts,
    node=st.sampled_from(["n1", "n2", "n3"]),
    namespace=st.just(""),
    pod=st.just(""),
    workload=st.just(""),
    window_ns=st.just(0),
    p95=st.none() | amounts,
    peak=st.none() | amounts,
)


def measured(node="n1", time_ns=1, cpu=100, memory=MIB, **more):
    return Measurement(time_ns=time_ns, average=Amounts(cpu, memory), node=node, **more)


def slow_statistics(kept):
    """The statistics of the measurements of one node, with plain numbers."""
    result = []
    for resource in range(2):
        unit = (1, MIB)[resource]
        averages = [each.average[resource] for each in kept]
        mean = sum(averages) // len(kept)
        p95 = sorted((each.p95 or each.average)[resource] for each in kept)
        squares = [min(abs(value - mean) // unit, 1 << 28) ** 2 for value in averages]
        result.append(
            (
                averages[-1],
                mean,
                p95[math.ceil(0.95 * len(kept)) - 1],
                max((each.peak or each.average)[resource] for each in kept),
                math.isqrt(sum(squares) // len(kept)) * unit,
            )
        )
    return result


@given(st.lists(measurements, max_size=30), st.integers(1, 5))
def test_statistics_equal_a_slow_reading(given_measurements, history):
    store = UsageStore(history=history)
    store.add(given_measurements)
    taken = {}
    for measurement in given_measurements:
        kept = taken.setdefault(measurement.node, [])
        if not kept or measurement.time_ns > kept[-1].time_ns:
            kept.append(measurement)
    assert sorted(store.node_names()) == sorted(taken)
    nodes = store.nodes
    for name, kept in taken.items():
        (slot,) = store.slots_of([name])
        found = [
            tuple(
                int(column[resource, slot])
                for column in (
                    nodes.latest,
                    nodes.average,
                    nodes.p95,
                    nodes.peak,
                    nodes.deviation,
                )
            )
            for resource in range(2)
        ]
        assert found == slow_statistics(kept[-history:])
        assert nodes.time_ns[slot] == kept[-1].time_ns
        assert nodes.sample_count[slot] == min(len(kept), history)


@given(st.lists(st.tuples(st.integers(-5, 200_000), st.integers(-5, 1 << 40)), max_size=8))
def test_columns_of_nodes_equal_single_measurements(values):
    names = [f"n{index}" for index in range(len(values))]
    cpu = np.array([value[0] for value in values], np.int64)
    memory = np.array([value[1] for value in values], np.int64)
    by_column, one_by_one = UsageStore(), UsageStore()
    for time_ns in (1, 2, 2, 3):
        by_column.add_nodes(names, time_ns=time_ns, cpu_milli=cpu, memory_bytes=memory)
        for name, (one_cpu, one_memory) in zip(names, values, strict=True):
            one_by_one.add([measured(name, time_ns, one_cpu, one_memory)])
    assert sorted(by_column.node_names()) == sorted(one_by_one.node_names())
    for name in by_column.node_names():
        (slot,), (other,) = by_column.slots_of([name]), one_by_one.slots_of([name])
        for column in COLUMNS:
            first, second = getattr(by_column.nodes, column), getattr(one_by_one.nodes, column)
            assert (first[..., slot] == second[..., other]).all()


@pytest.mark.parametrize(
    ("measurement", "reason"),
    [
        pytest.param(measured(cpu=-1), "negative", id="negative"),
        pytest.param(measured(memory=MEMORY_BYTES_MAX + 1), "too large", id="huge"),
        pytest.param(measured(node=""), "bad name", id="nameless"),
        pytest.param(measured(node="n" * 300), "bad name", id="long-name"),
        pytest.param(measured(pod="a"), "bad name", id="pod-without-namespace"),
        pytest.param(measured(time_ns=-1), "bad time", id="before-1970"),
        pytest.param(measured(peak=Amounts(-1, 0)), "negative", id="negative-peak"),
    ],
)
def test_what_cannot_be_true_is_refused_and_counted(measurement, reason):
    store = UsageStore()
    store.add([measurement])
    assert store.statistics().refused == {reason: 1}
    assert store.statistics().nodes == 0


def test_an_older_measurement_replaces_none():
    store = UsageStore()
    store.add([measured(time_ns=5, cpu=1), measured(time_ns=5, cpu=2), measured(time_ns=4)])
    (slot,) = store.slots_of(["n1"])
    assert store.nodes.latest[0, slot] == 1
    assert store.statistics().refused == {"not newer": 2}


def test_a_limited_number_of_nodes_and_pods_is_kept(monkeypatch):
    monkeypatch.setattr(store_module, "NODES_MAX", 3)
    monkeypatch.setattr(store_module, "PODS_MAX", 2)
    store = UsageStore()
    store.add(measured(f"n{index}") for index in range(5))
    store.add(
        measured("", namespace="web", pod=f"p{index}", workload="web/Job/a") for index in range(5)
    )
    assert store.statistics().nodes == 3
    assert store.statistics().refused == {"too many nodes": 2}
    assert store.statistics().pods == 2
    assert store.pod("web", "p0") is None
    assert store.pod("web", "p4").cpu_milli == 100
    assert store.workload("web/Job/a") == (2, 200, 2 * MIB)


def test_many_nodes_with_all_of_their_history_are_kept_apart():
    store = UsageStore()
    names = [f"n{index}" for index in range(300)]
    for time_ns in range(HISTORY_MAX + 5):
        cpu = np.arange(300) * 10 + time_ns
        store.add_nodes(names, time_ns=time_ns, cpu_milli=cpu, memory_bytes=cpu * MIB)
    slots = store.slots_of([*names, "unknown"])
    assert slots[-1] == -1
    assert len(set(slots.tolist())) == 301
    assert (store.nodes.peak[0, slots[:-1]] == np.arange(300) * 10 + HISTORY_MAX + 4).all()
    assert (store.nodes.sample_count[slots[:-1]] == HISTORY_MAX).all()


def test_what_is_not_measured_any_more_is_forgotten():
    store = UsageStore()
    store.add([measured("old", 1), measured("new", KEPT_NS)])
    store.add(
        measured("", time, namespace="web", pod=name, workload="web/Job/a")
        for name, time in (("old", 1), ("new", KEPT_NS))
    )
    versions, slot_version = (store.version, store.pod_version), store.slot_version
    notified = []
    store.subscribe(lambda: notified.append(store.slot_version))
    store.forget_old(KEPT_NS + 2)
    store.forget_old(KEPT_NS + 2)
    assert notified == [slot_version + 1]
    assert store.node_names() == ["new"]
    assert store.pod("web", "old") is None
    assert store.workload("web/Job/a") == (1, 100, MIB)
    assert (store.version, store.pod_version) == (versions[0] + 1, versions[1] + 1)
    store.add([measured("another", KEPT_NS + 3, cpu=7)])
    (slot,) = store.slots_of(["another"])
    assert store.nodes.peak[0, slot] == 7  # nothing of the node that had the slot before


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(["", "w1", "w2"]), st.integers(0, 9), amounts
        ),
        max_size=20,
    )
)
def test_sums_of_a_workload_are_those_of_its_pods(steps):
    store = UsageStore()
    for name, workload, time_ns, used in steps:
        store.add([Measurement(time_ns, used, namespace="ns", pod=name, workload=workload)])
    for key in ("w1", "w2"):
        pods = [store.pod("ns", name) for name in "abc"]
        siblings = [pod for pod in pods if pod is not None and pod.workload == key]
        expected = (
            len(siblings),
            sum(pod.cpu_milli for pod in siblings),
            sum(pod.memory_bytes for pod in siblings),
        )
        assert store.workload(key) == (expected if siblings else None)
