"""The scheduler of a case: an edition with its configuration."""

from collections.abc import Iterator
from typing import NamedTuple

import yaml

from kubestow.api.yaml_text import value_of, yaml_nodes
from kubestow.cluster.documents import is_list, is_object
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.comparison.schedulers import todays_scheduler
from kubestow.simulator.comparison.task import SchedulerVariant
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.scenario.run import MakeCluster


class CaseScheduler(NamedTuple):
    """What a simulation builds its scheduler of; `is_modern`: it can be explained."""

    config: SchedulerConfig
    registry: Registry = REGISTRY
    gates: FeatureGates = DEFAULT_GATES
    factory: type[SchedulerFactory] = SchedulerFactory
    make_cluster: MakeCluster | None = None
    is_modern: bool = True


def plugin_references(config: str) -> list[str]:
    """What a configuration names as module:Class, whichever version it is of; each once."""
    try:
        values = [value_of(node, loader) for node, loader in yaml_nodes(config)]
    except yaml.YAMLError:
        return []  # It is refused where it is decoded.
    return list(dict.fromkeys(name for name in _names(values) if ":" in name))


def _names(value: object) -> Iterator[str]:
    if is_list(value):
        for each in value:
            yield from _names(each)
    elif is_object(value):
        name = value.get("name")
        if isinstance(name, str):
            yield name
        yield from _names(list(value.values()))


def check_variant(variant: SchedulerVariant, gates: tuple[str, ...]) -> None:
    """ConfigError if the scheduler cannot be built."""
    _scheduler(variant, gates)


def scheduler_of(case: PlacementCase) -> CaseScheduler:
    """Raises ConfigError that names the file."""
    return _scheduler(case.variant, case.gates)


def _scheduler(variant: SchedulerVariant, gates: tuple[str, ...]) -> CaseScheduler:
    edition = edition_named(variant.version)
    if edition.is_modern:
        found = todays_scheduler(variant, parse_gates(gates, edition))
        return CaseScheduler(found.config, found.registry, found.gates, found.factory)
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions import comparing

    if edition.has_plugins:
        found = comparing.scheduler_of_edition(variant)
        return CaseScheduler(
            found.config, found.registry, found.gates, found.factory, is_modern=False
        )
    make_cluster = comparing.cluster_of_v1_9(variant)
    return CaseScheduler(SchedulerConfig(), make_cluster=make_cluster, is_modern=False)
