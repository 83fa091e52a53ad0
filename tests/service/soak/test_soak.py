"""A soak in virtual time: the same parts as in real time, with another clock."""

import asyncio

import pytest

from kubestow import collector
from kubestow.service.soak.soak import (
    GROWTH_MIB_MAX,
    Sample,
    Soak,
    SoakReport,
    growth,
    table_rows,
)
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


@pytest.fixture(autouse=True)
def unchanged_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak sets the collector of its process, which is that of all tests here."""
    monkeypatch.setattr(collector, "settle", lambda: None)


def soaked(seconds: float) -> SoakReport:
    async def main() -> SoakReport:
        clock = VirtualClock(asyncio.get_running_loop())
        return await Soak(clock, nodes=5, pods_per_s=10, over_http=False).run(seconds)

    return run_in_virtual_time(main())


def test_pods_are_bound_while_nodes_and_shapes_change() -> None:
    report = soaked(20)
    assert 190 <= report.created <= 200
    assert report.bound > 0.8 * report.created
    sizes = {one.name: one.size for one in report.containers}
    # The cluster does not grow: 5 nodes with room for 20 pods each.
    assert sizes["cache: nodes"] == 5
    assert sizes["cache: pods"] <= 100
    assert all(one.limit is None or one.size <= one.limit for one in report.containers)
    assert report.lease_lateness.count >= 8
    assert report.lease_lateness.max_ms < 1000
    assert report.latency.count == report.bound
    assert [sample.created for sample in report.samples] == sorted(
        sample.created for sample in report.samples
    )
    assert 20 <= len(report.samples) <= 22


def test_a_short_run_does_not_judge_growth() -> None:
    report = soaked(3)
    assert report.growth_mib_per_1000_pods is None
    assert not report.is_growing
    assert "too short" in dict(table_rows(report))["growth in the second half"]


@pytest.mark.parametrize(
    ("mib_per_pod", "expected"),
    [
        pytest.param(0.0, 0.0, id="flat"),
        pytest.param(0.001, 1.0, id="one-MiB-for-1000"),
        pytest.param(-0.001, -1.0, id="shrinking"),
    ],
)
def test_growth_is_that_of_the_second_half(mib_per_pod: float, expected: float) -> None:
    samples = [
        # The first half grows much: caches fill.
        Sample(
            second=second,
            created=second * 100,
            rss_mib=100 + min(second, 50) * 10 + max(second - 50, 0) * 100 * mib_per_pod,
            queued=0,
        )
        for second in range(100)
    ]
    assert growth(samples, judged_from=5_000) == pytest.approx(expected)
    assert growth(samples, judged_from=5_001) is None


def test_steady_growth_is_a_failure() -> None:
    report = soaked(2)
    fields = {name: getattr(report, name) for name in report.__struct_fields__}
    for found, is_growing in ((GROWTH_MIB_MAX, False), (GROWTH_MIB_MAX + 0.001, True)):
        changed = SoakReport(**{**fields, "growth_mib_per_1000_pods": found})
        assert changed.is_growing is is_growing
