"""How commands print: texts with colours, progress, and JSON and YAML for programs.

Not here: tables (`table`).
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec
import yaml
from msgspec import UNSET
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kubestow.redaction import printable_lines
from kubestow.service.formats import DataFormat, OutputFormat


class _PlainConsole(Console):
    """A console on which only styles make escape sequences, never the texts."""

    def print(self, *objects: Any, **options: Any) -> None:
        plain = (printable_lines(each) if isinstance(each, str) else each for each in objects)
        super().print(*plain, **options)


def stdout() -> Console:
    """The console for results, with colours; without a terminal lines are not wrapped."""
    is_terminal = sys.stdout.isatty()
    return _PlainConsole(
        width=None if is_terminal else 200, highlight=False, soft_wrap=not is_terminal
    )


def stderr() -> Console:
    """The console for progress and remarks, so that results can be piped."""
    return _PlainConsole(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a text in which brackets are no marks of a style."""
    stdout().print(escape(text))


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


def run_fields(*, time_s: float, until_s: float, placed: int, elapsed_s: float) -> dict[str, Any]:
    """What a `run_bar` shows of a run whose total is 1: virtual time, and pods a second."""
    return {
        "completed": time_s / until_s,
        "description": f"Playing {duration_text(time_s)} of {duration_text(until_s)}",
        "rate": f"{placed / elapsed_s:,.0f} pods/s" if elapsed_s > 0 else "",
    }


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
