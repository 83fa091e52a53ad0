"""Which scheduler decides: today's, or an older one, with the flags the older one had (spec 09
§13.1)."""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from kubestow.api.decode import is_map
from kubestow.api.meta import JsonObject
from kubestow.config.policy import (
    AlgorithmOptions,
    Policy,
    load_policy,
    policy_in_config_map,
    provider_policy,
)
from kubestow.engine.legacy.algorithm import Algorithm, build_algorithm
from kubestow.errors import ConfigError
from kubestow.service.output import stderr


class Compatibility(StrEnum):
    """The version whose decisions are made."""

    TODAY = "v1.36"
    V1_20 = "v1.20"
    V1_17 = "v1.17"
    V1_9 = "v1.9"


def legacy_algorithm(
    options: AlgorithmOptions,
    documents: Sequence[JsonObject],
    environment: Mapping[str, str] = os.environ,
) -> Algorithm:
    """The rules the flags ask for; a policy ConfigMap is looked for among the documents."""
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
    """Extenders are asked as always, only not to bind: they would do so in a real cluster."""
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
