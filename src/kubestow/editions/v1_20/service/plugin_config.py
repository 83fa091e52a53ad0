"""The configuration of a v1.17 or v1.20 scheduler: a provider, a Policy or a file."""

from collections.abc import Mapping

import msgspec

from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.options import EditionOptions
from kubestow.editions.shared.algorithm_source import policy_of
from kubestow.editions.shared.policy import validate_policy
from kubestow.editions.v1_20.policy_plugins import profile_of_policy


def with_policy(
    config: SchedulerConfig, choice: EditionOptions, config_map_data: Mapping[str, str] | None
) -> SchedulerConfig:
    """The configuration with the plugins and extenders of the Policy that the flags name, if they
    name one; raises ConfigError."""
    options = choice.algorithm
    if options.source == "provider":
        return config
    policy = policy_of(options, config_map_data)
    validate_policy(policy)
    profile = profile_of_policy(
        policy,
        choice.profile(),
        edition=choice.edition,
        hard_pod_affinity_weight=options.hard_pod_affinity_symmetric_weight,
    )
    extenders = tuple(extender.as_config() for extender in policy.extenders)
    return msgspec.structs.replace(config, profiles=(profile,), extenders=extenders)
