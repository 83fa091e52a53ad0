"""The plugins of v1.37: those of the core, and those that it has in another form."""

from typing import Final

from kubestow.editions.v1_37.plugins.default_binder import DefaultBinderV137
from kubestow.editions.v1_37.plugins.deferred_pod_scheduling import DeferredPodScheduling
from kubestow.editions.v1_37.plugins.gang_scheduling import GangSchedulingV137
from kubestow.editions.v1_37.plugins.group_claims import GivesUpForGroups
from kubestow.editions.v1_37.plugins.group_preemption.for_groups import PreemptsForGroups
from kubestow.editions.v1_37.plugins.image_locality import ImageLocalityV137
from kubestow.editions.v1_37.plugins.inter_pod_affinity import InterPodAffinityV137
from kubestow.editions.v1_37.plugins.node_declared_features import NodeDeclaredFeaturesV137
from kubestow.editions.v1_37.plugins.node_name import NodeNameV137
from kubestow.editions.v1_37.plugins.node_ports import NodePortsV137
from kubestow.editions.v1_37.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocationV137,
)
from kubestow.editions.v1_37.plugins.node_resources_fit import NodeResourcesFitV137
from kubestow.editions.v1_37.plugins.node_unschedulable import NodeUnschedulableV137
from kubestow.editions.v1_37.plugins.node_volume_limits import NodeVolumeLimitsV137
from kubestow.editions.v1_37.plugins.placements import (
    PodGroupPodsCountV137,
    TopologyPlacementGeneratorV137,
)
from kubestow.editions.v1_37.plugins.pod_topology_spread import PodTopologySpreadV137
from kubestow.editions.v1_37.plugins.scheduling_gates import SchedulingGatesV137
from kubestow.editions.v1_37.plugins.taint_toleration import TaintTolerationV137
from kubestow.editions.v1_37.plugins.volume_restrictions import VolumeRestrictionsV137
from kubestow.plugins.registry import REGISTRY, PluginClass

_CLASSES: Final[tuple[PluginClass, ...]] = (
    SchedulingGatesV137,
    NodeNameV137,
    NodeUnschedulableV137,
    TaintTolerationV137,
    NodePortsV137,
    DeferredPodScheduling,
    NodeResourcesFitV137,
    VolumeRestrictionsV137,
    NodeVolumeLimitsV137,
    PodTopologySpreadV137,
    InterPodAffinityV137,
    GivesUpForGroups,
    PreemptsForGroups,
    NodeResourcesBalancedAllocationV137,
    ImageLocalityV137,
    DefaultBinderV137,
    NodeDeclaredFeaturesV137,
    GangSchedulingV137,
    TopologyPlacementGeneratorV137,
    PodGroupPodsCountV137,
)

REGISTRY_137: Final = REGISTRY | {plugin.name: plugin for plugin in _CLASSES}
