"""What is written for each file name, and what is refused before a run."""

import csv
import sys
from pathlib import Path

import msgspec
import pytest
from tests.simulator.reports.report_run import GPU, make_run

from kubestow.errors import InputError
from kubestow.simulator.reports.figures import figures_of
from kubestow.simulator.reports.files import Report, check_reports, report_of, write_report
from kubestow.simulator.results import RunResult

RUN = make_run()
TABLES = ("pods", "nodes", "samples", "changes", "owners", "reasons", "resources")


def test_json_decodes_as_a_run_and_has_the_figures(tmp_path: Path) -> None:
    (path,) = write_report(RUN, tmp_path / "run.json")
    assert msgspec.json.decode(path.read_bytes(), type=RunResult) == RUN
    found = msgspec.json.decode(path.read_bytes(), type=Report)
    assert found == report_of(RUN)
    assert found.figures == figures_of(RUN)


def test_csv_has_all_rows_of_all_tables(tmp_path: Path) -> None:
    files = write_report(RUN, tmp_path / "run.csv")
    assert [path.name for path in files] == [f"run.{table}.csv" for table in TABLES]
    with files[0].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [pod.name for pod in RUN.pods]
    for row, pod in zip(rows, RUN.pods, strict=True):
        assert int(row["requests.cpu"]) == pod.requests["cpu"]
        assert int(row[f"requests.{GPU}"]) == pod.requests.get(GPU, 0)
        waited = "" if pod.scheduled_s is None else str(round(pod.scheduled_s - pod.created_s, 3))
        assert row["waited_s"] == waited


def test_parquet_has_the_same_rows_with_types(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    write_report(RUN, tmp_path / "run.csv")
    files = write_report(RUN, tmp_path / "run.parquet")
    for path in files:
        frame = polars.read_parquet(path)
        text = path.with_suffix(".csv").read_text(encoding="utf-8")
        assert frame.height == len(text.splitlines()) - 1, path
    pods = polars.read_parquet(files[0])
    assert pods["created_s"].dtype == polars.Float64
    assert pods["requests.memory"].dtype == polars.Int64
    assert pods["scheduled_s"].null_count() == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"),
    [pytest.param("run.svg", b"<svg", id="svg"), pytest.param("run.png", b"\x89PNG", id="png")],
)
def test_pictures_have_all_charts(name: str, start: bytes, tmp_path: Path) -> None:
    (path,) = write_report(RUN, tmp_path / name)
    content = path.read_bytes()
    assert content.startswith(start)
    if name.endswith("svg"):
        for title in ("Waiting pods", "Used share", "Stranded share", "Waiting times"):
            assert title.encode() in content


@pytest.mark.slow
def test_a_folder_has_everything(tmp_path: Path) -> None:
    # Few charts: each is drawn twice.
    run = msgspec.structs.replace(RUN, samples=[], changes=[])
    files = write_report(run, tmp_path / "all")
    names = {path.name for path in files}
    assert {"report.html", "run.json", "pods.csv", "pods.parquet"} <= names
    assert {"waits.svg", "waits.png", "fill.svg", "fill.png"} <= names
    assert all(path.stat().st_size > 0 for path in files)


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_report(RUN, tmp_path / "a.html")[0].read_bytes()
    assert write_report(RUN, tmp_path / "b.html")[0].read_bytes() == first


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "run.pdf", r'ends with ".pdf", expected one of \.html, .*a folder', id="suffix"
        ),
        pytest.param("none/run.html", "there is no folder", id="no-folder"),
        pytest.param("folder.csv", "it is a folder", id="a-folder-with-a-suffix"),
        pytest.param("file", "it is a file", id="a-file-without-one"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_run(
    name: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=f"--report: .*{text}"):
        check_reports([tmp_path / name])


@pytest.mark.parametrize(
    ("name", "package", "called"),
    [
        pytest.param("run.html", "altair", "Vega-Altair", id="html"),
        pytest.param("run.png", "vl_convert", "vl-convert", id="png"),
        pytest.param("run.parquet", "polars", "Polars", id="parquet"),
        pytest.param("run", "polars", "Polars", id="folder"),
    ],
)
def test_without_a_package_the_extra_is_named(
    name: str, package: str, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"{called}.*pip install 'kubestow\[reports\]'"):
        check_reports([tmp_path / name])


def test_data_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("altair", "vl_convert", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
    check_reports([tmp_path / "run.csv", tmp_path / "run.json"])
    assert write_report(RUN, tmp_path / "run.csv")
