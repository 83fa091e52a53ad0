"""What reports and comparisons have of use, and that they have nothing of it without usage."""

from pathlib import Path

import pytest

from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.comparison.measures import measures_of
from kubestow.simulator.reports.charts import drawings_of
from kubestow.simulator.reports.figures import figures_of
from kubestow.simulator.reports.files import report_of, write_report
from kubestow.simulator.reports.run_page import page_of
from kubestow.simulator.reports.tables import TABLE_NAMES, USAGE_TABLE_NAMES, tables_of
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario

SCENARIO = """
name: busy
until: 1h
nodes: [{name: node, count: 2, capacity: {cpu: 4, memory: 8Gi}}]
arrivals:
  - name: web
    at: 0
    replicas: 4
    template:
      apiVersion: v1
      kind: Pod
      spec: {containers: [{name: a, image: x, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
"""
USAGE = 'usage: {curves: [{cpu: "250%", memory: "50%"}]}\n'


@pytest.fixture(params=[USAGE, ""], ids=["usage", "plain"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[RunResult, bool]:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO + request.param)
    config = complete_config(SchedulerConfig())
    return run_scenario(read_scenario(path), config), bool(request.param)


def test_reports_have_use_if_the_run_has_it(run: tuple[RunResult, bool], tmp_path: Path) -> None:
    result, has_use = run
    figures = figures_of(result)
    tables = {table.name: table for table in tables_of(result, figures)}
    assert list(tables) == [*TABLE_NAMES, *(USAGE_TABLE_NAMES if has_use else ())]
    drawings = [drawing.name for drawing in drawings_of(result, is_interactive=True)]
    assert ({"in_use", "hot", "lost"} <= set(drawings)) is has_use
    columns = [column.name for column in tables["samples"].columns]
    assert ("hot_nodes.cpu" in columns) is has_use
    cards = [card.label for card in page_of(result, figures).cards]
    assert ("core seconds lost" in cards) is has_use
    files = write_report(report_of(result), tmp_path / "run.csv")
    assert (tmp_path / "run.node_usage.csv" in files) is has_use


def test_comparisons_have_use_if_the_run_has_it(run: tuple[RunResult, bool]) -> None:
    result, has_use = run
    found = {
        (figure.name, figure.resource): value
        for figure, value in measures_of(figures_of(result)).items()
    }
    names = {name for name, _ in found}
    use = {"lostCpu", "memoryEvictions", "hotNodeMinutes", "inUseP50", "inUseP95", "inUseP99"}
    assert use & names == (use if has_use else set())
    if has_use:
        # Two pods of 2.5 cores on each node with 4, from the first step that they run in.
        assert found["lostCpu", ""] == pytest.approx(2 * 3570)
        assert found["hotNodeMinutes", "cpu"] == pytest.approx(2 * 59.5)
        assert found["hotNodeMinutes", "memory"] == 0.0
        assert found["inUseP95", "memory"] == 0.125
