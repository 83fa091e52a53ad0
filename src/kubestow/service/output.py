"""How commands print: tables for people and pipes, JSON and YAML for programs.

A table in a pipe has one line per row, neither cut nor wrapped, so that `grep`, `awk` and `wc` work
as with kubectl. On a terminal only the last column, which is for messages, is cut.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
import yaml
from msgspec import UNSET
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kubestow.service.formats import DataFormat, OutputFormat

_GAP: Final = "   "
_CUT: Final = "…"


class Table:
    """Rows of texts under a header; the last column may be long."""

    def __init__(self, *columns: str, right: Sequence[str] = ()) -> None:
        """`right` are the columns whose texts are aligned on the right, as numbers are."""
        self._columns = columns
        self._is_right = [column in right for column in columns]
        self._rows: list[Sequence[str]] = []

    def add(self, *cells: str) -> None:
        assert len(cells) == len(self._columns), cells
        self._rows.append(cells)

    def lines(self, *, has_header: bool = True, width: int | None = None) -> list[str]:
        """One text per row; with a width, the last column is cut to fit."""
        rows = [self._columns, *self._rows] if has_header else self._rows
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [self._line(cells, widths, width) for cells in rows]

    def _line(self, cells: Sequence[str], widths: Sequence[int], width: int | None) -> str:
        padded = [
            cell.rjust(columns) if is_right else cell.ljust(columns)
            for cell, columns, is_right in zip(cells, widths, self._is_right, strict=True)
        ]
        line = _GAP.join(padded).rstrip()
        if width is None or len(line) <= width:
            return line
        # The columns before the last are kept whole, also if that leaves nothing for the last.
        fixed = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        kept = max(width - len(_CUT), fixed)
        return line[:kept].rstrip() + (_CUT if kept > fixed else "")

    def print(self, *, has_header: bool = True, is_cut: bool = True) -> None:
        """Print it; on a terminal cut to its width unless `is_cut` is False."""
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal and is_cut else None
        lines = self.lines(has_header=has_header, width=width)
        if is_terminal and has_header:
            stdout().print(lines.pop(0), style="bold", markup=False, soft_wrap=True)
        for line in lines:
            sys.stdout.write(f"{line}\n")


def stdout() -> Console:
    """For texts with colours; without a terminal lines are not wrapped."""
    is_terminal = sys.stdout.isatty()
    return Console(width=None if is_terminal else 200, highlight=False, soft_wrap=not is_terminal)


def stderr() -> Console:
    """For progress and remarks, so that output can be piped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def progress_bar(description: str) -> Progress:
    """A bar on standard error, if that is a terminal."""
    return Progress(
        TextColumn(description),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=stderr(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def run_bar() -> Progress:
    """A bar for a run in virtual time, with the field `rate`; on standard error, as the other."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=stderr(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def print_data(data: Any, output: OutputFormat | DataFormat) -> None:
    """Print as JSON or YAML."""
    if output == DataFormat.JSON:
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    else:
        text = yaml.safe_dump(msgspec.to_builtins(data), sort_keys=False, allow_unicode=True)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def stream_json(data: msgspec.Struct, write: Callable[[str], Any]) -> None:
    """Write a struct as JSON, entry by entry of its lists, so that the text is never in memory as
    a whole; it reads the same as what `print_data` prints."""
    separator = "{"
    for field in msgspec.structs.fields(data):
        value: object = getattr(data, field.name)
        if value is UNSET:
            continue
        write(f"{separator}\n  {_json_text(field.encode_name)}: ")
        separator = ","
        entries = cast(tuple[object, ...], value) if isinstance(value, tuple) else ()
        if entries:
            _stream_list(entries, write)
        else:
            write(_indented(_json_text(cast(object, value)), "  "))
    write("\n}\n" if separator == "," else "{}\n")


def _stream_list(entries: tuple[object, ...], write: Callable[[str], Any]) -> None:
    separator = "["
    for entry in entries:
        write(f"{separator}\n    {_indented(_json_text(entry), '    ')}")
        separator = ","
    write("\n  ]")


def _json_text(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _indented(text: str, indent: str) -> str:
    return text.replace("\n", f"\n{indent}")


def duration_text(seconds: float) -> str:
    """A duration as people write it: 0s, 250ms, 1.5s, 2m5s."""
    if seconds < 1:
        return f"{milliseconds}ms" if (milliseconds := round(seconds * 1000)) else "0s"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
