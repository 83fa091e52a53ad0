"""Validation of a complete configuration (spec 09 §3.6).

All errors are collected; their order is upstream's, since users compare them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kubestow.config.argument_validation import validate_args
from kubestow.config.connection import (
    validate_client_connection,
    validate_leader_election,
    validate_resource_lock,
)
from kubestow.config.extenders import validate_extenders
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.field_errors import child, duplicate, invalid, raise_if_any, required
from kubestow.config.kinds import API_VERSION
from kubestow.config.plugin_args import PluginArgs
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig

# Plugins of in-tree volumes, removed in the first version of the format.
REMOVED_PLUGINS: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_REMOVED: Final = (
    f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)
_PERCENT: Final = "not in valid range [0-100]"
# Where upstream does not check for removed plugins.
_UNCHECKED_POINTS: Final = ("multiPoint", "placementGenerate", "placementScore")
# Spec 09 §3.5: upstream registers this validator under a wrong name, so that only building the
# plugin finds errors.
_VALIDATED_LATER: Final = ("NodeResourcesFit",)


def check_config(
    config: SchedulerConfig, gates: FeatureGates = DEFAULT_GATES, *, is_older: bool = False
) -> None:
    """Raise ConfigError with all errors of a complete configuration; one of an older version may
    have plugins that were removed since."""
    if is_older:
        config = msgspec.structs.replace(config, profiles=tuple(map(_still_there, config.profiles)))
    raise_if_any(validate_config(config, gates))


def _still_there(profile: ProfileConfig) -> ProfileConfig:
    """The profile without plugins that were removed."""
    filters = profile.plugins.filter
    enabled = tuple(ref for ref in filters.enabled if ref.name not in REMOVED_PLUGINS)
    filters = msgspec.structs.replace(filters, enabled=enabled)
    plugins = msgspec.structs.replace(profile.plugins, filter=filters)
    return msgspec.structs.replace(profile, plugins=plugins)


def validate_config(config: SchedulerConfig, gates: FeatureGates = DEFAULT_GATES) -> list[str]:
    errors = [
        *validate_client_connection(config.client_connection, "clientConnection"),
        *validate_leader_election(config.leader_election, "leaderElection"),
        *validate_resource_lock(config.leader_election, "leaderElection"),
    ]
    if config.parallelism <= 0:
        rule = "should be an integer value greater than zero"
        errors.append(invalid("parallelism", config.parallelism, rule))
    errors += _profiles(config.profiles, gates)
    errors += _percentage(config.percentage_of_nodes_to_score, "")
    if config.pod_initial_backoff_seconds <= 0:
        value = config.pod_initial_backoff_seconds
        errors.append(invalid("podInitialBackoffSeconds", value, "must be greater than 0"))
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid("podMaxBackoffSeconds", config.pod_max_backoff_seconds, rule))
    return errors + validate_extenders(config.extenders, "extenders")


def _profiles(profiles: Sequence[ProfileConfig], gates: FeatureGates) -> list[str]:
    if not profiles:
        return [required("profiles")]
    errors: list[str] = []
    seen: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        errors += _profile(profile, path, gates)
        if profile.scheduler_name in seen:
            # Upstream prints the other profile's path here, which has no fields as JSON.
            errors.append(duplicate(f"{path}.schedulerName", {}))
        seen.add(profile.scheduler_name)
    return errors + _common_queue_sort(profiles)


def _profile(profile: ProfileConfig, path: str, gates: FeatureGates) -> list[str]:
    errors: list[str] = []
    if not profile.scheduler_name:
        errors.append(required(f"{path}.schedulerName"))
    errors += _percentage(profile.percentage_of_nodes_to_score, path)
    for field in msgspec.structs.fields(Plugins):
        if field.encode_name not in _UNCHECKED_POINTS:
            plugin_set: PluginSet = getattr(profile.plugins, field.name)
            at = f"{path}.plugins.{field.encode_name}.enabled"
            errors += [
                invalid(f"{at}[{index}]", ref.name, _REMOVED)
                for index, ref in enumerate(plugin_set.enabled)
                if ref.name in REMOVED_PLUGINS
            ]
    return errors + _plugin_config(profile.plugin_config, f"{path}.pluginConfig", gates)


def _plugin_config(entries: Sequence[PluginConfig], path: str, gates: FeatureGates) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        at = f"{path}[{index}]"
        if entry.name in seen:
            errors.append(duplicate(at, entry.name))
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            errors.append(invalid(at, entry.name, _REMOVED))
        elif isinstance(entry.args, PluginArgs) and entry.name not in _VALIDATED_LATER:
            errors += validate_args(entry.args, f"{at}.args", gates)
    return errors


def _percentage(value: int | None, path: str) -> list[str]:
    if value is None or 0 <= value <= 100:
        return []
    return [invalid(child(path, "percentageOfNodesToScore"), value, _PERCENT)]


def _common_queue_sort(profiles: Sequence[ProfileConfig]) -> list[str]:
    """All profiles share one queue, so its order must be the same."""
    first = profiles[0].plugins.queue_sort
    errors: list[str] = []
    if len(first.enabled) > 1:
        rule = "only one queue sort plugin can be enabled"
        errors.append(invalid("profiles[0].plugins.queueSort.Enabled", len(first.enabled), rule))
    name = first.enabled[0].name if first.enabled else ""
    args = _args_of(profiles[0], name)
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first:
            value = _internal_set(profile.plugins.queue_sort)
            at = f"profiles[{index}].plugins.queueSort"
            errors.append(invalid(at, value, "must be the same for all profiles"))
        for entry in profile.plugin_config:
            if name and entry.name == name and entry.args != args:
                rule = "queueSort must be the same for all profiles"
                errors.append(invalid(f"profiles[{index}].pluginConfig.args", entry.args, rule))
    return errors


def _args_of(profile: ProfileConfig, name: str) -> object:
    return next((entry.args for entry in profile.plugin_config if entry.name == name), None)


def _internal_set(plugin_set: PluginSet) -> dict[str, object]:
    """A set of plugins as upstream prints it: its internal form with Go's field names."""

    def internal(refs: Sequence[PluginRef]) -> list[dict[str, object]] | None:
        return [{"Name": ref.name, "Weight": ref.weight} for ref in refs] or None

    return {"Enabled": internal(plugin_set.enabled), "Disabled": internal(plugin_set.disabled)}
