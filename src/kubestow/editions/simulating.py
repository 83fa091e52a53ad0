"""Simulations of editions that are not modern: the rules of their options, and the run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kubestow.api.decode import is_map
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.config.defaults import complete_config
from kubestow.config.extenders import ExtenderConfig
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition
from kubestow.editions.flags import AlgorithmOptions
from kubestow.editions.options import EditionOptions
from kubestow.editions.rules import Rules
from kubestow.editions.v1_9 import EQUIVALENCE_CACHE
from kubestow.editions.v1_9.engine.algorithm import algorithm_of
from kubestow.editions.v1_9.simulator.embedded import cluster_maker
from kubestow.editions.v1_20.service.plugin_config import with_policy
from kubestow.errors import InputError
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.output import stderr
from kubestow.simulator.bench.throughput import MakeSimulation
from kubestow.simulator.scenario.run import MakeCluster, Simulation
from kubestow.simulator.scenario.scenario import Scenario


def v1_9_cluster(choice: EditionOptions, config_maps: Sequence[Document] = ()) -> MakeCluster:
    """A function that makes the cluster of a run, with the v1.9 scheduler."""
    options = choice.algorithm
    algorithm = algorithm_of(options, _policy_data(options, config_maps))
    algorithm = algorithm._replace(extenders=_without_binders(algorithm.extenders))
    return cluster_maker(
        algorithm,
        scheduler_name=options.scheduler_name,
        use_equivalence_cache=choice.gates.enabled(EQUIVALENCE_CACHE),
    )


def default_simulation(edition: Edition) -> MakeSimulation:
    """A function that makes a simulation of that edition with its defaults."""
    choice = EditionOptions(gates=FeatureGates({}, edition))

    def make(scenario: Scenario, config: SchedulerConfig) -> Simulation:
        if edition.is_modern:
            return Simulation(scenario, config, gates=choice.gates)
        if not edition.has_plugins:
            return Simulation(scenario, config, make_cluster=v1_9_cluster(choice))
        rules = rules_of(edition)
        config = msgspec.structs.replace(config, profiles=(choice.profile(),))
        return Simulation(scenario, config, rules.registry, factory=rules.factory)

    return make


def plugins_config(
    path: Path | None, choice: EditionOptions, rules: Rules, config_maps: Sequence[Document]
) -> LoadedPlugins:
    """The configuration of a v1.17 or v1.20 scheduler, and its plugins."""
    if path is not None:
        if choice.algorithm != AlgorithmOptions():
            raise InputError("--config replaces the flags of a Policy, a provider and a name")
        return load_scheduler_config(path, rules.registry, choice.profile().plugins)
    config = complete_config(SchedulerConfig(profiles=(choice.profile(),)))
    config = with_policy(config, choice, _policy_data(choice.algorithm, config_maps))
    extenders = _without_binders(config.extenders)
    return LoadedPlugins(msgspec.structs.replace(config, extenders=extenders), dict(rules.registry))


def _policy_data(
    options: AlgorithmOptions, config_maps: Sequence[Document]
) -> Mapping[str, str] | None:
    if options.source != "configmap":
        return None
    namespace, name = options.policy_configmap_namespace, options.policy_configmap
    return config_map_data([document.raw for document in config_maps], namespace, name)


def _without_binders(extenders: Sequence[ExtenderConfig]) -> tuple[ExtenderConfig, ...]:
    """Extenders filter and score, but do not bind: they would do so in a real cluster."""
    if any(extender.bind_verb for extender in extenders):
        stderr().print("Extenders are not asked to bind in a simulation.")
    return tuple(msgspec.structs.replace(one, bind_verb="") for one in extenders)


def config_map_data(
    documents: Sequence[JsonObject], namespace: str, name: str
) -> Mapping[str, str] | None:
    for document in documents:
        metadata = document.get("metadata")
        if document.get("kind") != "ConfigMap" or not is_map(metadata):
            continue
        if metadata.get("name") == name and metadata.get("namespace", "default") == namespace:
            data = document.get("data")
            return {key: str(value) for key, value in data.items()} if is_map(data) else {}
    return None
