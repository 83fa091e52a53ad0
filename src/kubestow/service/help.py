"""The help of a command, without names of Python types.

Typer derives the placeholder of a value from its type (`<int range>`, `<list[Path]>`) and its
limits from the check (`x>=0`). Here these become plain, and options come under their headings.
Not here: the help of `kubestow run`, which lists flags of kube-scheduler (`usage`).
"""

import re
from typing import Any, Final

from typer.core import TyperCommand

# A placeholder of Typer's, and what the help shows in its place.
_PLACEHOLDERS: Final = (
    (re.compile(r" <list\[.*?\]>"), ""),
    (re.compile(r"<(int|float)( range)?>"), "N"),
    (re.compile(r"<(path|file|Path)>"), "FILE"),
    (re.compile(r"<str>"), "TEXT"),
    (re.compile(r"<([^<>]*\|[^<>]*)>"), r"\1"),
)
_LIMITS: Final = (
    (re.compile(r"(-?[0-9.]+)<=x<=(-?[0-9.]+)"), r"\1 to \2"),
    (re.compile(r"x>=(-?[0-9.]+)"), r"\1 or more"),
    (re.compile(r"x<=(-?[0-9.]+)"), r"\1 or less"),
    (re.compile(r"\[default: \((.*?)\)"), r"[default: \1"),
)


class PlainCommand(TyperCommand):
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each under the heading it names."""
        headings: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record: tuple[str, str] | None = param.get_help_record(ctx)
            if record is not None:
                is_argument = param.param_type_name == "argument"
                if is_argument and param.metavar:
                    record = (param.metavar, record[1])
                default = "Arguments" if is_argument else "Options"
                heading: str = getattr(param, "rich_help_panel", None) or default
                headings.setdefault(heading, []).append(_plain(*record))
        for heading, records in headings.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _plain(names: str, text: str) -> tuple[str, str]:
    for pattern, plain in _PLACEHOLDERS:
        names = pattern.sub(plain, names)
    for pattern, plain in _LIMITS:
        text = pattern.sub(plain, text)
    return names, text
