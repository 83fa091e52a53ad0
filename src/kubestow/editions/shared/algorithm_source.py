"""Where a scheduler has its rules from: a provider, a file or a ConfigMap (spec 09 §13.1)."""

from collections.abc import Mapping

from kubestow.api.config_map import ConfigMap
from kubestow.cluster.client import ClusterClient
from kubestow.editions.flags import AlgorithmOptions
from kubestow.editions.shared.policy import (
    Policy,
    load_policy,
    policy_in_config_map,
    provider_policy,
)
from kubestow.errors import ApiError, ConfigError, NotFoundError


async def find_config_map(options: AlgorithmOptions, client: ClusterClient) -> ConfigMap | None:
    """The ConfigMap that the flags name; None if they name none, or it is not there."""
    if options.source != "configmap":
        return None
    namespace, name = options.policy_configmap_namespace, options.policy_configmap
    try:
        return await client.get(ConfigMap, namespace, name)
    except NotFoundError:
        return None
    except ApiError as error:
        raise ConfigError(
            f"couldn't get policy config map {namespace}/{name}: {error}; the scheduler needs the "
            "right to get and watch it"
        ) from error


def policy_of(options: AlgorithmOptions, data: Mapping[str, str] | None) -> Policy:
    """The Policy of the flags, with the data of its ConfigMap; raises ConfigError."""
    match options.source:
        case "file":
            return load_policy(options.policy_config_file)
        case "configmap":
            return policy_in_config_map(
                data,
                namespace=options.policy_configmap_namespace,
                name=options.policy_configmap,
            )
        case "provider":
            return provider_policy(options.algorithm_provider)
