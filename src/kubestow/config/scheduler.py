"""The whole configuration of a scheduler process, as far as decisions depend on it."""

import msgspec

from kubestow.config.profile import ProfileConfig


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    profiles: tuple[ProfileConfig, ...] = (ProfileConfig(),)
    # How many percent of the nodes are enough to choose from; 0 lets the cluster's size decide.
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
