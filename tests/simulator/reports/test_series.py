"""The points of charts: few, and none of what matters is lost."""

import msgspec
import pytest
from tests.simulator.reports.report_run import GPU, make_run

from kubestow.simulator.reports.series import (
    LINES_MAX,
    OTHER,
    POINTS_MAX,
    TimeUnit,
    change_points,
    line_points,
    node_points,
    time_unit,
    used_line,
    waiting_points,
)
from kubestow.simulator.results import Change

SECONDS = TimeUnit("seconds", 1.0)


@pytest.mark.parametrize("samples", [1, POINTS_MAX, POINTS_MAX + 1, 5 * POINTS_MAX + 7])
def test_lines_have_few_points_and_keep_their_peaks(samples: int) -> None:
    run = make_run(pods=1, samples=samples)
    points = line_points(run.samples, [("running", lambda one: one.running)], SECONDS)
    assert len(points) <= POINTS_MAX
    assert max(point["value"] for point in points) == max(one.running for one in run.samples)
    times = [point["time"] for point in points]
    assert times[0] == run.samples[0].time_s
    assert times == sorted(times)


def test_a_line_without_a_value_has_a_gap() -> None:
    run = make_run(samples=3)
    empty = msgspec.structs.replace(run.samples[1], allocatable={})
    points = line_points([run.samples[0], empty, run.samples[2]], [used_line("cpu")], SECONDS)
    assert [point["time"] for point in points] == [0.0, 57600.0]


@pytest.mark.parametrize("pods", [10, 3000])
def test_waiting_times_end_with_the_share_of_placed_pods(pods: int) -> None:
    run = make_run(pods=pods)
    points = waiting_points(run.pods)
    waits = sorted(
        round(pod.scheduled_s - pod.created_s, 3) for pod in run.pods if pod.scheduled_s is not None
    )
    assert len(points) <= POINTS_MAX + 2
    assert points[-1] == {"waited": waits[-1], "share": pytest.approx(len(waits) / pods)}
    for point in points:
        within = sum(wait <= point["waited"] for wait in waits)
        assert point["share"] == pytest.approx(within / pods, abs=1e-5)


def test_every_node_that_is_there_is_in_one_bucket_of_each_of_its_resources() -> None:
    run = make_run(nodes=9)
    points = node_points(run.nodes, ["cpu", GPU])
    present = [node for node in run.nodes if node.left_s is None]
    for resource in ("cpu", GPU):
        counted = sum(point["nodes"] for point in points if point["line"] == resource)
        assert counted == sum(resource in node.allocatable for node in present)


def test_changes_of_many_kinds_are_counted_as_others() -> None:
    changes = [
        Change(time_s=float(index), kind=f"kind-{index % 12}", subject="x") for index in range(120)
    ]
    run = msgspec.structs.replace(make_run(), changes=changes, virtual_duration_s=120.0)
    points = change_points(run, SECONDS)
    assert sum(point["changes"] for point in points) == 120
    assert len({point["line"] for point in points}) == LINES_MAX + 1
    assert sum(point["changes"] for point in points if point["line"] == OTHER) == 40


@pytest.mark.parametrize(
    ("duration_s", "name"),
    [(1.0, "seconds"), (120.0, "minutes"), (86400.0, "hours"), (200000.0, "days")],
)
def test_the_unit_of_time_suits_the_length_of_the_run(duration_s: float, name: str) -> None:
    assert time_unit(duration_s).name == name
