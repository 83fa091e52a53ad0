"""Completes a configuration with defaults, which depend on feature gates (spec 09 §3.2 to §3.5).

Invariant: completing twice gives the same as once, so that a written configuration reads back
unchanged.
"""

from collections.abc import Sequence

import msgspec

from kubestow.config.arguments import complete_args, decode_args, default_args
from kubestow.config.connection import complete_client_connection, complete_leader_election
from kubestow.config.documents import plain
from kubestow.config.extenders import ExtenderConfig, resources_ignored_by_scheduler
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.plugin_args import ARGS_TYPES, NodeResourcesFitArgs, PluginArgs
from kubestow.config.profile import (
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
    enabled_names,
    merge_plugins,
)
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError


def complete_config(
    config: SchedulerConfig,
    gates: FeatureGates = DEFAULT_GATES,
    plugins: Plugins | None = None,
) -> SchedulerConfig:
    """`plugins` are the default ones of an older version."""
    return msgspec.structs.replace(
        config,
        leader_election=complete_leader_election(config.leader_election),
        client_connection=complete_client_connection(config.client_connection),
        profiles=tuple(
            complete_profile(profile, gates, plugins)
            for profile in config.profiles or (ProfileConfig(),)
        ),
    )


def complete_profile(
    profile: ProfileConfig,
    gates: FeatureGates = DEFAULT_GATES,
    defaults: Plugins | None = None,
) -> ProfileConfig:
    """The profile with the default plugins and with typed arguments for every built-in plugin that
    has some; raises ConfigError where arguments do not decode."""
    plugins = merge_plugins(defaults or default_plugins(gates), profile.plugins)
    entries = [_complete_entry(entry, gates) for entry in profile.plugin_config]
    given = {entry.name for entry in entries}
    # Spec 09 §3.5: given entries keep their order, the rest follows by name.
    entries += [
        PluginConfig(name=name, args=default_args(name, gates))
        for name in sorted(enabled_names(plugins))
        if name in ARGS_TYPES and name not in given
    ]
    return msgspec.structs.replace(profile, plugins=plugins, plugin_config=tuple(entries))


def default_plugins(gates: FeatureGates) -> Plugins:
    """The default set of the gates' edition, with the plugins that gates add."""
    edition = gates.edition
    weights = dict(edition.plugins)
    for gate, added in edition.gated_plugins.items():
        if gates.enabled(gate):
            weights |= added
    names = list(weights)
    for name, follower in edition.plugins_before.items():
        if name in weights:
            names.remove(name)
            names.insert(names.index(follower), name)
    refs = tuple(PluginRef(name, weights[name]) for name in names)
    return Plugins(multi_point=PluginSet(enabled=refs))


def leave_to_extenders(
    profile: ProfileConfig, extenders: Sequence[ExtenderConfig]
) -> ProfileConfig:
    """A complete profile whose NodeResourcesFit ignores resources that extenders manage.

    Spec 09 §3.5.5: they replace the `ignoredResources` of the configuration.
    """
    names = resources_ignored_by_scheduler(extenders)
    if not names:
        return profile
    entries = [_ignoring(entry, names) for entry in profile.plugin_config]
    if not any(isinstance(entry.args, NodeResourcesFitArgs) for entry in entries):
        raise ConfigError(
            "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
        )
    return msgspec.structs.replace(profile, plugin_config=tuple(entries))


def _complete_entry(entry: PluginConfig, gates: FeatureGates) -> PluginConfig:
    if entry.name not in ARGS_TYPES:
        return msgspec.structs.replace(entry, args=plain(entry.args))
    if isinstance(entry.args, PluginArgs):
        return msgspec.structs.replace(entry, args=complete_args(entry.args, gates))
    args, errors = decode_args(entry.name, entry.args, gates)
    if errors:
        problems = f"strict decoding error: {', '.join(errors)}"
        raise ConfigError(f"decoding args for plugin {entry.name}: {problems}")
    return msgspec.structs.replace(entry, args=args)


def _ignoring(entry: PluginConfig, names: tuple[str, ...]) -> PluginConfig:
    if not isinstance(entry.args, NodeResourcesFitArgs):
        return entry
    args = msgspec.structs.replace(entry.args, ignored_resources=names)
    return msgspec.structs.replace(entry, args=args)
