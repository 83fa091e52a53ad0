"""The plugins of v1.20 by name.

Where no other form is listed, the plugin is today's. Today's plugins that are newer can be enabled
by a configuration, too.
"""

from collections.abc import Mapping
from typing import Final

from kubestow.editions.v1_20.plugins.image_locality import ImageLocality120
from kubestow.editions.v1_20.plugins.inter_pod_affinity import InterPodAffinity120
from kubestow.editions.v1_20.plugins.node_label import NodeLabel
from kubestow.editions.v1_20.plugins.pod_topology_spread import PodTopologySpread120
from kubestow.editions.v1_20.plugins.preemption import DefaultPreemption120
from kubestow.editions.v1_20.plugins.prefer_avoid_pods import NodePreferAvoidPods
from kubestow.editions.v1_20.plugins.resources import (
    BalancedAllocation120,
    NodeResourcesFit120,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from kubestow.editions.v1_20.plugins.selector_spread import SelectorSpread
from kubestow.editions.v1_20.plugins.service_affinity import ServiceAffinity120
from kubestow.editions.v1_20.plugins.texts import (
    NodeAffinity120,
    NodeName120,
    TaintToleration120,
)
from kubestow.editions.v1_20.plugins.volume_limits import AzureDiskLimits, EBSLimits, GCEPDLimits
from kubestow.editions.v1_20.plugins.volume_zone import VolumeZone120
from kubestow.plugins.registry import REGISTRY, PluginClass

SINCE_V1_17: Final[tuple[PluginClass, ...]] = (
    AzureDiskLimits,
    BalancedAllocation120,
    DefaultPreemption120,
    EBSLimits,
    GCEPDLimits,
    ImageLocality120,
    NodeLabel,
    NodeName120,
    NodePreferAvoidPods,
    NodeResourcesLeastAllocated,
    PodTopologySpread120,
    RequestedToCapacityRatio,
    ServiceAffinity120,
    VolumeZone120,
)


def registry_with(*classes: PluginClass) -> Mapping[str, PluginClass]:
    """Today's plugins, with these in the place of those of the same name."""
    return REGISTRY | {plugin.name: plugin for plugin in classes}


REGISTRY_120: Final = registry_with(
    *SINCE_V1_17,
    InterPodAffinity120,
    NodeAffinity120,
    NodeResourcesFit120,
    NodeResourcesMostAllocated,
    SelectorSpread,
    TaintToleration120,
)
