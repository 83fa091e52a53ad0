"""Finds plugins that are not built in.

A configuration enables them in one of two ways:

    name: RackSpread                    an entry point of an installed package:
                                        [project.entry-points."kubestow.plugins"]
                                        RackSpread = "acme_plugins.rack:RackSpread"
    name: acme_plugins.rack:RackSpread  the class itself, from any module that can be imported

From then on the plugin has its own name, in messages and in the rest of the configuration.

Importing a module runs it. A configuration that comes out of a file of data, such as a recording,
therefore loads nothing that the user has not named (`load_named_plugins`).
"""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol, cast

import msgspec

from kubestow.config.profile import (
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
    enabled_names,
)
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ConfigError
from kubestow.plugins.registry import REGISTRY, PluginClass

ENTRY_POINT_GROUP: Final = "kubestow.plugins"


class EntryPoint(Protocol):
    """An entry point of an installed package, as `importlib.metadata` has it."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> str: ...


class LoadedPlugins(NamedTuple):
    """A configuration that names plugins only by their own names, and all plugins it may name."""

    config: SchedulerConfig
    registry: dict[str, PluginClass]


def load_plugins(
    config: SchedulerConfig,
    registry: Mapping[str, PluginClass] = REGISTRY,
    entry_points: Iterable[EntryPoint] | None = None,
) -> LoadedPlugins:
    """Load what the profiles enable and the registry does not have; raises ConfigError.

    A plain name without an entry point is left as it is: building the profile raises the error, and
    names the extension point. `entry_points` are by default those of all installed packages.
    """
    known = dict(registry)
    own_names: dict[str, str] = {}
    for name in dict.fromkeys(_enabled_in(config)):
        if name not in registry:
            plugin = _load_reference(name) if ":" in name else _load_offered(name, entry_points)
            if plugin is not None:
                _register(plugin, known)
                own_names[name] = plugin.name
    return LoadedPlugins(_renamed(config, own_names), known)


def load_named_plugins(
    config: SchedulerConfig,
    named: Iterable[str],
    registry: Mapping[str, PluginClass] = REGISTRY,
    entry_points: Iterable[EntryPoint] | None = None,
) -> LoadedPlugins:
    """Load the plugins that are named, in one of the two ways; ConfigError if others are enabled.

    The configuration may have a plugin's own name, or the name by which it was loaded then.
    """
    known = dict(registry)
    own_names: dict[str, str] = {}
    for name in dict.fromkeys(named):
        plugin = _load_reference(name) if ":" in name else _load_offered(name, entry_points)
        if plugin is None:
            raise ConfigError(
                f'there is no installed plugin "{name}" (entry point of "{ENTRY_POINT_GROUP}"); '
                "name its class as module:Class"
            )
        _register(plugin, known)
        own_names[name] = plugin.name
    others = [
        name
        for name in dict.fromkeys(_enabled_in(config))
        if name not in known and name not in own_names
    ]
    if others:
        raise UnnamedPluginError(others)
    return LoadedPlugins(_renamed(config, own_names), known)


class UnnamedPluginError(ConfigError):
    """`names` are those of plugins that are enabled and not named; none was imported."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"plugins that are not built in: {', '.join(names)}")
        self.names = names


def _enabled_in(config: SchedulerConfig) -> Iterable[str]:
    for profile in config.profiles:
        yield from enabled_names(profile.plugins)


def _register(plugin: PluginClass, registry: dict[str, PluginClass]) -> None:
    if registry.setdefault(plugin.name, plugin) is not plugin:
        raise ConfigError(f"a plugin named {plugin.name} already exists")


# --- finding ---


def _load_offered(name: str, offered: Iterable[EntryPoint] | None) -> PluginClass | None:
    if offered is None:
        offered = _installed()
    found = [entry_point for entry_point in offered if entry_point.name == name]
    if not found:
        return None
    targets = sorted({entry_point.value for entry_point in found})
    if len(targets) > 1:
        raise ConfigError(
            f'cannot load plugin "{name}": several packages offer it as an entry point of '
            f'"{ENTRY_POINT_GROUP}": {", ".join(targets)}; name the class you mean instead'
        )
    what = f'plugin "{name}" (entry point of "{ENTRY_POINT_GROUP}")'
    plugin = _load(targets[0], what)
    if plugin.name != name:
        raise ConfigError(f'cannot load {what}: the class {targets[0]} is named "{plugin.name}"')
    return plugin


def _installed() -> Iterable[EntryPoint]:
    # Imported here: it takes longer than all plugins, and most configurations name no other.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)


def _load_reference(reference: str) -> PluginClass:
    return _load(reference, f'plugin "{reference}"')


def _load(reference: str, what: str) -> PluginClass:
    module_name, _, class_path = reference.partition(":")
    if not module_name or not class_path:
        raise ConfigError(f'cannot load {what}: expected "module:Class", found "{reference}"')
    found: Any = _import(module_name.strip(), what)
    for part in class_path.strip().split("."):
        if not hasattr(found, part):
            raise ConfigError(f"cannot load {what}: {_missing(module_name, class_path, found)}")
        found = getattr(found, part)
    return _checked(found, what)


def _import(module_name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and _is_part_of(module_name, error.name):
            hint = "is it installed, or its folder on PYTHONPATH?"
            raise ConfigError(f'cannot load {what}: no module "{error.name}"; {hint}') from error
        raise ConfigError(f"cannot load {what}: {_failed(module_name, error)}") from error
    except Exception as error:  # Importing runs the module, which may fail in any way.
        raise ConfigError(f"cannot load {what}: {_failed(module_name, error)}") from error


def _is_part_of(module_name: str, missing: str) -> bool:
    """Whether the missing module is the named one, or a package it should be in."""
    return module_name == missing or module_name.startswith(f"{missing}.")


def _failed(module_name: str, error: Exception) -> str:
    return f'importing module "{module_name}" failed: {type(error).__name__}: {error}'


def _missing(module_name: str, class_path: str, found: object) -> str:
    classes = sorted(
        name
        for name, value in vars(found).items()
        if isinstance(value, type) and value.__module__ == module_name
    )
    text = f'module "{module_name}" has no "{class_path}"'
    return f"{text}; its classes are {', '.join(classes)}" if classes else text


def _checked(found: object, what: str) -> PluginClass:
    if not isinstance(found, type):
        raise ConfigError(f"cannot load {what}: found a {type(found).__name__}, expected a class")
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f'cannot load {what}: the class has no "name"; give it a text')
    if not hasattr(found, "args_type"):
        hint = "set it to the type of its arguments, or to None if it takes none"
        raise ConfigError(f'cannot load {what}: the class has no "args_type"; {hint}')
    return cast(PluginClass, found)


# --- renaming ---


def _renamed(config: SchedulerConfig, own_names: Mapping[str, str]) -> SchedulerConfig:
    if all(name == own for name, own in own_names.items()):
        return config
    profiles = tuple(_renamed_profile(profile, own_names) for profile in config.profiles)
    return msgspec.structs.replace(config, profiles=profiles)


def _renamed_profile(profile: ProfileConfig, own_names: Mapping[str, str]) -> ProfileConfig:
    def renamed(refs: Iterable[PluginRef]) -> tuple[PluginRef, ...]:
        return tuple(PluginRef(own_names.get(ref.name, ref.name), ref.weight) for ref in refs)

    def renamed_set(plugin_set: PluginSet) -> PluginSet:
        return PluginSet(enabled=renamed(plugin_set.enabled), disabled=renamed(plugin_set.disabled))

    fields = Plugins.__struct_fields__
    return msgspec.structs.replace(
        profile,
        plugins=Plugins(
            **{field: renamed_set(getattr(profile.plugins, field)) for field in fields}
        ),
        plugin_config=tuple(
            PluginConfig(name=own_names.get(entry.name, entry.name), args=entry.args)
            for entry in profile.plugin_config
        ),
    )
