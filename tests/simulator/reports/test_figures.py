"""Each figure of a report, counted a second time, plainly."""

import statistics

import msgspec
import pytest
from tests.simulator.reports.report_run import GPU, make_run

from kubestow.simulator.reports.figures import figures_of, percentile, resources_of
from kubestow.simulator.results import RunResult

RUN = make_run(pods=200, nodes=6, samples=40)


def test_counts_agree_with_the_rows() -> None:
    figures = figures_of(RUN)
    assert figures.pods == 200
    assert figures.placed == len([pod for pod in RUN.pods if pod.node])
    assert figures.unplaced == len([pod for pod in RUN.pods if not pod.node])
    assert figures.outcomes == {"Ended": 50, "Pending": 20, "Running": 130}
    oldest_s = min(pod.created_s for pod in RUN.pods if pod.outcome == "Pending")
    assert figures.longest_unplaced_s == pytest.approx(86400.0 - oldest_s)
    assert figures.attempts == 180 + 3 * 20
    # One of the six left.
    assert figures.nodes == 5
    assert figures.node_seconds == pytest.approx(6 * 86400.0)
    assert figures.waiting_peak == max(
        sample.active + sample.backoff + sample.unschedulable for sample in RUN.samples
    )


def test_waiting_times_agree_with_a_plain_count() -> None:
    waits = sorted(
        round(pod.scheduled_s - pod.created_s, 3) for pod in RUN.pods if pod.scheduled_s is not None
    )
    waiting = figures_of(RUN).waiting
    assert waiting is not None
    assert (waiting.count, waiting.max_s) == (len(waits), max(waits))
    assert waiting.mean_s == pytest.approx(statistics.fmean(waits), abs=0.001)
    for percent, found in ((50, waiting.p50_s), (90, waiting.p90_s), (99, waiting.p99_s)):
        enough = [
            value
            for value in waits
            if sum(other <= value for other in waits) * 100 >= percent * len(waits)
        ]
        assert found == min(enough)


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        pytest.param(1, 50, 1, id="one-value-is-every-percentile"),
        pytest.param(10, 90, 9, id="exactly-at-a-value"),
        pytest.param(10, 91, 10, id="just-above"),
        pytest.param(100, 99, 99, id="the-largest-is-above"),
        pytest.param(2, 50, 1, id="half"),
    ],
)
def test_percentile_is_the_smallest_that_reaches_it(
    count: int, percent: int, expected: int
) -> None:
    assert percentile(list(range(1, count + 1)), percent) == expected


@pytest.mark.parametrize("resource", ["cpu", "memory", GPU])
def test_shares_agree_with_a_count_second_by_second(resource: str) -> None:
    found = next(one for one in figures_of(RUN).resources if one.resource == resource)
    present = [node for node in RUN.nodes if node.left_s is None]
    assert found.allocatable == sum(node.allocatable.get(resource, 0) for node in present)
    assert found.requested == sum(node.requested.get(resource, 0) for node in present)
    assert found.used_share == pytest.approx(found.requested / found.allocatable, abs=1e-6)
    shares = [
        node.requested[resource] / node.allocatable[resource]
        for node in present
        if resource in node.allocatable
    ]
    assert found.imbalance == pytest.approx(statistics.pstdev(shares), abs=1e-6)

    # Samples are 2,160 s apart; each second belongs to the last sample before it.
    requested = allocatable = stranded = 0
    imbalances: list[float] = []
    for second in range(0, 86400, 60):
        sample = [each for each in RUN.samples if each.time_s <= second][-1]
        requested += sample.requested[resource]
        allocatable += sample.allocatable[resource]
        stranded += sample.stranded[resource]
        imbalances.append(sample.imbalance[resource])
    assert found.mean_used_share == pytest.approx(requested / allocatable, abs=1e-6)
    assert found.mean_stranded_share == pytest.approx(stranded / allocatable, abs=1e-6)
    assert found.mean_imbalance == pytest.approx(statistics.fmean(imbalances), abs=1e-6)
    assert found.peak_used_share == pytest.approx(
        max(each.requested[resource] / each.allocatable[resource] for each in RUN.samples), abs=1e-6
    )


def test_a_run_without_rows_has_figures() -> None:
    empty = RunResult(
        name="empty", pods=[], nodes=[], samples=[], changes=[], virtual_duration_s=0.0
    )
    figures = figures_of(empty)
    assert (figures.pods, figures.nodes, figures.resources) == (0, 0, [])
    assert figures.waiting is figures.node_seconds is figures.waiting_peak is None


def test_a_resource_that_no_node_has_is_named_without_shares() -> None:
    pod = msgspec.structs.replace(RUN.pods[0], requests={"example.com/none": 1})
    run = msgspec.structs.replace(RUN, pods=[pod])
    assert resources_of(run) == ["cpu", "memory", "example.com/none", GPU]
    found = next(one for one in figures_of(run).resources if one.resource == "example.com/none")
    assert found.used_share is found.mean_used_share is found.mean_imbalance is None
    assert found.imbalance is found.peak_used_share is None
