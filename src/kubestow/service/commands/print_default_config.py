"""`kubestow print-default-config`: a configuration with all defaults, without a cluster."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def print_default_config(
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Print this KubeSchedulerConfiguration, with the defaults of what it leaves out.",
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Also print keys and passwords, instead of leaving them out."),
    ] = False,
) -> None:
    """Print the configuration with all its defaults.

    The output is a KubeSchedulerConfiguration that `run --config` and `simulate --config` read. No
    cluster is needed.

    Example: kubestow print-default-config > config.yaml
    """
    from kubestow.service.commands.complete_config import complete_config_text

    sys.stdout.write(complete_config_text(config_file, has_secrets=raw))
