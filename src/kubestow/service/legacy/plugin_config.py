"""The configuration of a v1.17 or v1.20 scheduler: a provider, a Policy or a file."""

from collections.abc import Mapping

import msgspec

from kubestow.config.legacy import validate_policy
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.legacy.policy_plugins import profile_of_policy
from kubestow.service.legacy.algorithm_source import policy_of
from kubestow.service.older_options import OlderOptions


def with_policy(
    config: SchedulerConfig, older: OlderOptions, config_map_data: Mapping[str, str] | None
) -> SchedulerConfig:
    """The configuration with the plugins and extenders of the Policy that the flags name, if they
    name one; raises ConfigError."""
    options = older.algorithm
    if options.source == "provider":
        return config
    policy = policy_of(options, config_map_data)
    validate_policy(policy)
    profile = profile_of_policy(
        policy,
        older.profile(),
        version=older.version,
        hard_pod_affinity_weight=options.hard_pod_affinity_symmetric_weight,
    )
    extenders = tuple(extender.as_config() for extender in policy.extenders)
    return msgspec.structs.replace(config, profiles=(profile,), extenders=extenders)
