"""What an edition is: a version of Kubernetes as data.

Plain values only. `config` makes gates and profiles of them; `editions.rules` has what an edition
computes in another way.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec


class Version(StrEnum):
    """The versions of Kubernetes that have an edition, as users name them; newest first."""

    V1_37 = "v1.37"
    V1_36 = "v1.36"
    V1_20 = "v1.20"
    V1_17 = "v1.17"
    V1_9 = "v1.9"


class ModernVersion(StrEnum):
    """The versions of modern editions (`Edition.is_modern`). Older ones can be simulated, but not
    asked for more."""

    V1_37 = Version.V1_37.value
    V1_36 = Version.V1_36.value


class Stage(StrEnum):
    """How far a feature has come. The values are those of the metrics' label."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Gate(NamedTuple):
    """A feature gate. `needs` are gates that have to be on as well."""

    stage: Stage
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()


class ApiRules(NamedTuple):
    """What an API server does with objects that a scheduler reads (spec 12 §20.2), where versions
    differ without a gate."""

    # A status update that leaves claim statuses out does not remove them.
    keeps_claim_statuses: bool = False
    # The node of a binding has to be a DNS subdomain.
    checks_binding_targets: bool = False


# Plugin → its weight, 0 if it does not score; in the order of execution.
Weights = Mapping[str, int]


class Edition(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a version of Kubernetes has. There is one object of each.

    release         the one whose decisions were recorded; reported where Kubernetes reports its own
    gates           the feature gates that a scheduler reads
    other_gates     those of other components, which are accepted and have no effect
    missing_gates   gates of its scheduler that stay off: what they switch on is not there
    merged_gates    gate of an earlier edition → the one that has its effect here; it cannot be set
    plugins         the default ones, at each extension point that they have
    gated_plugins   gate → default plugins that it adds, after the others
    plugins_before  added plugin → the one before which it stands, instead of after the others
    filters, scores the default plugins where extension points were listed one by one
    pod_group_version   the version of the API that groups of pods have
    absent_points       extension points of configurations that only other editions have
    metric_names    metric → its name in this edition; empty if the edition does not have it
    claim_labels    further labels of the metric of created claims, with their values
    hidden_metrics  deprecated metrics, which are shown only with --show-hidden-metrics-for-version
    entity_metrics  metrics count entities of the queue as well: pods and groups
    taint_rules     DeviceTaintRules are read, if their gate is on
    list_attributes expressions see attributes of devices that are lists, with any gates
    local_counters  counters that devices share are for the nodes that their slice names
    api             what its API server does
    has_plugins     False for a scheduler that is another one altogether
    """

    version: Version
    release: str = ""
    gates: Mapping[str, Gate]
    other_gates: Mapping[str, Gate] = {}
    missing_gates: frozenset[str] = frozenset()
    merged_gates: Mapping[str, str] = {}
    plugins: Weights = {}
    gated_plugins: Mapping[str, Weights] = {}
    plugins_before: Mapping[str, str] = {}
    filters: tuple[str, ...] = ()
    scores: Weights = {}
    pod_group_version: str = "v1alpha2"
    absent_points: frozenset[str] = frozenset(("pod_group_post_filter",))
    metric_names: Mapping[str, str] = {}
    claim_labels: Mapping[str, str] = {}
    hidden_metrics: frozenset[str] = frozenset()
    entity_metrics: bool = False
    taint_rules: bool = False
    list_attributes: bool = False
    local_counters: bool = False
    api: ApiRules = ApiRules()
    has_plugins: bool = True

    @property
    def minor(self) -> int:
        return int(self.version.rpartition(".")[2])

    @property
    def is_modern(self) -> bool:
        """Whether its gates, profiles and flags are read as those of the core. Others have few
        gates, a Policy and flags of their own; the core runs with its defaults under them."""
        return bool(self.plugins)
