"""Sums of use, against a reading of one node and one step at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.simulator.usage.totals import UsageStep, UsageTotals

HOT = 0.8
NODES = 3
AMOUNTS = st.lists(st.integers(0, 1500), min_size=2 * NODES, max_size=2 * NODES)
STEPS = st.lists(
    st.tuples(
        AMOUNTS,
        st.lists(st.booleans(), min_size=NODES, max_size=NODES),
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 900)), max_size=5),
        st.integers(1, 100),
    ),
    min_size=1,
    max_size=5,
)


@given(STEPS)
def test_totals_equal_sums_over_nodes_and_steps(
    steps: list[tuple[list[int], list[bool], list[tuple[int, int]], int]],
) -> None:
    totals = UsageTotals(HOT)
    available = np.full((2, NODES), 1000, np.int64)
    weighted: list[tuple[float, float]] = []
    hot_s = lost_s = held_s = 0.0
    owner_lost_s = [0.0] * 3
    for used, is_there, pods, holds_s in steps:
        owners = np.array([owner for owner, _ in pods], np.int32)
        lost = np.array([milli for _, milli in pods], np.float64)
        step = UsageStep(
            0.0,
            np.array(used, np.int64).reshape(2, NODES),
            available,
            np.array(is_there),
            lost * 2,
            lost,
            owners,
        )
        totals.add(step, np.zeros(len(pods), np.intp), holds_s)
        for node in range(NODES):
            if is_there[node]:
                share = used[node] / 1000
                weighted.append((share, holds_s))
                hot_s += holds_s * (share >= HOT)
                held_s += holds_s
        for owner, milli in pods:
            lost_s += milli * holds_s / 1000
            owner_lost_s[owner] += milli * holds_s / 1000
    result = totals.result(30.0, ["a", "b", "c"], ["x", "y", "z"])
    cpu = result.resources[0]
    assert cpu.hot_node_minutes == pytest.approx(hot_s / 60, abs=1e-3)
    assert result.lost_cpu_s == pytest.approx(lost_s, abs=1e-3)
    assert result.demanded_cpu_s == pytest.approx(2 * lost_s, abs=1e-3)
    found = {row.owner: row.lost_cpu_s for row in result.owners}
    for owner, expected in zip("xyz", owner_lost_s, strict=True):
        assert found.get(owner, 0.0) == pytest.approx(expected, abs=1e-3)
    if not weighted:
        assert cpu.p95_share == cpu.mean_share == 0.0
        return
    mean = math.fsum(share * holds_s for share, holds_s in weighted) / held_s
    assert cpu.mean_share == pytest.approx(mean, abs=1e-5)
    for percent, share in ((50, cpu.p50_share), (95, cpu.p95_share), (99, cpu.p99_share)):
        ordered = sorted(weighted)
        below = np.cumsum([holds_s for _, holds_s in ordered])
        expected = ordered[int((below < held_s * percent / 100 * (1 - 1e-12)).sum())][0]
        assert share == pytest.approx(math.floor(expected * 1000 + 1e-9) / 1000, abs=1e-9)
    assert cpu.max_share == pytest.approx(max(share for share, _ in weighted))
