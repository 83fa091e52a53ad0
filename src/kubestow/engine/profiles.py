"""Builds the profiles a configuration asks for: merges defaults, makes plugins, checks the set."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import (
    DEFAULT_PLUGINS,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
    merge_plugins,
)
from kubestow.errors import ConfigError
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Plugin
from kubestow.framework.profile import Profile, enabled_names, plugin_name
from kubestow.plugins.registry import PluginClass

Registry = Mapping[str, PluginClass]


def build_profiles(
    configs: Iterable[ProfileConfig],
    registry: Registry,
    make_handle: Callable[[str], Handle],
    gates: FeatureGates = DEFAULT_GATES,
) -> dict[str, Profile]:
    """Profiles by scheduler name, in the order of the configuration (spec 04 §2.4, §2.5)."""
    profiles: dict[str, Profile] = {}
    first: _QueueSort | None = None
    for config in configs:
        name = config.scheduler_name
        profile = _build_profile(config, registry, make_handle(name), gates)
        if not name:
            raise ConfigError("scheduler name is needed")
        if name in profiles:
            raise ConfigError(f'duplicate profile with scheduler name "{name}"')
        queue_sort = _QueueSort.of(profile, config)
        first = first or queue_sort
        _check_same_queue_sort(name, first, queue_sort)
        profiles[name] = profile
    if not profiles:
        raise ConfigError("at least one profile is required")
    return profiles


def default_plugins(gates: FeatureGates) -> Plugins:
    """The default set, less what a gate that is off takes out."""
    if gates.enabled("NodeDeclaredFeatures"):
        return DEFAULT_PLUGINS
    enabled = tuple(
        ref for ref in DEFAULT_PLUGINS.multi_point.enabled if ref.name != "NodeDeclaredFeatures"
    )
    return Plugins(multi_point=PluginSet(enabled=enabled))


def _build_profile(
    config: ProfileConfig, registry: Registry, handle: Handle, gates: FeatureGates
) -> Profile:
    merged = merge_plugins(default_plugins(gates), config.plugins)
    args: dict[str, dict[str, Any]] = {}
    for entry in config.plugin_config:
        if entry.name in args:
            raise ConfigError(f"repeated config for plugin {entry.name}")
        args[entry.name] = entry.args
    plugins: dict[str, Plugin] = {}
    for name in enabled_names(merged):
        plugin_class = registry.get(name)
        if plugin_class is not None:
            plugins[name] = _make_plugin(plugin_class, args.get(name, {}), handle)
    handle.profile = Profile(msgspec.structs.replace(config, plugins=merged), plugins)
    return handle.profile


def _make_plugin(plugin_class: PluginClass, raw_args: dict[str, Any], handle: Handle) -> Plugin:
    name = plugin_class.name
    try:
        return plugin_class(_decode_args(plugin_class, raw_args), handle)
    except ConfigError as error:
        raise ConfigError(f'initializing plugin "{name}": {error}') from error


def _decode_args(plugin_class: PluginClass, raw_args: dict[str, Any]) -> object:
    args_type = plugin_class.args_type
    if args_type is None:
        return raw_args
    # The arguments may say what they are; which plugin they are for is known already.
    fields = {key: raw_args[key] for key in raw_args if key not in ("apiVersion", "kind")}
    try:
        return msgspec.convert(fields, args_type)
    except msgspec.ValidationError as error:
        raise ConfigError(f"decoding args: {error}") from error


class _QueueSort(NamedTuple):
    """What orders the queue of a profile; there is one queue, so it must be the same for all."""

    name: str
    args: Mapping[str, Any] | None

    @classmethod
    def of(cls, profile: Profile, config: ProfileConfig) -> "_QueueSort":
        name = plugin_name(profile.queue_sort)
        args = {entry.name: entry.args for entry in config.plugin_config}
        return cls(name, args.get(name))


def _check_same_queue_sort(profile_name: str, first: _QueueSort, other: _QueueSort) -> None:
    if first.name != other.name:
        raise ConfigError(
            f'different queue sort plugins for profile "{profile_name}": "{other.name}", '
            f'first: "{first.name}"'
        )
    if first.args != other.args:
        raise ConfigError(f'different queue sort plugin args for profile "{profile_name}"')


def without_unknown(plugins: Plugins, registry: Registry) -> Plugins:
    """The plugins less those the registry does not have, for a registry that is a part of the
    whole."""

    def known(plugin_set: PluginSet) -> PluginSet:
        enabled: tuple[PluginRef, ...] = tuple(
            ref for ref in plugin_set.enabled if ref.name in registry
        )
        return PluginSet(enabled=enabled, disabled=plugin_set.disabled)

    return Plugins(**{field: known(getattr(plugins, field)) for field in Plugins.__struct_fields__})
