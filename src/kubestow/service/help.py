"""The help of a command, without names of Python types.

Typer derives the placeholder of a value from its type (`<int range>`, `<list[Path]>`) and its
limits from the check (`x>=0`). Here these become plain, and options come under their headings.
Not here: the help of `kubestow run`, which lists flags of kube-scheduler (`usage`).
"""

import re
import textwrap
from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

# A placeholder of Typer's, and what the help shows in its place.
_PLACEHOLDERS: Final = (
    (re.compile(r" <list\[.*?\]>"), ""),
    (re.compile(r"<(int|float)( range)?>"), "N"),
    (re.compile(r"<(path|file|Path)>"), "FILE"),
    (re.compile(r"<str>"), "TEXT"),
    (re.compile(r"<([^<>]*\|[^<>]*)>"), r"\1"),
)
_LIMITS: Final = (
    (re.compile(r"(default: |[<>]=)(\d+)\.0(?![\d.])"), r"\1\2"),
    (re.compile(r"(-?[0-9.]+)<=x<=(-?[0-9.]+)"), r"\1 to \2"),
    (re.compile(r"x>=(-?[0-9.]+)"), r"\1 or more"),
    (re.compile(r"x<=(-?[0-9.]+)"), r"\1 or less"),
    (re.compile(r"\[default: \((.*?)\)"), r"[default: \1"),
)

_GAP: Final = "  "
_NAMES_COLUMNS: Final = 30
# Of the second column; below it names and texts stand one below the other.
_TEXT_WIDTH_MIN: Final = 40
_BELOW: Final = "    "
_WHOLE_WORDS: Final[dict[str, Any]] = {"break_long_words": False, "break_on_hyphens": False}


class PlainHelp:
    """What is written of a command in its help."""

    help: str | None
    epilog: str | None
    get_params: Callable[[Any], list[Any]]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        _write_text(formatter, self.help)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_text(formatter, self.epilog)

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
                write_definitions(formatter, heading, records)


class PlainCommand(PlainHelp, TyperCommand):  # pyright: ignore[reportIncompatibleVariableOverride]
    pass


class PlainGroup(PlainHelp, TyperGroup):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A command that has others."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        records = [(name, _first_line(each.help)) for name, each in self.commands.items()]
        write_definitions(formatter, "Commands", records)


def _first_line(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


def write_definitions(formatter: Any, heading: str, records: Sequence[tuple[str, str]]) -> None:
    """Write names and what each means, in two columns or, in a narrow terminal, one below the
    other."""
    names_width = min(max(len(names) for names, _ in records), _NAMES_COLUMNS) + len(_GAP)
    text_width: int = formatter.width - names_width - len(_GAP)
    if text_width < _TEXT_WIDTH_MIN:
        names_width, text_width = len(_BELOW), formatter.width - len(_BELOW) - len(_GAP)
    indent = " " * names_width
    with formatter.section(heading):
        for names, text in records:
            lines = textwrap.wrap(text, text_width, **_WHOLE_WORDS) or [""]
            if len(names) + len(_GAP) <= names_width:
                lines = [
                    names.ljust(names_width) + lines[0],
                    *(indent + each for each in lines[1:]),
                ]
            else:
                lines = [names, *(indent + each for each in lines)]
            for line in lines:
                formatter.write(f"{_GAP}{line}".rstrip() + "\n")


def _write_text(formatter: Any, text: str | None) -> None:
    """Write paragraphs. Lines of one that begins with a backspace stay, as do commands that can be
    pasted; an example is one command."""
    for paragraph in cleandoc(text or "").split("\n\n") if text else ():
        formatter.write_paragraph()
        if paragraph.startswith("\b\n"):
            lines = [
                part
                for line in paragraph.splitlines()[1:]
                for part in _continued(line, formatter.width - len(_GAP))
            ]
        elif paragraph.startswith("Example: "):
            command = " ".join(paragraph.split())
            lines = _continued(command, formatter.width - len(_GAP))
        else:
            lines = textwrap.wrap(paragraph, formatter.width - len(_GAP), **_WHOLE_WORDS)
        formatter.write("".join(f"{_GAP}{line}\n" for line in lines))


def _continued(command: str, width: int) -> list[str]:
    """A command of a shell on several lines, if one is too short for it; each begins with an
    option, where that is short enough."""
    if len(command) <= width:
        return [command]
    lines: list[str] = []
    for option in re.split(r" (?=-)", command):
        for part in textwrap.wrap(option, width - len(f"{_GAP} \\"), **_WHOLE_WORDS):
            if lines and len(lines[-1]) + len(f" {part} \\") <= width:
                lines[-1] += f" {part}"
            else:
                lines.append(_GAP + part if lines else part)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _plain(names: str, text: str) -> tuple[str, str]:
    for pattern, plain in _PLACEHOLDERS:
        names = pattern.sub(plain, names)
    return names, plain_limits(text)


def plain_limits(text: str) -> str:
    """The text with the limits of a number in words: `x>=0` is "0 or more"."""
    for pattern, plain in _LIMITS:
        text = pattern.sub(plain, text)
    return text
