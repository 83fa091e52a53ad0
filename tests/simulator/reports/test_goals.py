"""What reports and comparisons have of goals of rebalancing that a scenario follows."""

from pathlib import Path

import pytest

from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.comparison.measures import measures_of
from kubestow.simulator.reports.charts import drawings_of
from kubestow.simulator.reports.figures import figures_of
from kubestow.simulator.reports.files import report_of, write_report
from kubestow.simulator.reports.series import followed_goals
from kubestow.simulator.reports.tables import tables_of
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario

SCENARIO = """
name: uneven
until: 1h
nodes: [{name: node, count: 2, capacity: {cpu: 4, memory: 8Gi}}]
arrivals:
  - name: web
    at: 10m
    template:
      apiVersion: v1
      kind: Pod
      spec: {containers: [{name: a, image: x, resources: {requests: {cpu: "2"}}}]}
"""
GOALS = "goals: [balance, 2 * empty-nodes + spread]\n"


def run_of(path: Path, text: str) -> RunResult:
    path.write_text(text)
    return run_scenario(read_scenario(path), complete_config(SchedulerConfig()))


@pytest.fixture
def run(tmp_path: Path) -> RunResult:
    return run_of(tmp_path / "scenario.yaml", SCENARIO + GOALS)


def test_charts_and_tables_have_each_goal(run: RunResult, tmp_path: Path) -> None:
    names = ["balance", "2 * empty-nodes + spread"]
    assert followed_goals(run.samples) == names
    titles = [drawing.title for drawing in drawings_of(run, is_interactive=True)]
    assert [title for title in titles if title.startswith("Goal")] == [
        f"Goal: {name}" for name in names
    ]
    samples = next(table for table in tables_of(run, figures_of(run)) if table.name == "samples")
    # One node of two has half of its CPU requested: 25 % of deviation, and nothing of memory.
    assert samples.column("goal.balance").values[::11] == [0.0, 12.5]
    assert samples.column("goal.2 * empty-nodes + spread").values[-1] == 2.0
    write_report(report_of(run), tmp_path / "run.csv")
    assert "goal.balance" in (tmp_path / "run.samples.csv").read_text()


def test_comparisons_have_the_mean(run: RunResult) -> None:
    found = {
        figure.resource: value
        for figure, value in measures_of(figures_of(run)).items()
        if figure.name == "goal"
    }
    assert found == pytest.approx(
        {"balance": 12.5 * 50 / 60, "2 * empty-nodes + spread": 2 * 50 / 60}, rel=1e-5
    )


def test_without_goals_there_is_nothing_of_them(tmp_path: Path) -> None:
    run = run_of(tmp_path / "plain.yaml", SCENARIO)
    assert not any("oal" in drawing.title for drawing in drawings_of(run, is_interactive=True))
    assert not any(figure.name == "goal" for figure in measures_of(figures_of(run)))
