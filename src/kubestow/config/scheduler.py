"""The whole configuration of a scheduler process (spec 09 §3.2).

Missing fields have their defaults here, except in the profiles: `defaults.complete_profile` merges
default plugins and arguments into them, which depend on the feature gates.
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
    # The percentage of the nodes that is enough to choose from; 0 depends on the cluster's size.
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfig, ...] = (ProfileConfig(),)
    extenders: tuple[ExtenderConfig, ...] = ()
    # With leader election: whether a standby starts its watches only when it leads.
    delay_cache_until_active: bool = False
