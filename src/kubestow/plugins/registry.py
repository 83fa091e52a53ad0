"""Every built-in plugin by name.

Profiles select from it; plugins of users are merged into a copy. The order is the default order of
execution (spec 04 §2.6).
"""

from typing import Any, Final, Protocol

from kubestow.config.plugin_args import PluginArgs
from kubestow.framework.plugin import Plugin
from kubestow.plugins.default_binder import DefaultBinder
from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.gang_scheduling import GangScheduling
from kubestow.plugins.gangs import Gangs
from kubestow.plugins.image_locality import ImageLocality
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.node_affinity import NodeAffinity
from kubestow.plugins.node_declared_features import NodeDeclaredFeatures
from kubestow.plugins.node_name import NodeName
from kubestow.plugins.node_ports import NodePorts
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_unschedulable import NodeUnschedulable
from kubestow.plugins.node_volume_limits import NodeVolumeLimits
from kubestow.plugins.pod_group_pods_count import PodGroupPodsCount
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.plugins.priority_sort import PrioritySort
from kubestow.plugins.scheduling_gates import SchedulingGates
from kubestow.plugins.taint_toleration import TaintToleration
from kubestow.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.plugins.volume_restrictions import VolumeRestrictions
from kubestow.plugins.volume_zone import VolumeZone


class PluginClass(Protocol):
    """What building a profile needs of a plugin's class.

    `args_type` is the type its arguments decode to; None if it takes none.
    """

    @property
    def name(self) -> str: ...

    @property
    def args_type(self) -> type[PluginArgs] | None: ...

    # Any: every plugin has its own type of arguments, which this map cannot express.
    def __call__(self, args: Any, handle: Any) -> Plugin: ...


class LoadAwareClass:
    """The plugin LoadAware, loaded when a profile enables it: a scheduler without it, which is the
    default, does without its modules."""

    name: str = "LoadAware"

    @property
    def args_type(self) -> type[PluginArgs]:
        from kubestow.config.load_aware_args import LoadAwareArgs

        return LoadAwareArgs

    def __call__(self, args: Any, handle: Any) -> Plugin:
        from kubestow.plugins.load_aware import LoadAware

        return LoadAware(args, handle)


_CLASSES: Final[tuple[PluginClass, ...]] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
    Gangs,
    LoadAwareClass(),
)

REGISTRY: Final[dict[str, PluginClass]] = {plugin.name: plugin for plugin in _CLASSES}
