"""`kubestow print-default-config`: a configuration with all defaults, without a cluster."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kubestow.config.decoding import load_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.config.written import write_config
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
) -> None:
    """Print the configuration with all its defaults.

    The output is a KubeSchedulerConfiguration that `run --config` and `simulate --config` read. No
    cluster is needed.

    Example: kubestow print-default-config > config.yaml
    """
    sys.stdout.write(write_config(_config(config_file)))


def _config(path: Path | None) -> SchedulerConfig:
    if path is None:
        return SchedulerConfig()
    try:
        config = load_config(path)
        check_config(config)
    except ConfigError as error:
        raise ConfigError(f'configuration "{path}": {error}') from error
    return config
