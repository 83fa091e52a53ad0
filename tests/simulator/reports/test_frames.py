"""Data frames of runs and decisions."""

import sys
from pathlib import Path

import msgspec
import polars as pl
import pytest
from tests.simulator.reports.report_run import make_run

from kubestow import FrozenDecision, InputError, frames, simulate
from kubestow.simulator.reports.frames import attempts_frame, frames_of, scores_frame

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_frames_have_the_rows_of_the_run() -> None:
    run = make_run()
    found = frames_of(run)
    assert found.pods["name"].to_list() == [pod.name for pod in run.pods]
    assert found.pods["requests.cpu"].sum() == sum(pod.requests["cpu"] for pod in run.pods)
    assert found.samples["running"].to_list() == [sample.running for sample in run.samples]
    assert (found.nodes.height, found.changes.height) == (len(run.nodes), len(run.changes))


def test_a_frame_without_rows_has_its_columns_and_types() -> None:
    run = msgspec.structs.replace(make_run(), pods=[], changes=[])
    found = frames_of(run)
    assert found.pods.schema["created_s"] == pl.Float64
    assert found.changes.schema["kind"] == pl.String
    assert attempts_frame([]).schema["feasible"] == pl.Int64
    assert scores_frame([]).height == 0


def test_scores_add_up_to_the_totals_of_each_attempt() -> None:
    decisions: list[FrozenDecision] = []
    simulate(EXAMPLES / "cluster.yaml", EXAMPLES / "workload.yaml", on_decision=decisions.append)
    attempts, scores = attempts_frame(decisions), scores_frame(decisions)
    assert attempts["pod"].to_list() == [decision.pod.key for decision in decisions]
    for number, decision in enumerate(decisions):
        if decision.total is None:
            continue
        of_attempt = scores.filter(attempt=number)
        sums = of_attempt.group_by("node", maintain_order=True).agg(pl.col("weighted").sum())
        assert sums["node"].to_list() == list(decision.feasible)
        assert sums["weighted"].to_list() == decision.total.tolist()


def test_without_polars_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match=r"data frames: needs Polars.*'kubestow\[reports\]'"):
        frames(make_run())
