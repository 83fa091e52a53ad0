"""The table of hostile objects shows growth."""

from tools.hostile.objects import NOTHING, Case
from tools.hostile.run import Measured
from tools.hostile.table import page_table


def _measured(name: str, size: int, cpu_ms: float, delay_ms: float) -> Measured:
    return Measured(
        name=name,
        size=size,
        stretch_cpu_ms=cpu_ms,
        stretch_wall_ms=cpu_ms,
        loop_cpu_ms=cpu_ms,
        loop_cpu_share=0.0,
        canary_count=1,
        canary_delay_ms=delay_ms,
        lease_gap_ms=0.0,
        process_cpu_ms=0.0,
        is_settled=True,
        evicted_count=0,
        rss_mib=0.0,
    )


def test_a_row_has_both_sizes_and_the_slowest_pod_of_both() -> None:
    measured = [
        _measured("nothing", 0, 1.2, 7),
        _measured("taints", 5_000, 10.4, 1_030),
        _measured("taints", 10_000, 20.6, 30),
    ]
    assert page_table(measured).splitlines()[2:] == [
        "| nothing | 0 |  | 1 | 7 |",
        "| taints | 10,000 | 10 | 21 | 1,030 |",
    ]


def test_a_case_is_measured_at_half_of_its_size_too() -> None:
    case = Case("any", 100, lambda _: ())
    assert case.sizes(1.0) == (50, 100)
    assert case.sizes(0.25) == (12, 25)
    assert case.sizes(2.0) == (100, 200)


def test_what_cannot_be_halved_is_measured_once() -> None:
    assert Case("any", 100, lambda _: ()).sizes(0.001) == (1,)
    assert NOTHING.sizes(1.0) == (0,)
