"""`kubestow bench` prints what it measured, and ends even if a measurement does not."""

import json
import os
from typing import Any

import pytest
from typer.testing import CliRunner

from kubestow.errors import KubestowError
from kubestow.service.cli import app
from kubestow.service.commands import bench

SMALL = ["bench", "--workload", "ResourceClaimTemplate", "--nodes", "300", "--pods", "30"]


class _EndsTheProcess:
    """Ends the process that unpickles it."""

    def __call__(self) -> None:
        raise AssertionError("not read from a pipe")

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (1,)


def json_line(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "-o", "json"])
    assert result.exit_code == 0, result.output
    line: dict[str, Any] = json.loads(result.stdout)
    return line


def test_a_line_of_json_says_what_was_measured() -> None:
    line = json_line(*SMALL, "--check")
    assert line["workload"] == "SchedulingWithResourceClaimTemplate"
    assert (line["nodes"], line["initPods"], line["measurePods"]) == (300, 2500, 30)
    assert (line["scheduled"], line["checked"], line["differing"]) == (30, 30, 0)
    # Upstream's figure is for the workload's own size.
    assert line["ratio"] is None


@pytest.mark.parametrize("percent", ["0", "100"])
def test_a_workload_of_its_own_size_is_compared_with_upstream(percent: str) -> None:
    line = json_line(
        "bench", "--workload", "SchedulingBasic/1000", "--pods", "5", "--percent", percent
    )
    assert line["ratio"] > 0


def test_what_upstream_was_not_measured_with_is_not_compared() -> None:
    line = json_line("bench", "--workload", "SchedulingBasic/1000", "--pods", "5", "--percent", "7")
    assert line["upstream_pods_per_s"] is None


def test_the_table_has_a_row_for_each() -> None:
    basic = ["bench", "--workload", "SchedulingBasic/1000", "--pods", "5", "--check"]
    result = CliRunner().invoke(app, basic)
    assert result.exit_code == 0
    assert "SchedulingBasic/1000Nodes" in result.stdout
    assert "scaled to this machine" in result.stdout
    assert "0 of 5 decisions differ" in result.stderr


def test_a_process_that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_measure", _EndsTheProcess())
    result = CliRunner().invoke(app, SMALL)
    assert isinstance(result.exception, KubestowError)
    assert str(result.exception).startswith(
        "SchedulingWithResourceClaimTemplate: the process ended"
    )
