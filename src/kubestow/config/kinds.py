"""The kinds of the configuration format (spec 09 §3.1): one for the whole, one for the arguments of
each built-in plugin. There is one version."""

from typing import Final

from kubestow.config.plugin_args import ARGS_TYPES
from kubestow.errors import ConfigError

GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
CONFIG_KIND: Final = "KubeSchedulerConfiguration"

_REGISTERED: Final = {CONFIG_KIND, *(args_type.__name__ for args_type in ARGS_TYPES.values())}


def check_registered(api_version: str, kind: str) -> None:
    """Raise ConfigError for other kinds and versions."""
    if api_version != API_VERSION or kind not in _REGISTERED:
        known = f'is registered for version "{api_version}" in scheme "kubestow/config"'
        raise ConfigError(f'no kind "{kind}" {known}')
