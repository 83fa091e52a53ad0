"""The scheduler configuration of commands that run a scheduler in an embedded cluster."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kubestow.config.decoding import load_config
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates, parse_gates
from kubestow.config.profile import Plugins
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.editions import DEFAULT, edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition
from kubestow.errors import ConfigError
from kubestow.plugins.loading import LoadedPlugins, load_plugins
from kubestow.plugins.registry import PluginClass
from kubestow.service.output import stderr

_ERROR_LENGTH_MAX: Final = 1_000


def checked_gates(texts: Sequence[str] | None, edition: Edition | None = None) -> FeatureGates:
    """The gates of the command line; ConfigError if one needs another that is off."""
    gates = parse_gates(texts or (), edition or edition_named(DEFAULT))
    errors = gates.dependency_errors()
    if errors:
        raise ConfigError(f"--feature-gates: {'; '.join(errors)}")
    if gates.without_effect:
        stderr().print(f"without effect on scheduling: {', '.join(gates.without_effect)}")
    return gates


def load_scheduler_config(
    path: Path | None,
    registry: Mapping[str, PluginClass] | None = None,
    plugins: Plugins | None = None,
    gates: FeatureGates = DEFAULT_GATES,
) -> LoadedPlugins:
    """The configuration and its plugins; errors are one line and name the file.

    Plugins are those of the gates' edition. An older version has other ones, and others by default.
    """
    if registry is None:
        registry = rules_of(gates.edition).registry
    if path is None:
        return LoadedPlugins(SchedulerConfig(), dict(registry))
    try:
        config = load_config(path, gates, plugins)
        check_config(config, gates, is_older=plugins is not None)
        loaded = load_plugins(config, registry)
    except ConfigError as error:
        # Upstream's text for duplicate keys has line breaks, and one contains the whole file.
        text = textwrap.shorten(str(error), _ERROR_LENGTH_MAX, placeholder=" …")
        raise ConfigError(f'configuration "{path}": {text}') from error
    return loaded._replace(config=_without_binders(loaded.config))


def _without_binders(config: SchedulerConfig) -> SchedulerConfig:
    """Extenders filter and score, but do not bind: they would do so in a real cluster."""
    if not any(extender.bind_verb for extender in config.extenders):
        return config
    stderr().print("Extenders are not asked to bind in a simulation.")
    extenders = (msgspec.structs.replace(extender, bind_verb="") for extender in config.extenders)
    return msgspec.structs.replace(config, extenders=tuple(extenders))
