"""The whole configuration of a scheduler process (spec 09 §3.2).

What a user leaves out has its default here, except in the profiles: they stay as written until
`defaults.complete_profile` merges the default plugins and arguments into them, which depends on the
feature gates.
"""

import msgspec

from kubestow.config.connection import ClientConnectionConfig, LeaderElectionConfig
from kubestow.config.extenders import ExtenderConfig
from kubestow.config.profile import ProfileConfig
from kubestow.config.scalars import Int32, Int64


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields are in the order in which `/configz` shows them."""

    parallelism: Int32 = 16
    leader_election: LeaderElectionConfig = LeaderElectionConfig()
    client_connection: ClientConnectionConfig = ClientConnectionConfig()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    # How many percent of the nodes are enough to choose from; 0 lets the cluster's size decide.
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfig, ...] = (ProfileConfig(),)
    extenders: tuple[ExtenderConfig, ...] = ()
    # With leader election: whether a standby waits with its watches until it leads.
    delay_cache_until_active: bool = False
