"""Points of throughput, latency and depth."""

from kubestow.web.series import POINTS_MAX, PageSeries


def test_a_second_is_one_point():
    series = PageSeries()
    series.depth(10_000, (2, 0))
    for duration_ms in (1.0, 2.0, 3.0, 4.0):
        series.attempt(10_500, "scheduled", duration_ms)
    series.attempt(10_900, "unschedulable", 100.0)
    series.attempt(10_901, "error", 5.0)
    (point,) = series.points()
    assert (point.time, point.scheduled, point.unschedulable, point.errors) == (10_000, 4, 1, 1)
    assert (point.p50_ms, point.p99_ms) == (3.0, 100.0)
    assert point.places == (2, 0)


def test_what_changed_is_sent_once():
    series = PageSeries()
    series.attempt(1_000, "scheduled", 1.0)
    assert [point.time for point in series.take_new()] == [1_000]
    assert not series.take_new()
    series.attempt(1_200, "scheduled", 1.0)
    series.attempt(5_000, "scheduled", 1.0)
    assert [(point.time, point.scheduled) for point in series.take_new()] == [
        (1_000, 2),
        (5_000, 1),
    ]
    # A second without any change has no point.
    series.depth(7_000, ())
    assert not series.take_new()
    assert [point.time for point in series.points()] == [1_000, 5_000]


def test_points_are_limited():
    series = PageSeries()
    for second in range(2 * POINTS_MAX):
        series.attempt(second * 1000, "scheduled", 1.0)
    assert len(series.points()) == POINTS_MAX + 1
    assert len(series.take_new()) == POINTS_MAX + 1
