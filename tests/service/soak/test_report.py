"""What the samples of a soak say about memory."""

import msgspec
import pytest

from kubestow.service.soak.gauges import KeptSize
from kubestow.service.soak.report import (
    FILLING_PODS,
    GROWTH_MIB_MAX,
    KeptSample,
    Sample,
    SoakReport,
    curves,
    grown,
    growth,
    sparkline,
    table_rows,
    without_constants,
)
from kubestow.service.soak.spread import Percentiles

NOTHING = Percentiles(count=0, p50_ms=0.0, p99_ms=0.0, max_ms=0.0)


def sample(second: float, created: int = 0, rss_mib: float = 100.0, queued: int = 0) -> Sample:
    return Sample(
        second=second,
        created=created,
        bound=created,
        rss_mib=rss_mib,
        queued=queued,
        parked=0,
        latency=NOTHING,
        stalls=NOTHING,
        control_stalls=NOTHING,
        lease_lateness=NOTHING,
    )


def kept(sizes: dict[str, list[int]], limits: dict[str, int] | None = None) -> list[KeptSample]:
    """Samples of these containers, one after the other."""
    count = len(next(iter(sizes.values())))
    return [
        KeptSample(
            second=number,
            containers={
                name: KeptSize(entries[number], (limits or {}).get(name))
                for name, entries in sizes.items()
            },
        )
        for number in range(count)
    ]


def report(samples: list[Sample], growing: list[str] | None = None) -> SoakReport:
    return SoakReport(
        seconds=60.0,
        over_http=False,
        nodes=3,
        pods_per_s=10.0,
        created=samples[-1].created,
        bound=samples[-1].bound,
        evicted=1,
        growth_mib_per_1000_pods=growth(samples),
        filling=[],
        growing=growing or [],
        latency=NOTHING,
        stalls=NOTHING,
        control_stalls=NOTHING,
        lease_lateness=NOTHING,
        queue_depth_max=2,
        samples=samples,
        kept=[],
    )


@pytest.mark.parametrize(
    ("mib_per_pod", "expected"),
    [
        pytest.param(0.0, 0.0, id="flat"),
        pytest.param(0.001, 1.0, id="one-MiB-for-1000"),
        pytest.param(-0.001, -1.0, id="shrinking"),
    ],
)
def test_growth_is_that_of_the_second_half(mib_per_pod: float, expected: float) -> None:
    # The first half grows much: caches fill.
    samples = [
        sample(
            second,
            second * 100,
            100 + min(second, 50) * 10 + max(second - 50, 0) * 100 * mib_per_pod,
        )
        for second in range(100)
    ]
    assert growth(samples) == pytest.approx(expected)


def test_without_new_pods_nothing_grows() -> None:
    assert growth([sample(0, 5), sample(1, 5, rss_mib=200)]) == 0
    assert growth([sample(0)]) == 0


@pytest.mark.parametrize(
    ("pods", "mib", "growing", "expected"),
    [
        pytest.param(FILLING_PODS, GROWTH_MIB_MAX, [], False, id="as-much-as-allowed"),
        pytest.param(FILLING_PODS, GROWTH_MIB_MAX + 0.01, [], True, id="memory"),
        pytest.param(FILLING_PODS, 0, ["a"], True, id="a-container-without-limit"),
        pytest.param(FILLING_PODS - 1, 9, ["a"], False, id="too-short"),
    ],
)
def test_growth_after_caches_are_full_is_a_failure(
    pods: int, mib: float, growing: list[str], expected: bool
) -> None:
    samples = [sample(0), sample(1, pods), sample(2, pods + 1000, 100 + mib)]
    found = report(samples, growing)
    assert found.is_growing is expected
    text = dict(table_rows(found))["growth in the second half"]
    assert ("too short" in text) is (pods < FILLING_PODS)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([*range(0, 1600, 100)], True, id="grows"),
        pytest.param([1000] * 16, False, id="stays"),
        pytest.param([*range(0, 800, 100), *[800] * 8], False, id="grew-in-the-first-half"),
        pytest.param([*range(16)], False, id="by-a-few-entries"),
        pytest.param([0] * 8 + [900, 900, 100, 100, 900, 900, 1000, 1000], False, id="sawtooth"),
        pytest.param([0, 900], False, id="too-few-samples"),
    ],
)
def test_a_container_grows_if_it_does_so_all_the_time(sizes: list[int], expected: bool) -> None:
    assert [name for name, _ in grown(kept({"a": sizes}))] == ["a"] * expected


def test_only_what_changes_or_has_a_limit_is_kept() -> None:
    samples = kept({"constant": [3, 3], "limited": [0, 0], "changing": [1, 2]}, {"limited": 9})
    assert [list(one.containers) for one in without_constants(samples)] == [
        ["limited", "changing"]
    ] * 2


def test_curves_show_each_measurement() -> None:
    found = report([sample(0), sample(1, rss_mib=200, queued=7)])
    lines = {name: (line, values) for name, line, values in curves(found)}
    assert lines["memory MiB"] == ("▁█", "100.0 to 200.0")
    assert lines["queue depth"] == ("▁█", "0.0 to 7.0")
    assert lines["lease late ms"] == ("▁▁", "0.0 to 0.0")


def test_a_line_shows_the_peaks_of_a_long_run() -> None:
    values = [0.0] * 400
    values[205] = 70.0
    line = sparkline(values)
    assert len(line) == 40
    assert [place for place, bar in enumerate(line) if bar == "█"] == [20]


def test_a_report_can_be_written_and_read() -> None:
    found = report([sample(0), sample(1, 10)])
    assert msgspec.json.decode(msgspec.json.encode(found), type=SoakReport) == found
