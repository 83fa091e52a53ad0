"""Configuration files to a complete configuration (spec 09 §3.1).

    bytes ── documents ──► document ── strict ──► structs ── arguments, defaults ──► complete

Decoding is strict, and one error has everything strict decoding finds. Validation (`validation`)
comes later, because flags may change a few values before it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kubestow.api.decode import is_list, is_map, quoted
from kubestow.config.arguments import decode_args
from kubestow.config.defaults import complete_config
from kubestow.config.documents import read_document, without_keys
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.kinds import API_VERSION, CONFIG_KIND, check_registered
from kubestow.config.plugin_args import ARGS_TYPES
from kubestow.config.profile import PluginConfig, Plugins, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.strict import clean, convert
from kubestow.errors import ConfigError
from kubestow.files.reading import read_file
from kubestow.redaction import redacted

_TYPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    CONFIG_KIND: SchedulerConfig,
    **{args_type.__name__: args_type for args_type in ARGS_TYPES.values()},
}


def load_config(
    path: str | Path, gates: FeatureGates = DEFAULT_GATES, plugins: Plugins | None = None
) -> SchedulerConfig:
    """The configuration in a file, complete but not validated; raises ConfigError. `plugins` are
    the default ones of an older version."""
    try:
        raw = read_file(path)
    except OSError as error:
        raise ConfigError(f"open {path}: {(error.strerror or str(error)).lower()}") from error
    return decode_config(raw, gates, plugins)


def decode_config(
    raw: bytes, gates: FeatureGates = DEFAULT_GATES, plugins: Plugins | None = None
) -> SchedulerConfig:
    """The configuration in a YAML or JSON text, complete but not validated; raises ConfigError."""
    value, duplicate_keys = read_document(raw)
    document = _typed_document(value, raw)
    kind: str = document["kind"]
    cleaned, errors = clean(without_keys(document, "apiVersion", "kind"), _TYPES[kind])
    if duplicate_keys:
        # One error for all keys.
        errors.insert(0, "\n  ".join(("yaml: unmarshal errors:", *duplicate_keys)))
    if kind != CONFIG_KIND:
        _raise_strict(errors)
        raise ConfigError(f"couldn't decode as {CONFIG_KIND}, got {API_VERSION}, Kind={kind}: ")
    _fill_dependent(cleaned)
    config = convert(cleaned, SchedulerConfig, kind=kind)
    profiles = tuple(
        _decode_profile(profile, f".profiles[{index}]", gates, errors)
        for index, profile in enumerate(config.profiles)
    )
    _raise_strict(errors)
    return complete_config(msgspec.structs.replace(config, profiles=profiles), gates, plugins)


def _typed_document(value: object, raw: bytes) -> dict[str, Any]:
    """The document, which must have a registered apiVersion and kind."""
    if value is not None and not is_map(value):
        problem = f"json parse error: found {quoted(value)}, expected a map"
        raise ConfigError(f"couldn't get version/kind; {problem}")
    document: dict[str, Any] = value or {}
    for field, called in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        found = document.get(field)
        if not found:
            raise ConfigError(f"Object '{called}' is missing in '{_quotable(document, raw)}'")
        if not isinstance(found, str):
            problem = f"json parse error: {field} is {quoted(found)}, expected a string"
            raise ConfigError(f"couldn't get version/kind; {problem}")
    check_registered(document["apiVersion"], document["kind"])
    return document


def _quotable(document: dict[str, Any], raw: bytes) -> str:
    """The text of a document; one that has secrets as JSON, without them."""
    shown = redacted(document)
    return raw.decode() if shown == document else json.dumps(shown, default=str)


def _fill_dependent(document: dict[str, Any]) -> None:
    """Defaults that depend on other fields."""
    document.setdefault("enableContentionProfiling", document.get("enableProfiling", True))
    profiles = document.get("profiles")
    if is_list(profiles) and len(profiles) > 1:
        # Spec 09 §3.4: only a single profile may leave its name out.
        for profile in profiles:
            if is_map(profile):
                profile.setdefault("schedulerName", "")


def _decode_profile(
    profile: ProfileConfig, path: str, gates: FeatureGates, errors: list[str]
) -> ProfileConfig:
    entries: list[PluginConfig] = []
    for index, entry in enumerate(profile.plugin_config):
        if entry.name in ARGS_TYPES:
            entry = _decode_entry(entry, f"{path}.pluginConfig[{index}]", gates, errors)
        entries.append(entry)
    return msgspec.structs.replace(profile, plugin_config=tuple(entries))


def _decode_entry(
    entry: PluginConfig, path: str, gates: FeatureGates, errors: list[str]
) -> PluginConfig:
    try:
        args, unknown = decode_args(entry.name, entry.args, gates)
    except ConfigError as error:
        raise ConfigError(f"decoding {path}: {error}") from error
    if unknown:
        problem = f"decoding args for plugin {entry.name}: {_strict_text(unknown)}"
        errors.append(f"decoding {path}: {_strict_text([problem])}")
    return msgspec.structs.replace(entry, args=args)


def _raise_strict(errors: list[str]) -> None:
    if errors:
        raise ConfigError(_strict_text(errors))


def _strict_text(errors: list[str]) -> str:
    return f"strict decoding error: {', '.join(errors)}"
