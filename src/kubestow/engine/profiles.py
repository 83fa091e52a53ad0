"""Builds the profiles of a configuration and their plugins.

Not here: merging in the defaults, decoding and validating arguments (`config`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.group import AS_UPSTREAM, GangOptions
from kubestow.config.argument_validation import validate_args
from kubestow.config.arguments import convert_args
from kubestow.config.defaults import complete_profile, leave_to_extenders
from kubestow.config.extenders import ExtenderConfig
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.field_errors import raise_if_any
from kubestow.config.plugin_args import PluginArgs
from kubestow.config.profile import ProfileConfig, enabled_names
from kubestow.engine.equivalence.row_forms import ROW_FORMS
from kubestow.errors import ConfigError
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Plugin
from kubestow.framework.profile import Profile, check_extension_points, plugin_name
from kubestow.plugins.gangs import Gangs
from kubestow.plugins.registry import PluginClass

Registry = Mapping[str, PluginClass]


def build_profiles(
    configs: Iterable[ProfileConfig],
    registry: Registry,
    make_handle: Callable[[str], Handle],
    gates: FeatureGates = DEFAULT_GATES,
    extenders: Sequence[ExtenderConfig] = (),
) -> dict[str, Profile]:
    """Profiles by scheduler name, in the order of the configuration (spec 04 §2.4, §2.5)."""
    completed = [
        leave_to_extenders(complete_profile(config, gates), extenders) for config in configs
    ]
    try:
        return _build_profiles(completed, registry, make_handle, gates)
    except ConfigError as error:
        raise ConfigError(f"initializing profiles: {error}") from error


def _build_profiles(
    configs: Iterable[ProfileConfig],
    registry: Registry,
    make_handle: Callable[[str], Handle],
    gates: FeatureGates,
) -> dict[str, Profile]:
    profiles: dict[str, Profile] = {}
    first: _QueueSort | None = None
    for config in configs:
        name = config.scheduler_name
        try:
            profile = _build_profile(config, registry, make_handle(name), gates)
        except ConfigError as error:
            raise ConfigError(f"creating profile for scheduler name {name}: {error}") from error
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


def _build_profile(
    config: ProfileConfig, registry: Registry, handle: Handle, gates: FeatureGates
) -> Profile:
    args: dict[str, object] = {}
    for entry in config.plugin_config:
        if entry.name in args:
            raise ConfigError(f"repeated config for plugin {entry.name}")
        args[entry.name] = entry.args
    plugins: dict[str, Plugin] = {}
    for name in enabled_names(config.plugins):
        plugin_class = registry.get(name)
        if plugin_class is not None:
            plugins[name] = _make_plugin(plugin_class, args.get(name, {}), handle, gates)
    handle.profile = Profile(config, plugins, ROW_FORMS)
    return handle.profile


def _make_plugin(
    plugin_class: PluginClass, args: object, handle: Handle, gates: FeatureGates
) -> Plugin:
    name = plugin_class.name
    try:
        plugin = plugin_class(_checked_args(plugin_class, args, gates), handle)
        check_extension_points(plugin)
        return plugin
    except ConfigError as error:
        raise ConfigError(f'initializing plugin "{name}": {error}') from error
    except Exception as error:  # An out-of-tree plugin may raise anything.
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError(f'initializing plugin "{name}": {problem}') from error


def _checked_args(plugin_class: PluginClass, args: object, gates: FeatureGates) -> object:
    args_type = plugin_class.args_type
    # An out-of-tree plugin has its own type, also where it replaces a built-in one.
    if args_type is not None and not isinstance(args, args_type):
        args = convert_args(plugin_class.name, args, args_type)
    if isinstance(args, PluginArgs):
        raise_if_any(validate_args(args, "", gates))
    return args


class _QueueSort(NamedTuple):
    """The order of a profile's pods; there is one queue, so it must be the same for all."""

    name: str
    args: object

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


# --- how groups are scheduled in another way than upstream ---

# Without them there are no groups, or no gangs among them.
NEEDED_GATES: Final = ("GenericWorkload", "GangScheduling")
TOPOLOGY_GATE: Final = "TopologyAwareWorkloadScheduling"


def gang_options(profiles: Mapping[str, Profile], gates: FeatureGates) -> GangOptions:
    """The options of the plugin Gangs; without it, upstream's behaviour.

    Raises ConfigError if gates that it needs are off, or if profiles differ: they share the queue,
    the cache and its groups.
    """
    by_name = {name: _options_of(profile) for name, profile in profiles.items()}
    (first_name, first), *others = by_name.items()
    for name, options in others:
        if options != first:
            raise ConfigError(
                f'the plugin {Gangs.name} must be the same in all profiles; "{name}" has another '
                f'configuration of it than "{first_name}"'
            )
    needed_gates = (*NEEDED_GATES, TOPOLOGY_GATE) if first.topology_levels else NEEDED_GATES
    missing = [gate for gate in needed_gates if not gates.enabled(gate)]
    if first is not AS_UPSTREAM and missing:
        needed = ",".join(f"{gate}=true" for gate in missing)
        raise ConfigError(
            f"the plugin {Gangs.name} is of no use as long as groups of pods are switched off; "
            f"add --feature-gates={needed}"
        )
    return first


def _options_of(profile: Profile) -> GangOptions:
    plugin = profile.plugins.get(Gangs.name)
    return plugin.options if isinstance(plugin, Gangs) else AS_UPSTREAM
