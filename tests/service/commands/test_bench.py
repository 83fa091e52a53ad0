"""`kubestow bench` prints what it measured, and ends even if a measurement does not."""

import json
import os
import re
import signal
from typing import Any

import pytest
from typer.testing import CliRunner

from kubestow.errors import InputError, KubestowError
from kubestow.service.cli import app
from kubestow.service.commands.bench import measure as bench_measure
from kubestow.service.commands.bench.command import SUBCOMMANDS
from kubestow.service.commands.bench.earlier import with_subcommand
from kubestow.simulator.bench import WORKLOADS, Measurement, Variant
from kubestow.simulator.bench.measurement import PodTimes
from kubestow.simulator.bench.upstream import CALIBRATION_S

SMALL = ["bench", "--workload", "ResourceClaimTemplate", "--nodes", "300", "--pods", "30"]


class _Interrupts:
    """Interrupts the process that unpickles it, as Ctrl-C does."""

    def __reduce__(self) -> tuple[Any, ...]:
        return signal.raise_signal, (signal.SIGINT,)


class _EndsTheProcess:
    """Ends the process that unpickles it."""

    def __call__(self) -> None:
        raise AssertionError("not read from a pipe")

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (1,)


def measurement(us_per_pod: float = 100, **changes: Any) -> Measurement:
    """Of a calm machine that is as fast as that of upstream's figures."""
    values: dict[str, Any] = {
        "workload": "SchedulingBasic",
        "nodes": 5000,
        "init_pods": 1000,
        "measure_pods": 200,
        "percentage_of_nodes_to_score": 0,
        "pods_per_s": 1e6 / us_per_pod,
        "us_per_pod": us_per_pod,
        "cpu_us_per_pod": us_per_pod,
        "peak_memory_mib": 100.0,
        "us_per_pod_min": us_per_pod,
        "us_per_pod_max": us_per_pod,
        "cores": 2,
        "foreign_cores": 0.0,
        "calibration_ms": CALIBRATION_S * 1000,
        "calibration_spread": 1.0,
        "first_us": us_per_pod * 10,
        "p50_us": us_per_pod * 0.9,
        "p99_us": us_per_pod * 2,
        **changes,
    }
    return Measurement(**values)


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
    assert line["variant"] == "plain"
    assert (line["runs"], line["us_per_pod_min"], line["us_per_pod_max"]) == (
        1,
        line["us_per_pod"],
        line["us_per_pod"],
    )
    assert line["first_us"] > 0
    assert line["cpu_us_per_pod"] > 0
    assert line["steady"] == (not line["disturbed_by"])
    # Upstream's figure is for the workload's own size.
    assert line["ratio"] is None


def test_the_table_has_a_row_for_each_variant() -> None:
    arguments = ["--nodes", "30", "--pods", "5", "--variant", "all", "--check"]
    result = CliRunner().invoke(app, ["bench", "--workload", "SchedulingBasic/1000", *arguments])
    assert result.exit_code == 0, result.output
    titles = [line.split()[0] for line in result.stdout.splitlines()[1:4]]
    assert titles == [
        "SchedulingBasic/1000Nodes",
        "SchedulingBasic/1000Nodes/Unlike",
        "SchedulingBasic/1000Nodes/AllUnlike",
    ]
    assert "0 of 15 decisions differ" in result.stderr


def in_this_process(monkeypatch: pytest.MonkeyPatch, *results: PodTimes) -> None:
    """The results of the measurements, in turn, instead of measuring."""
    waiting = list(results)
    monkeypatch.setattr(bench_measure, "_run", lambda run, job, in_process: waiting.pop(0))


def test_repeated_runs_are_summed_up_by_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch, *(measurement(us) for us in (70, 50, 60)))
    line = json_line("bench", "--workload", "SchedulingBasic$", "--repeat", "3")
    assert (line["us_per_pod"], line["us_per_pod_min"], line["us_per_pod_max"]) == (60, 50, 70)
    assert line["runs"] == 3
    assert line["ratio"] == 17.9


def test_the_table_has_the_spread_and_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch, *(measurement(us) for us in (70, 50, 60)))
    result = CliRunner().invoke(app, ["bench", "--workload", "SchedulingBasic$", "--repeat", "3"])
    header, cells = (re.split(r" {2,}", line) for line in result.stdout.splitlines()[:2])
    # The last column, of disturbances, is empty.
    row = dict(zip(header, cells, strict=False))
    assert row["µs/POD"] == "60"
    assert row["SPREAD"] == "50..70"
    assert (row["UPSTREAM"], row["RATIO"]) == ("1072", "17.9x")
    assert "scaled to this machine (calibration 12.1 to 12.1 ms here" in result.stdout
    assert "busy" not in result.stdout


def test_estimated_figures_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch, measurement(workload="SchedulingSecrets"))
    result = CliRunner().invoke(app, ["bench", "--workload", "SchedulingSecrets"])
    assert " ~926   ~9.3x" in result.stdout
    assert "SPREAD" not in result.stdout


def test_a_busy_machine_is_said_and_nothing_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch, measurement(foreign_cores=1.5), measurement(foreign_cores=1.5))
    result = CliRunner().invoke(app, ["bench", "--workload", "SchedulingBasic$"])
    assert "other processes used 1.5 of 2 cores" in result.stdout
    assert "rely on CPU and P50" in result.stdout
    assert "x " not in result.stdout
    line = json_line("bench", "--workload", "SchedulingBasic$")
    assert line["steady"] is False
    assert line["disturbed_by"] == ["other processes used 1.5 of 2 cores"]
    assert line["ratio"] is None


def test_the_format_of_upstreams_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch, measurement(100, variant=Variant.UNLIKE))
    result = CliRunner().invoke(app, ["bench", "--workload", "SchedulingBasic$", "-o", "perf-json"])
    throughput, duration = json.loads(result.stdout)["dataItems"]
    assert throughput["data"] == {"Average": 10_000}
    assert throughput["labels"]["Name"] == "SchedulingBasic/Unlike"
    assert duration["data"] == {"Average": 0.1, "Perc50": 0.09, "Perc99": 0.2}


def test_a_whole_simulation_is_timed() -> None:
    small = ["--workload", "SchedulingBasic/1000", "--nodes", "30", "--pods", "5"]
    line = json_line("bench", "simulate", *small, "--variant", "unlike")
    assert (line["workload"], line["variant"]) == ("SchedulingBasic/1000Nodes", "unlike")
    assert (line["measurePods"], line["scheduled"]) == (5, 5)
    assert line["pods_per_s"] > 0
    assert "steady" in line
    assert "ratio" not in line


def test_without_a_pattern_a_simulation_runs_some_workloads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs: list[str] = []

    def note(run: object, job: bench_measure.Job, *, in_process: bool) -> PodTimes:
        jobs.append(job.workload.title)
        return measurement()

    monkeypatch.setattr(bench_measure, "_run", note)
    assert CliRunner().invoke(app, ["bench", "simulate", "--variant", "unlike"]).exit_code == 0
    assert sorted(jobs) == sorted(f"{name}/Unlike" for name in bench_measure.SIMULATED)
    jobs.clear()
    assert CliRunner().invoke(app, ["bench"]).exit_code == 0
    assert jobs == [workload.name for workload in WORKLOADS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workload", "Basic/Unlike"], "--variant chooses their variants"),
        (["--workload", "("], "no regular expression"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["bench", *arguments])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_process_that_ends_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_measure, "_measure", _EndsTheProcess())
    result = CliRunner().invoke(app, SMALL)
    assert isinstance(result.exception, KubestowError)
    assert str(result.exception).startswith(
        "SchedulingWithResourceClaimTemplate: the process ended"
    )


def test_ctrl_c_ends_the_process_that_measures_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # In a terminal it reaches both; here only the one that measures.
    monkeypatch.setattr(bench_measure, "_measure", _Interrupts())
    result = CliRunner().invoke(app, SMALL)
    assert "the process ended" in str(result.exception)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1.9", "v1.17", "v1.20"])
def test_older_versions_are_timed_in_simulations(version: str) -> None:
    workload = ["--workload", "SchedulingBasic$", "--nodes", "50", "--pods", "20", "-o", "json"]
    result = CliRunner().invoke(app, ["bench", "simulate", "--compatibility", version, *workload])
    assert result.exit_code == 0, result.output
    measured = json.loads(result.stdout.splitlines()[0])
    assert measured["scheduled"] == measured["measurePods"] == 20


@pytest.mark.parametrize(
    ("earlier", "arguments"),
    [
        (["--day", "--nodes", "9"], ["day", "--nodes", "9"]),
        (["--nodes", "9", "--gangs"], ["gangs", "--nodes", "9"]),
        (["--explain"], ["explain"]),
        (["--simulate", "--pods", "5"], ["simulate", "--pods", "5"]),
        (["--pods", "5", "--soak", "10m", "--http"], ["soak", "--pods", "5", "10m", "--http"]),
        (["--soak=10m"], ["soak", "10m"]),
        (["--compatibility", "v1.9"], ["simulate", "--compatibility", "v1.9"]),
        (["--simulate", "--compatibility=v1.9"], ["simulate", "--compatibility=v1.9"]),
    ],
    ids=" ".join,
)
def test_options_that_are_subcommands_by_now_still_work(
    earlier: list[str], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    names = [function.__name__ for function in SUBCOMMANDS]
    assert with_subcommand(earlier, names) == arguments
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.endswith(f"is now kubestow bench {arguments[0]}")


@pytest.mark.parametrize("arguments", [[], ["--nodes", "9"], ["simulate", "--compatibility=v1.9"]])
def test_other_arguments_stay(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert with_subcommand(arguments, ["simulate"]) == arguments
    assert capsys.readouterr().err == ""


def test_an_earlier_option_runs_the_subcommand() -> None:
    small = ["--nodes", "5", "--pods", "20", "-o", "json"]
    result = CliRunner().invoke(app, ["bench", "--day", *small])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["nodes"] == 5
    assert result.stderr == "kubestow: warning: --day of kubestow bench is now kubestow bench day\n"
