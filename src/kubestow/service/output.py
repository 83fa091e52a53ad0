"""How commands print: tables for people, JSON and YAML for programs."""

import sys
from enum import StrEnum
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class OutputFormat(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def stdout() -> Console:
    """For tables; without a terminal lines are not wrapped."""
    is_terminal = sys.stdout.isatty()
    return Console(width=None if is_terminal else 200, highlight=False, soft_wrap=not is_terminal)


def stderr() -> Console:
    """For progress and remarks, so that output can be piped."""
    return Console(stderr=True, highlight=False)


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


def print_data(data: Any, output: OutputFormat) -> None:
    """Print as JSON or YAML."""
    if output is OutputFormat.JSON:
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    else:
        text = yaml.safe_dump(msgspec.to_builtins(data), sort_keys=False, allow_unicode=True)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
