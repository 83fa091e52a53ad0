"""The text of `kubestow run --help`: the flags most runs need, then every flag by its heading."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Final

from kubestow.config.flag import Flag, Section, format_value
from kubestow.config.flag_table import FLAGS

_COLUMNS: Final = 100
_INDENT: Final = " " * 10
_INTRODUCTION: Final = """\
Usage: {program} [flags]

Schedules the pods of a cluster as kube-scheduler of its version does (v1.37, v1.36), and takes \
its flags, configuration file and environment. It runs until it is stopped.

Most runs need only these:

      --kubeconfig FILE
          How to reach the cluster; in a pod of the cluster it is not needed.
      --config FILE
          A KubeSchedulerConfiguration; `kubestow print-default-config` prints one.
      --leader-elect=false
          Schedule at once, without a lease; right as long as no other scheduler runs.
  -v=2
          Log what an operator usually needs.

Example: {program} --kubeconfig=admin.conf --leader-elect=false -v=2"""
# What the value of a flag looks like, by the name that kube-scheduler prints for its type.
_PLACEHOLDERS: Final = {
    "string": "TEXT",
    "strings": "TEXT,...",
    "ip": "ADDRESS",
    "int": "N",
    "int32": "N",
    "int32Slice": "N,...",
    "Level": "N",
    "float": "N",
    "duration": "DURATION",
    "quantity": "QUANTITY",
    "namedCertKey": "CERT,KEY",
    "stringToString": "KEY=VALUE,...",
    "pattern=N,...": "PATTERN=N,...",
    "version[=true]": "VERSION",
}


def print_usage(program: str) -> None:
    """Print it, as wide as the terminal allows."""
    is_terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if is_terminal else _COLUMNS
    print(usage_text(program, width=min(columns, _COLUMNS)))


def usage_text(program: str, *, width: int = _COLUMNS) -> str:
    """The whole usage, lines of at most `width` columns."""
    parts = [_INTRODUCTION.format(program=program)]
    for section in Section:
        flags = sorted((flag for flag in FLAGS if flag.section is section), key=_name)
        parts.append(f"{section} flags:\n\n{_flag_lines(flags)}")
    lines = "\n\n".join(parts).splitlines()
    return "\n".join(part for line in lines for part in _wrapped(line, width))


def _name(flag: Flag) -> str:
    return flag.name


def _flag_lines(flags: Iterable[Flag]) -> str:
    return "\n".join(line for flag in flags for line in (_head(flag), _INDENT + flag.help))


def _wrapped(line: str, width: int) -> list[str]:
    """The line in whole words; of a flag, what follows stands under its explanation."""
    blanks = len(line) - len(line.lstrip())
    indent = _INDENT if re.match(r" +-", line) else " " * blanks
    wrapped = textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped or [""]


def _head(flag: Flag) -> str:
    names = f"-{flag.shorthand}, --{flag.name}" if flag.shorthand else f"    --{flag.name}"
    label = f" {_PLACEHOLDERS[flag.kind.label]}" if flag.kind.label else ""
    return f"  {names}{label}{_default(flag)}"


def _default(flag: Flag) -> str:
    if not flag.default or flag.name == "version":
        return ""
    shown = format_value(flag.default)
    return f' (default "{shown}")' if flag.kind.label == "string" else f" (default {shown})"
