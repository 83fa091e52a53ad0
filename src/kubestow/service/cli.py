"""The command line: `kubestow COMMAND`.

Exit codes: 0 success, 1 a negative result (pods stay pending, decisions differ), 2 the input cannot
be used, 3 a plugin failed. `run` ends with 1 for every error, as kube-scheduler does.
"""

import errno
import gc
import io
import math
import os
import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kubestow import __version__
from kubestow.collector import GC_THRESHOLDS
from kubestow.errors import KubestowError
from kubestow.service.completion.table import read_table
from kubestow.service.help import PlainCommand, write_definitions
from kubestow.service.usage_errors import USAGE_ERROR, print_error, usage_error_text

# The commands and what each is for. Each is a function in a module of `commands`, both of the same
# name with _ for -, with its settings beside it. The summaries are here so that the help of the
# program imports no command.
COMMANDS: Final = {
    "run": "Schedule pods for a cluster, as kube-scheduler does.",
    "demo": "Show the scheduler in an embedded cluster.",
    "simulate": "Place a workload on a cluster, from files or a server.",
    "compare": "Compare schedulers on the same cluster and workload.",
    "upgrade": "Find out what another Kubernetes version changes.",
    "explain": "Say why a pod is placed where it is, or why it waits.",
    "capacity": "Find out how much room a cluster has.",
    "rebalance": "Find out which pods to evict for a better placement.",
    "test": "Test where pods are placed, and after which failures.",
    "record": "Record what a cluster's scheduler sees and decides.",
    "replay": "Make the decisions of a recording again, and compare.",
    "conformance": "Compare with recorded decisions of kube-scheduler.",
    "plugin": "Check a plugin with generated pods and nodes.",
    "bench": "Measure how fast pods are decided on.",
    "print-default-config": "Print the configuration with all its defaults.",
    "version": "Print the version of kubestow and of what it runs on.",
    "help": "Print the help of the program, or of a command.",
}
# A disk is full, or what the user may have of it.
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SETTINGS: Final[dict[str, Any]] = {
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "rich_markup_mode": None,
}


class _ReaderGoneError(Exception):
    """The reader of the output has ended, as in `kubestow … | head`.

    Typer would make a failure of a BrokenPipeError.
    """


class _Commands(TyperGroup):
    """Lists the commands and completes their names without importing any of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, summary in COMMANDS.items():
            self.add_command(_CommandOnDemand(name, help=summary))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        write_definitions(formatter, "Commands", [*COMMANDS.items()])


class _CommandOnDemand(TyperCommand):
    """Stands for a command, whose module is imported when its arguments are read.

    The context that comes back belongs to the command itself, also in completion.
    """

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return import_command(str(self.name)).make_context(info_name, args, parent, **extra)


class _Command(PlainCommand):
    """No option takes a number that is none: `float` reads "nan" and "inf" as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(ctx, args)
        for param in self.params:
            value = ctx.params.get(param.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"'{value}' is not a valid float", ctx, param)
        return rest


def import_command(name: str) -> Any:
    function_name = name.replace("-", "_")
    module = import_module(f"kubestow.service.commands.{function_name}")
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.command")
    alone = typer.Typer(add_completion=False, **_SETTINGS)
    settings: dict[str, Any] = {"cls": _Command, **getattr(module, "SETTINGS", {})}
    function = getattr(module, function_name)
    subcommands = getattr(module, "SUBCOMMANDS", ())
    if subcommands:
        alone.callback(invoke_without_command=True, **settings)(function)
    else:
        alone.command(name=name, **settings)(function)
    for subcommand in subcommands:
        alone.command(name=subcommand.__name__, cls=_Command)(subcommand)
    return get_command(alone)


app = typer.Typer(
    name="kubestow",
    cls=_Commands,
    help="A Kubernetes scheduler that places pods as kube-scheduler v1.37 and v1.36 do.",
    invoke_without_command=True,
    add_completion=True,
    **_SETTINGS,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"kubestow {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def prepare_streams() -> None:
    """Make printing safe: a closed stream takes and drops all, and no text fails for its letters.

    Files and other programs get UTF-8 whatever the locale is, as from kubectl. On a terminal "?"
    stands for what its encoding does not have.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - the process's
        elif isinstance(stream, io.TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="replace")


def main() -> None:
    """Run the command line; an error that a user can correct is one line, not a traceback."""
    prepare_streams()
    # Hundreds of modules are imported, of which nothing becomes garbage.
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        code = app(prog_name="kubestow", standalone_mode=False)
        sys.stdout.flush()
    except USAGE_ERROR as error:
        print_error(usage_error_text(error), _command())
        code = 2
    except KubestowError as error:
        print_error(str(error), _command())
        code = 2
    except (BrokenPipeError, _ReaderGoneError):
        _drop_output()
        code = 0
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        print_error(f"cannot write: {error.strerror}", _command())
        _drop_output()
        code = 2
    sys.exit(code)


def _drop_output() -> None:
    """What is buffered has no place either, and would be written at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command() -> str:
    """The command that the arguments name, with the one of its own; empty if they name none."""
    words = sys.argv[1:]
    position = next((place for place, word in enumerate(words) if word in COMMANDS), None)
    if position is None:
        return ""
    own = read_table()["commands"][words[position]].get("commands", {})
    following = words[position + 1 : position + 2]
    return " ".join((words[position], *(word for word in following if word in own)))
