"""The benchmark of LoadAware has the plugin take part in each case as its name says."""

import pytest

from kubestow.simulator.bench import load_aware
from kubestow.simulator.bench.load_aware import CASES, measure_load_aware


def test_all_cases_are_measured():
    times = measure_load_aware(20, 100)
    assert [each.case for each in times] == list(CASES)
    assert all(each.without_us > 0 and each.with_us > 0 for each in times)


@pytest.mark.parametrize(("name", "case"), list(CASES.items()))
def test_nodes_are_as_the_case_says(name, case):
    source = load_aware._Source(case, [f"n{number}" for number in range(40)])
    source.fill(10**15)
    nodes = source.usage.nodes
    assert len(source.usage.node_names()) == round(40 * case.measured)
    assert (nodes.average[0] > 4000 * 85 // 100).sum() == round(40 * case.hot)
    # The history is full.
    assert nodes.sample_count.max(initial=0) == (20 if case.measured else 0)
