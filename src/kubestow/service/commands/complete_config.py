"""What `kubestow print-default-config` prints: a configuration with the defaults filled in."""

from pathlib import Path

from kubestow.config.decoding import load_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.config.written import write_config
from kubestow.errors import ConfigError


def complete_config_text(path: Path | None, *, has_secrets: bool = False) -> str:
    """The configuration of a file, or without one the default, as YAML."""
    return write_config(_config(path), has_secrets=has_secrets)


def _config(path: Path | None) -> SchedulerConfig:
    if path is None:
        return SchedulerConfig()
    try:
        config = load_config(path)
        check_config(config)
    except ConfigError as error:
        raise ConfigError(f'configuration "{path}": {error}') from error
    return config
