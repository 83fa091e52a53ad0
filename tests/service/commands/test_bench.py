"""`kubestow bench` prints what it measured, and ends even if a measurement does not."""

import json
import os

import pytest
from typer.testing import CliRunner

from kubestow.errors import KubestowError
from kubestow.service.cli import app
from kubestow.service.commands import bench

SMALL = ["bench", "--workload", "ResourceClaimTemplate", "--nodes", "300", "--pods", "30"]


class _EndsTheProcess:
    """Whoever reads this from a pipe is gone."""

    def __call__(self) -> None:
        raise AssertionError("not read from a pipe")

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (1,)


def test_a_line_of_json_compares_with_upstream() -> None:
    result = CliRunner().invoke(app, [*SMALL, "-o", "json", "--check"])
    assert result.exit_code == 0, result.output
    line = json.loads(result.stdout)
    assert line["workload"] == "SchedulingWithResourceClaimTemplate"
    assert (line["nodes"], line["initPods"], line["measurePods"]) == (300, 2500, 30)
    assert (line["scheduled"], line["checked"], line["differing"]) == (30, 30, 0)
    assert line["ratio"] > 0


def test_a_process_that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_measure", _EndsTheProcess())
    result = CliRunner().invoke(app, SMALL)
    assert isinstance(result.exception, KubestowError)
    assert str(result.exception).startswith(
        "SchedulingWithResourceClaimTemplate: the process ended"
    )
