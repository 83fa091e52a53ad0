"""`kubestow simulate --trace` and `--report`: what is printed, written and refused."""

import csv
import sys
from pathlib import Path

import msgspec
import pytest

from kubestow.service.cli import main
from kubestow.simulator.reports.files import Report

NODES = "name,count,cpu,memory\nnode,2,4,8Gi\n"
PODS = "name,at,duration,cpu,count\nweb,0,,1,3\ntrain,10,60,4,2\nhuge,20,,8,1\n"
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: only}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
"""


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "pods.csv").write_text(PODS, encoding="utf-8")
    return [
        "--trace", "csv", "--nodes", str(tmp_path / "nodes.csv"),
        "--pods", str(tmp_path / "pods.csv"),
    ]  # fmt: skip


def simulate(*args: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["kubestow", "simulate", *args])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_json_has_the_rows_and_their_figures(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*trace, "-o", "json") == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert [pod.name for pod in report.pods] == [
        "web-1", "web-2", "web-3", "train-1", "train-2", "huge",
    ]  # fmt: skip
    assert report.figures.pods == 6
    assert report.figures.outcomes == {"Pending": 3, "Running": 3}
    assert report.virtual_duration_s == pytest.approx(130.0, abs=0.1)


def test_a_table_shows_owners_resources_and_why_pods_wait(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*trace, "--fail-on-pending") == 1
    output = capsys.readouterr().out
    assert "default     train      2        0         2" in output
    assert "3 of 6 pods placed in 2m10s of virtual time: 3 pending, 3 running" in output
    assert "2 pods wait: 0/2 nodes are available: 2 Insufficient cpu." in output
    assert "cpu                  8           3   37.5 %" in output


def test_the_limit_decides_how_much_is_played(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*trace, "--limit", "5", "-o", "json") == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert (len(report.pods), report.virtual_duration_s) == (3, pytest.approx(5.0, abs=0.1))


def test_nodes_may_come_from_manifests(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    files = ["-f", str(tmp_path / "cluster.yaml"), "--pods", str(tmp_path / "pods.csv")]
    assert simulate("--trace", "csv", *files, "-o", "json") == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert [node.name for node in report.nodes] == ["only"]


def test_reports_are_written_and_named(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = ["--report", str(tmp_path / "run.csv"), "--report", str(tmp_path / "run.json")]
    assert simulate(*trace, *reports) == 0
    assert "run.pods.csv" in capsys.readouterr().err
    with (tmp_path / "run.pods.csv").open(newline="", encoding="utf-8") as file:
        assert sum(row["outcome"] == "Running" for row in csv.DictReader(file)) == 3
    report = msgspec.json.decode((tmp_path / "run.json").read_bytes(), type=Report)
    assert report.figures.placed == 3


def test_a_plain_simulation_has_reports_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    path = tmp_path / "run.json"
    assert simulate("-f", str(tmp_path / "cluster.yaml"), "--report", str(path)) == 0
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    assert (report.figures.nodes, report.samples) == (1, [])


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param(["--trace", "csv"], "--trace needs --pods", id="no-pods"),
        pytest.param(["--trace", "csv", "--pods", "p"], "--trace csv needs nodes", id="no-nodes"),
        pytest.param(
            ["--trace", "openb", "--pods", "p", "-f", "x"],
            "--trace openb takes its nodes from --nodes",
            id="openb-with-manifests",
        ),
        pytest.param(["--pods", "p", "-f", "x"], "give its format with --trace", id="no-trace"),
        pytest.param(
            ["-f", "x", "--report", "run.pdf"], '--report: "run.pdf" ends with', id="report"
        ),
        pytest.param(
            ["--trace", "csv", "--pods", "p", "--compatibility", "v1.9"],
            "needs the scheduler of today",
            id="older",
        ),
        pytest.param(
            ["--trace", "csv", "--pods", "none.csv", "--nodes", "none.csv"],
            'cannot read "none.csv": No such file',
            id="no-file",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    args: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*args) == 2
    assert problem in capsys.readouterr().err
