"""The arguments of the built-in plugins, with their defaults (spec 09 §3.5).

Not here: decoding and completing them (`arguments`), validating them (`argument_validation`).
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kubestow.api.pod import NodeAffinity, TopologySpreadConstraint
from kubestow.config.scalars import Int32, Int64


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all argument types."""


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    weight: Int64 = 0  # 0 means 1


class UtilizationShapePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    utilization: Int32 = 0
    score: Int32 = 0


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
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadArgs(PluginArgs, frozen=True, kw_only=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class VolumeBindingArgs(PluginArgs, frozen=True, kw_only=True):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


class DefaultPreemptionArgs(PluginArgs, frozen=True, kw_only=True):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(PluginArgs, frozen=True, kw_only=True):
    # Durations as text, such as "10s" or "1ns"; "" where the gate of the field is off.
    filter_timeout: str = "10s"
    binding_timeout: str = "600s"


class GangsArgs(PluginArgs, frozen=True, kw_only=True):
    """The args of the plugin Gangs, which upstream does not have: where it differs from upstream.

    Its kind is not part of the configuration format, so it is decoded like that of an out-of-tree
    plugin.
    """

    evict_for_whole_groups: bool = True
    wait_for_events: bool = True
    ignore_surplus: bool = True
    count_finished: bool = True
    scheduling_timeout: str = "5m"
    join_pod_sets: bool = True
    # Node labels from the widest domain to the narrowest.
    topology_levels: tuple[str, ...] = ()
    evict_whole_gangs: bool = True
    # Further APIs whose groups are read: scheduling.x-k8s.io/v1alpha1, scheduling.k8s.io/v1beta1.
    dialects: tuple[str, ...] = ()


# By the name of the plugin. These kinds are part of the configuration format; any other plugin
# defines its own arguments.
ARGS_TYPES: Final[Mapping[str, type[PluginArgs]]] = {
    args_type.__name__.removesuffix("Args"): args_type
    for args_type in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
