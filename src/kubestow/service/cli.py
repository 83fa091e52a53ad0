"""The command line: `kubestow COMMAND`.

Exit codes: 0 success, 1 a negative result (pods stay pending, decisions differ), 2 the input cannot
be used.
"""

import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kubestow import __version__
from kubestow.errors import KubestowError

# Each is a function of the same name in a module of the same name, with its settings beside it.
_COMMANDS: Final = ("run", "demo", "simulate", "conformance", "bench")
_SETTINGS: Final[dict[str, Any]] = {
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "rich_markup_mode": None,
}


class _CommandsOnDemand(TyperGroup):
    """Imports a command when it is run: `kubestow run` loads no simulator and no API server."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            module = import_module(f"kubestow.service.commands.{cmd_name}")
            alone = typer.Typer(add_completion=False, **_SETTINGS)
            settings: dict[str, Any] = getattr(module, "SETTINGS", {})
            alone.command(name=cmd_name, **settings)(getattr(module, cmd_name))
            self.add_command(get_command(alone))
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="kubestow",
    cls=_CommandsOnDemand,
    help="A Kubernetes scheduler that places pods as kube-scheduler v1.36 does.",
    no_args_is_help=True,
    add_completion=True,
    **_SETTINGS,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"kubestow {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line; an error that a user can correct is one line, not a traceback."""
    try:
        app()
    except KubestowError as error:
        print(f"kubestow: error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of the output has ended, as in `kubestow … | head`.
        sys.stderr.close()
        sys.exit(0)
