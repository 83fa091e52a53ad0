"""Times of explanations are measured in a small cluster as in a large one."""

from kubestow.simulator.bench.explanations import WAITING, measure_explanations


def test_a_pod_that_fits_and_one_that_does_not() -> None:
    fits, waits, many = measure_explanations(6, lambda explanation: len(explanation.nodes))
    assert (fits.case, fits.nodes, fits.pods, fits.suggestions) == ("fits", 6, 60, 0)
    assert waits.suggestions > 0
    assert waits.total_s > 0
    assert waits.peak_memory_mib > 0
    # The two above wait, too.
    assert many.case == f"{WAITING + 2} wait"
    assert many.suggestions > 0
    assert many.explain_s > 0
