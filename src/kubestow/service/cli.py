"""The command line: `kubestow COMMAND`.

Exit codes: 0 all went well, 1 the command did its work and the answer is no (pods stay pending,
decisions differ), 2 the input cannot be used.
"""

import sys
from typing import Annotated

import typer

from kubestow import __version__
from kubestow.errors import KubestowError
from kubestow.service.commands import bench, conformance, demo, run, simulate

app = typer.Typer(
    name="kubestow",
    help="A Kubernetes scheduler that places pods as kube-scheduler v1.36 does, and can say why.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
app.command(name="run", context_settings=run.CONTEXT_SETTINGS, add_help_option=False)(run.run)
app.command(name="demo")(demo.demo)
app.command(name="simulate")(simulate.simulate)
app.command(name="conformance")(conformance.conformance)
app.command(name="bench")(bench.bench)


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
    """Run the command line; an error a user can mend is one line, not a traceback."""
    try:
        app()
    except KubestowError as error:
        print(f"kubestow: error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read our output has seen enough, as in `kubestow … | head`.
        sys.stderr.close()
        sys.exit(0)
