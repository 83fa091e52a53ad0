"""`kubestow run`: a scheduler for a cluster, with the flags of kube-scheduler.

Flags are read as kube-scheduler reads them, so they differ in style from those of other commands.
Not here: the process that the flags describe (`process`).
"""

from collections.abc import Sequence
from typing import Final

import typer

from kubestow.config.flags import parse_flags
from kubestow.errors import ConfigError
from kubestow.service.usage import print_usage
from kubestow.service.usage_errors import print_error

PROGRAM: Final = "kubestow run"
# Typer must not parse any argument, not even `--help`.
SETTINGS: Final[dict[str, object]] = {
    "add_help_option": False,
    "context_settings": {
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
}


def run(context: typer.Context) -> None:
    """Schedule pods for a cluster, as kube-scheduler does.

    Example: kubestow run --kubeconfig=admin.conf --leader-elect=false -v=2

    `kubestow run --help` lists all flags.
    """
    raise typer.Exit(run_scheduler(context.args))


def run_scheduler(arguments: Sequence[str]) -> int:
    """Run a scheduler until it is stopped; the exit code."""
    try:
        if parse_flags(arguments).switch("help"):
            print_usage(PROGRAM)
            return 0
        from kubestow.service.commands.run.process import run_process

        return run_process(arguments, program=PROGRAM)
    except ConfigError as error:
        # Also of a configuration or kubeconfig: nothing runs yet.
        print_error(str(error), "run")
        return 1
