"""The scheduler of a variant, from the texts that its task has.

Not here: editions that are not modern (`editions.comparing`), reading files.
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import yaml

from kubestow.api.yaml_text import yaml_nodes
from kubestow.config.decoding import decode_config
from kubestow.config.defaults import complete_config
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import PluginRef, Plugins
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.editions.choosing import rules_of
from kubestow.editions.rules import Rules
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.errors import ConfigError
from kubestow.plugins.loading import load_plugins
from kubestow.simulator.comparison.task import SchedulerVariant

_ERROR_LENGTH_MAX: Final = 1_000
_UNKNOWN: Final = re.compile(r'unknown field "(?:[^"]*\.)?(?P<name>[^"]+)"')


class PluginScheduler(NamedTuple):
    """What a scheduler with plugins is built of."""

    config: SchedulerConfig
    registry: Registry
    factory: type[SchedulerFactory]
    gates: FeatureGates = DEFAULT_GATES


def todays_scheduler(variant: SchedulerVariant, gates: FeatureGates) -> PluginScheduler:
    """Raises ConfigError that names the file."""
    return scheduler_with_plugins(variant, rules_of(gates.edition), gates=gates)


def scheduler_with_plugins(
    variant: SchedulerVariant,
    rules: Rules,
    *,
    default: SchedulerConfig | None = None,
    plugins: Plugins | None = None,
    gates: FeatureGates = DEFAULT_GATES,
) -> PluginScheduler:
    """`default` and `plugins`: what another edition has without a configuration."""
    try:
        config = complete_config(default or SchedulerConfig(), gates)
        if variant.config:
            config = decode_config(variant.config.encode(), gates, plugins)
            check_config(config, gates, is_older=plugins is not None)
        loaded = load_plugins(_with_plugins(config, variant.plugins), rules.registry)
    except ConfigError as error:
        # Upstream's text for duplicate keys has line breaks, and one contains the whole file.
        text = textwrap.shorten(str(error), _ERROR_LENGTH_MAX, placeholder=" …")
        raise ConfigError(f"{_place(variant, text)}{text}") from error
    config = without_binders(loaded.config)
    return PluginScheduler(config, loaded.registry, rules.factory, gates)


def _place(variant: SchedulerVariant, problem: str) -> str:
    """The file and, for an unknown field, the line."""
    if not variant.config_name:
        return ""
    place = f'configuration "{variant.config_name}": '
    unknown = _UNKNOWN.search(problem)
    if unknown is None:
        return place
    # A name that is not known stands there once, also if it is inside of others.
    for root, _ in yaml_nodes(variant.config):
        for key in _keys(root):
            if key.value == unknown["name"]:
                return f"{place}line {key.start_mark.line + 1}: "
    return place


def _keys(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield from _keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _keys(each)


def _with_plugins(config: SchedulerConfig, names: tuple[str, ...]) -> SchedulerConfig:
    """The configuration with further plugins at all their extension points, in every profile."""
    refs = tuple(map(PluginRef, names))
    profiles = list(config.profiles)
    for index, profile in enumerate(profiles):
        points = profile.plugins.multi_point
        points = msgspec.structs.replace(points, enabled=(*points.enabled, *refs))
        plugins = msgspec.structs.replace(profile.plugins, multi_point=points)
        profiles[index] = msgspec.structs.replace(profile, plugins=plugins)
    return msgspec.structs.replace(config, profiles=tuple(profiles))


def without_binders(config: SchedulerConfig) -> SchedulerConfig:
    """Extenders filter and score, but do not bind: they would do so in a real cluster."""
    extenders = tuple(msgspec.structs.replace(one, bind_verb="") for one in config.extenders)
    return msgspec.structs.replace(config, extenders=extenders)
