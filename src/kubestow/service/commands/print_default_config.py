"""`kubestow print-default-config`: a configuration with all defaults, without a cluster."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kubestow.errors import ConfigError


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
    from kubestow.config.decoding import load_config
    from kubestow.config.scheduler import SchedulerConfig
    from kubestow.config.validation import check_config
    from kubestow.config.written import write_config

    config = SchedulerConfig()
    if config_file is not None:
        try:
            config = load_config(config_file)
            check_config(config)
        except ConfigError as error:
            raise ConfigError(f'configuration "{config_file}": {error}') from error
    sys.stdout.write(write_config(config, has_secrets=raw))
