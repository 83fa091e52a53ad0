"""The configuration of a profile, and its merge with the default plugins (spec 04 §2.4, 09 §3.4).

Not here: the arguments of plugins (`plugin_args`), what a gate changes (`defaults`).
"""

import msgspec

from kubestow.api.pod import DEFAULT_SCHEDULER_NAME
from kubestow.config.scalars import Int32


class PluginRef(msgspec.Struct, frozen=True, rename="camel"):
    """The weight is used at Score only."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The plugins of each extension point. `multiPoint` means every point a plugin implements."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    # As of v1.37.
    pod_group_post_filter: PluginSet = PluginSet()


class PluginConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Arguments for one plugin.

    `args` is a document; in a complete configuration it is an instance of `PluginArgs` for built-in
    plugins that take arguments.
    """

    name: str = ""
    args: object = {}  # msgspec has no union of a struct and a map


class ProfileConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    # None means that of the whole configuration; 0 depends on the cluster's size.
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


def enabled_names(plugins: Plugins) -> list[str]:
    """Every plugin named in any enabled list, once, in order of first mention."""
    # multiPoint is the first field.
    sets: list[PluginSet] = [getattr(plugins, field) for field in Plugins.__struct_fields__]
    return list(dict.fromkeys(ref.name for plugin_set in sets for ref in plugin_set.enabled))


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """The user's plugins merged into the default ones, point by point."""
    return Plugins(
        **{
            field: merge_plugin_set(getattr(default, field), getattr(custom, field))
            for field in Plugins.__struct_fields__
        }
    )


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """A user's entry replaces the default one of the same name; the rest comes after."""
    disabled = (*custom.disabled, *default.disabled)
    disabled_names = {ref.name for ref in disabled}
    replacements: dict[str, int] = {}
    for index, ref in enumerate(custom.enabled):
        replacements.setdefault(ref.name, index)
    enabled: list[PluginRef] = []
    used: set[int] = set()
    if "*" not in disabled_names:
        for ref in default.enabled:
            if ref.name in disabled_names:
                continue
            index = replacements.get(ref.name)
            if index is None:
                enabled.append(ref)
            else:
                enabled.append(custom.enabled[index])
                used.add(index)
    # A duplicate name stays here and fails when the profile is built, as upstream. The first entry
    # replaces the default, so that merging again changes nothing.
    enabled += [ref for index, ref in enumerate(custom.enabled) if index not in used]
    return PluginSet(enabled=tuple(enabled), disabled=disabled)
