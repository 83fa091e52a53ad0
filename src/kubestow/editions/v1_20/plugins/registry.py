"""The plugins of v1.17 and v1.20 by name.

Where no other form is listed, the plugin is today's. Today's plugins that are newer can be enabled
by a configuration, too.
"""

from collections.abc import Mapping
from typing import Final

from kubestow.editions.v1_20.plugins.image_locality import ImageLocality120
from kubestow.editions.v1_20.plugins.inter_pod_affinity import (
    InterPodAffinity117,
    InterPodAffinity120,
)
from kubestow.editions.v1_20.plugins.node_label import NodeLabel
from kubestow.editions.v1_20.plugins.pod_topology_spread import PodTopologySpread120
from kubestow.editions.v1_20.plugins.preemption import DefaultPreemption120
from kubestow.editions.v1_20.plugins.prefer_avoid_pods import NodePreferAvoidPods
from kubestow.editions.v1_20.plugins.resources import (
    BalancedAllocation120,
    MostAllocated117,
    NodeResourcesFit117,
    NodeResourcesFit120,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    RequestedToCapacityRatio,
)
from kubestow.editions.v1_20.plugins.selector_spread import DefaultPodTopologySpread, SelectorSpread
from kubestow.editions.v1_20.plugins.service_affinity import ServiceAffinity120
from kubestow.editions.v1_20.plugins.texts import (
    NodeAffinity117,
    NodeAffinity120,
    NodeName120,
    TaintToleration117,
    TaintToleration120,
)
from kubestow.editions.v1_20.plugins.volume_limits import AzureDiskLimits, EBSLimits, GCEPDLimits
from kubestow.editions.v1_20.plugins.volume_zone import VolumeZone120
from kubestow.plugins.registry import REGISTRY, PluginClass

_SHARED: Final[tuple[PluginClass, ...]] = (
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


def _registry(*classes: PluginClass) -> Mapping[str, PluginClass]:
    return REGISTRY | {plugin.name: plugin for plugin in classes}


REGISTRY_120: Final = _registry(
    *_SHARED,
    InterPodAffinity120,
    NodeAffinity120,
    NodeResourcesFit120,
    NodeResourcesMostAllocated,
    SelectorSpread,
    TaintToleration120,
)
REGISTRY_117: Final = _registry(
    *_SHARED,
    DefaultPodTopologySpread,
    InterPodAffinity117,
    MostAllocated117,
    NodeAffinity117,
    NodeResourcesFit117,
    TaintToleration117,
)
