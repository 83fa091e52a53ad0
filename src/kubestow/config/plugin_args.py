"""The arguments of the built-in plugins, with their defaults (spec 09 §3.5)."""

import msgspec

from kubestow.api.pod import NodeAffinity, TopologySpreadConstraint


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all argument types."""


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    weight: int = 0  # 0 means 1


class UtilizationShapePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    utilization: int
    score: int


class RequestedToCapacityRatioParam(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    shape: tuple[UtilizationShapePoint, ...] = ()


CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


class ScoringStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(PluginArgs, frozen=True, kw_only=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True, kw_only=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    added_affinity: NodeAffinity | None = None


class InterPodAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadArgs(PluginArgs, frozen=True, kw_only=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class VolumeBindingArgs(PluginArgs, frozen=True, kw_only=True):
    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


class DefaultPreemptionArgs(PluginArgs, frozen=True, kw_only=True):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class DynamicResourcesArgs(PluginArgs, frozen=True, kw_only=True):
    # Durations as written in the configuration, such as "10s" or "1ns".
    filter_timeout: str = "10s"
    binding_timeout: str = "600s"
