"""The text of `--help`: every flag under its heading."""

import textwrap
from collections.abc import Iterable
from typing import Final

from kubestow.config.flag_kinds import format_value
from kubestow.config.flag_table import FLAGS, Flag, Section

_WIDTH: Final = 100
_INDENT: Final = " " * 10


def usage_text(program: str, *, width: int = _WIDTH) -> str:
    """The whole usage, lines of at most `width` columns."""
    parts = [f"Usage:\n  {program} [flags]"]
    for section in Section:
        flags = sorted((flag for flag in FLAGS if flag.section is section), key=_name)
        parts.append(f"{section} flags:\n\n{_flag_lines(flags, width)}")
    return "\n\n".join(parts)


def _name(flag: Flag) -> str:
    return flag.name


def _flag_lines(flags: Iterable[Flag], width: int) -> str:
    lines: list[str] = []
    for flag in flags:
        lines.append(_head(flag))
        lines += textwrap.wrap(flag.help, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return "\n".join(lines)


def _head(flag: Flag) -> str:
    names = f"-{flag.shorthand}, --{flag.name}" if flag.shorthand else f"    --{flag.name}"
    label = f" {flag.kind.label}" if flag.kind.label else ""
    return f"  {names}{label}{_default(flag)}"


def _default(flag: Flag) -> str:
    if not flag.default or flag.name == "version":
        return ""
    shown = format_value(flag.default)
    return f' (default "{shown}")' if flag.kind.label == "string" else f" (default {shown})"
