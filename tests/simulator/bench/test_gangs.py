"""What `kubestow bench gangs` measures is what it says."""

import pytest

from kubestow.simulator.bench.gangs import GangCase, measure_gangs


@pytest.mark.parametrize(
    ("case", "placed"),
    [
        pytest.param(GangCase("fits", 1, 20, "100m"), 20, id="fits"),
        pytest.param(GangCase("waits", 3, 4, "100", 2), 0, id="waits"),
        pytest.param(GangCase("pods", 3, 0, "100", 2), 0, id="pods"),
    ],
)
def test_a_case(case: GangCase, placed: int) -> None:
    times = measure_gangs(case, nodes=10)
    assert times.placed == placed
    assert times.members == case.gangs * max(case.gang_size, 1)
    parts_ms = times.collect_ms + times.decide_ms + times.conclude_ms
    assert 0 < times.decide_ms <= parts_ms <= times.total_ms + 0.3  # Each is rounded.
    assert (times.collect_ms > 0) is (case.gang_size > 0)
