"""Writes a report for each file name: the suffix decides what.

    .html            the page
    .json            the rows of the run, and its figures
    .csv .parquet    the tables: `run.csv` becomes run.pods.csv, run.nodes.csv and so on
    .svg .png        all charts in one picture
    none             a folder with all of these, and each chart as a picture of its own

What can be found before a run is found by `check_reports`: after an hour of work it would be late.
"""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.simulator.reports.extra import require_extra
from kubestow.simulator.reports.figures import Figures, figures_of
from kubestow.simulator.reports.tables import TABLE_NAMES, USAGE_TABLE_NAMES, Table, tables_of
from kubestow.simulator.results import RunResult

# By suffix: the packages that it needs.
SUFFIXES: Final[dict[str, tuple[str, ...]]] = {
    ".html": ("altair", "vl_convert"),
    ".json": (),
    ".csv": (),
    ".parquet": ("polars",),
    ".svg": ("altair", "vl_convert"),
    ".png": ("altair", "vl_convert"),
}
_PICTURES: Final = (".svg", ".png")
_TABLES: Final = (".csv", ".parquet")
_ALL_PACKAGES: Final = ("altair", "vl_convert", "polars")


class Report(RunResult, frozen=True, kw_only=True, rename="camel"):
    """A run with its figures; it decodes as a run, too."""

    figures: Figures


def report_of(result: RunResult) -> Report:
    """The run and what is derived from it."""
    fields = {name: getattr(result, name) for name in RunResult.__struct_fields__}
    return Report(**fields, figures=figures_of(result))


def check_reports(paths: Iterable[Path], *, purpose: str = "--report", force: bool = False) -> None:
    """InputError if one of the reports could not be written; files that exist are only replaced
    if forced."""
    for path in paths:
        if path.suffix and path.suffix not in SUFFIXES:
            raise InputError(
                f'{purpose}: "{path}" ends with "{path.suffix}", expected one of '
                f"{', '.join(SUFFIXES)}, or no suffix for a folder with all of them"
            )
        require_extra(f"{purpose} {path}", *SUFFIXES.get(path.suffix, _ALL_PACKAGES))
        folder = path if not path.suffix and path.is_dir() else path.parent
        if not folder.is_dir():
            raise InputError(f'{purpose}: cannot write "{path}": there is no folder "{folder}"')
        if path.is_dir() == bool(path.suffix) and path.exists():
            found = "a folder" if path.is_dir() else "a file"
            raise InputError(f'{purpose}: cannot write "{path}": it is {found}')
        if not os.access(folder, os.W_OK):
            raise InputError(f'{purpose}: cannot write "{path}": the folder is read-only')
        if path.suffix:
            for file in _files_of(path):
                keeping.require_new(file, purpose, force=force)
        elif path.is_dir() and any(path.iterdir()) and not force:
            raise InputError(
                f'{purpose}: the folder "{path}" is not empty, and nothing in it is overwritten; '
                "name another, or add --force"
            )


def _files_of(path: Path) -> list[Path]:
    """The files that a name with a suffix stands for."""
    if path.suffix not in _TABLES:
        return [path]
    return [_table_file(path, name) for name in (*TABLE_NAMES, *USAGE_TABLE_NAMES)]


def _table_file(path: Path, table: str) -> Path:
    return path.with_suffix(f".{table}{path.suffix}")


def write_report(result: RunResult, path: Path, *, force: bool = False) -> list[Path]:
    """Write the report that the name asks for; returns the files. Raises InputError."""
    check_reports([path], force=force)
    report = report_of(result)
    try:
        return _written(report, path)
    except OSError as error:
        raise InputError(f'cannot write the report "{path}": {error.strerror}') from error


def _written(report: Report, path: Path) -> list[Path]:
    match path.suffix:
        case ".html":
            return [_write_html(report, path)]
        case ".json":
            return [_write_json(report, path)]
        case ".csv" | ".parquet":
            return _write_tables(tables_of(report, report.figures), path)
        case ".svg" | ".png":
            return [_write_picture(report, path)]
        case _:
            return _write_folder(report, path)


def _keep(path: Path, content: str | bytes) -> None:
    # What is there was found by `check_reports`, and is to be replaced.
    keeping.write(path, content, force=True)


def _write_html(report: Report, path: Path) -> Path:
    # Imported where they are used: these need packages that may be missing.
    from kubestow.simulator.reports.html import page_html
    from kubestow.simulator.reports.run_page import page_of

    _keep(path, page_html(page_of(report, report.figures)))
    return path


def _write_json(report: Report, path: Path) -> Path:
    _keep(path, msgspec.json.encode(report) + b"\n")
    return path


def _write_tables(tables: Sequence[Table], path: Path) -> list[Path]:
    write = _write_csv if path.suffix == ".csv" else _write_parquet
    return [write(table, _table_file(path, table.name)) for table in tables]


def _write_csv(table: Table, path: Path) -> Path:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows(zip(*(column.values for column in table.columns), strict=True))
    _keep(path, text.getvalue())
    return path


def _write_parquet(table: Table, path: Path) -> Path:
    from kubestow.simulator.reports.frames import frame_of

    file = io.BytesIO()
    frame_of(table).write_parquet(file)
    _keep(path, file.getvalue())
    return path


def _write_picture(report: Report, path: Path) -> Path:
    from kubestow.simulator.reports.charts import draw, drawings_of, picture, thinning_note

    drawings = drawings_of(report, is_interactive=False)
    if not drawings:
        raise InputError(f'cannot draw "{path}": the run has no pod on a node and no samples')
    draw(picture(drawings, report.name, thinning_note(report)), path)
    return path


def _write_folder(report: Report, path: Path) -> list[Path]:
    from kubestow.simulator.reports.charts import draw, drawings_of, picture, thinning_note

    path.mkdir(mode=keeping.FOLDER_MODE, exist_ok=True)
    tables = tables_of(report, report.figures)
    written = [_write_html(report, path / "report.html"), _write_json(report, path / "run.json")]
    for table in tables:
        written.append(_write_csv(table, path / f"{table.name}.csv"))
        written.append(_write_parquet(table, path / f"{table.name}.parquet"))
    note = thinning_note(report)
    for drawing in drawings_of(report, is_interactive=False):
        for suffix in _PICTURES:
            spec = picture([drawing], report.name, note)
            file = path / f"{drawing.name}{suffix}"
            draw(spec, file)
            written.append(file)
    return written
