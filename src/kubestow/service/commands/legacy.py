"""`kubestow simulate --compatibility v1.9`: the rules of its flags, and the run."""

import os
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kubestow.api.decode import is_map
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.config.legacy import (
    Policy,
    load_policy,
    policy_in_config_map,
    provider_policy,
)
from kubestow.engine.legacy.algorithm import Algorithm, build_algorithm
from kubestow.engine.legacy.decide_v1_9 import LegacyDecision
from kubestow.errors import ConfigError
from kubestow.service.commands.compatibility import AlgorithmOptions
from kubestow.service.output import stderr
from kubestow.simulator.legacy.simulation import LegacySimulation


def v1_9_simulation(
    documents: Sequence[Document],
    config_maps: Sequence[Document],
    options: AlgorithmOptions,
) -> Callable[[Callable[[LegacyDecision], None]], LegacySimulation]:
    """A function that makes the simulation, to be called in the loop it runs in."""
    algorithm = legacy_algorithm(options, [document.raw for document in config_maps])
    return lambda note: LegacySimulation(
        documents, algorithm, scheduler_name=options.scheduler_name, on_decision=note
    )


def legacy_algorithm(
    options: AlgorithmOptions,
    documents: Sequence[JsonObject],
    environment: Mapping[str, str] = os.environ,
) -> Algorithm:
    """The rules of the flags; a policy ConfigMap must be among the documents."""
    policy = _policy_of(options, documents)
    try:
        algorithm = build_algorithm(
            policy,
            hard_pod_affinity_weight=options.hard_pod_affinity_symmetric_weight,
            environment=environment,
        )
    except ConfigError as error:
        if options.source == "provider":
            raise
        raise ConfigError(f"couldn't create scheduler from policy: {error}") from error
    return _without_binders(algorithm)


def _without_binders(algorithm: Algorithm) -> Algorithm:
    """Extenders filter and score, but do not bind: they would do so in a real cluster."""
    if not any(extender.bind_verb for extender in algorithm.extenders):
        return algorithm
    stderr().print("Extenders are not asked to bind in a simulation.")
    extenders = (msgspec.structs.replace(one, bind_verb="") for one in algorithm.extenders)
    return algorithm._replace(extenders=tuple(extenders))


def _policy_of(options: AlgorithmOptions, documents: Sequence[JsonObject]) -> Policy:
    match options.source:
        case "file":
            return load_policy(options.policy_config_file)
        case "configmap":
            namespace, name = options.policy_configmap_namespace, options.policy_configmap
            data = _config_map_data(documents, namespace, name)
            return policy_in_config_map(data, namespace=namespace, name=name)
        case "provider":
            return provider_policy(options.algorithm_provider)


def _config_map_data(
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
