"""A configuration written with all defaults (spec 09 §3.7), as YAML with sorted keys or as JSON.

Secrets are left out wherever it is shown: in the log, on `/configz` and the page, in recordings.
A file that is to be read as a configuration again has them (`has_secrets`), and reads back as the
same configuration.
"""

from typing import Any, Final

import msgspec
import yaml

from kubestow.api.meta import JsonObject
from kubestow.config.connection import ClientConnectionConfig, LeaderElectionConfig
from kubestow.config.defaults import complete_config, leave_to_extenders
from kubestow.config.extenders import ExtenderConfig
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.kinds import API_VERSION, CONFIG_KIND
from kubestow.config.plugin_args import (
    ARGS_TYPES,
    DynamicResourcesArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    VolumeBindingArgs,
)
from kubestow.config.profile import (
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    ProfileConfig,
    enabled_names,
)
from kubestow.config.scheduler import SchedulerConfig
from kubestow.redaction import redacted


def write_config(
    config: SchedulerConfig, gates: FeatureGates = DEFAULT_GATES, *, has_secrets: bool = False
) -> str:
    """The configuration as YAML."""
    document = config_document(config, gates, has_secrets=has_secrets)
    return yaml.dump(document, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=2**31)


def configz_document(config: SchedulerConfig, gates: FeatureGates = DEFAULT_GATES) -> JsonObject:
    return {"componentconfig": config_document(config, gates)}


def config_document(
    config: SchedulerConfig, gates: FeatureGates = DEFAULT_GATES, *, has_secrets: bool = False
) -> JsonObject:
    """The complete configuration as a document, with the arguments of enabled plugins."""
    config = complete_config(config, gates)
    document: JsonObject = {
        "kind": CONFIG_KIND,
        "apiVersion": API_VERSION,
        "parallelism": config.parallelism,
        "leaderElection": _leader_election(config.leader_election),
        "clientConnection": _client_connection(config.client_connection),
        "enableProfiling": config.enable_profiling,
        "enableContentionProfiling": config.enable_contention_profiling,
        "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
        "profiles": [
            _profile(leave_to_extenders(profile, config.extenders), gates.edition.absent_points)
            for profile in config.profiles
        ],
    }
    if config.extenders:
        document["extenders"] = [_extender(extender) for extender in config.extenders]
    if config.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return document if has_secrets else _without_secrets(document)


def _without_secrets(document: JsonObject) -> JsonObject:
    """Without keys and passwords of extenders, and what looks like them in arguments of plugins."""
    shown = {**document}
    if "extenders" in document:
        shown["extenders"] = redacted(document["extenders"])
    shown["profiles"] = [
        {
            **profile,
            "pluginConfig": [
                # Arguments of built-in plugins have no secrets; labels in them may have any name.
                entry if entry["name"] in ARGS_TYPES else {**entry, "args": redacted(entry["args"])}
                for entry in profile["pluginConfig"]
            ],
        }
        for profile in document["profiles"]
    ]
    return shown


def _leader_election(config: LeaderElectionConfig) -> JsonObject:
    return {
        "leaderElect": config.leader_elect,
        "leaseDuration": str(config.lease_duration),
        "renewDeadline": str(config.renew_deadline),
        "retryPeriod": str(config.retry_period),
        "resourceLock": config.resource_lock,
        "resourceName": config.resource_name,
        "resourceNamespace": config.resource_namespace,
    }


def _client_connection(config: ClientConnectionConfig) -> JsonObject:
    return {
        "kubeconfig": config.kubeconfig,
        "acceptContentTypes": config.accept_content_types,
        "contentType": config.content_type,
        "qps": int(config.qps) if config.qps == int(config.qps) else config.qps,
        "burst": config.burst,
    }


# --- profiles ---


def _profile(profile: ProfileConfig, absent_points: frozenset[str]) -> JsonObject:
    running = set(enabled_names(profile.plugins))
    entries = sorted(
        (entry for entry in profile.plugin_config if entry.name in running and entry.args),
        key=lambda entry: entry.name,
    )
    document: JsonObject = {"schedulerName": profile.scheduler_name}
    if profile.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    document["plugins"] = {
        field.encode_name: _plugin_set(getattr(profile.plugins, field.name))
        for field in msgspec.structs.fields(Plugins)
        if field.name not in absent_points
    }
    document["pluginConfig"] = [_entry(entry) for entry in entries]
    return document


def _plugin_set(plugin_set: PluginSet) -> JsonObject:
    lists = {"enabled": plugin_set.enabled, "disabled": plugin_set.disabled}
    return {key: [_ref(ref) for ref in refs] for key, refs in lists.items() if refs}


def _ref(ref: PluginRef) -> JsonObject:
    return {"name": ref.name, "weight": ref.weight}


def _entry(entry: PluginConfig) -> JsonObject:
    if not isinstance(entry.args, PluginArgs):
        return {"name": entry.name, "args": entry.args}
    type_fields = {"kind": type(entry.args).__name__, "apiVersion": API_VERSION}
    return {"name": entry.name, "args": type_fields | _args(entry.args)}


# Fields that are left out when they are empty; all others are always shown.
_OMITTED_IF_EMPTY: Final[dict[type[msgspec.Struct], tuple[str, ...]]] = {
    DynamicResourcesArgs: ("filterTimeout", "bindingTimeout"),
    NodeAffinityArgs: ("addedAffinity",),
    NodeResourcesFitArgs: ("ignoredResources", "ignoredResourceGroups"),
    PodTopologySpreadArgs: ("defaultConstraints",),
    VolumeBindingArgs: ("shape",),
}


def _args(args: PluginArgs) -> JsonObject:
    document = _plain(args)
    for key in _OMITTED_IF_EMPTY.get(type(args), ()):
        if document[key] in (None, "", []):  # An empty map is shown.
            del document[key]
    if isinstance(args, NodeResourcesFitArgs):
        document["scoringStrategy"] = _strategy(args.scoring_strategy)
    return document


def _strategy(strategy: ScoringStrategy) -> JsonObject:
    return _nonempty(_plain(strategy))


def _plain(struct: msgspec.Struct) -> Any:
    # By JSON text, because `to_builtins` leaves tuples where a document has lists. The hook is for
    # durations, the only type that msgspec cannot write.
    return msgspec.json.decode(msgspec.json.encode(struct, enc_hook=str))


# --- extenders ---


def _extender(extender: ExtenderConfig) -> JsonObject:
    document = {"urlPrefix": extender.url_prefix} | _nonempty(_plain(extender))
    if extender.tls_config is not None:
        document["tlsConfig"] = _nonempty(_plain(extender.tls_config))
    if extender.managed_resources:
        document["managedResources"] = [
            {"name": resource.name} | _nonempty(_plain(resource))
            for resource in extender.managed_resources
        ]
    return document


def _nonempty(document: JsonObject) -> JsonObject:
    return {key: value for key, value in document.items() if value}


# --- YAML ---


class _Dumper(yaml.SafeDumper):
    """Without YAML aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _write_text(dumper: Any, text: str) -> yaml.ScalarNode:
    # All kinds of line breaks survive only escaped.
    style = None if text and text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)
