"""The default plugins of v1.17 and v1.20, at their extension points, in their order.

In v1.17 predicates and priorities were mapped to plugins one by one; in v1.20 plugins were all
there was. VolumeRestrictions and VolumeZone had no PreFilter then, which today's forms may have.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kubestow.api.pod import DEFAULT_SCHEDULER_NAME
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.editions.gates import DEFAULT_POD_TOPOLOGY_SPREAD
from kubestow.errors import ConfigError

DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
_PROVIDERS: Final = (AUTOSCALER_PROVIDER, DEFAULT_PROVIDER)
LEAST_ALLOCATED: Final = "NodeResourcesLeastAllocated"
MOST_ALLOCATED: Final = "NodeResourcesMostAllocated"

_FILTERS_120: Final = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "EBSLimits",
    "GCEPDLimits",
    "NodeVolumeLimits",
    "AzureDiskLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
_SCORES_120: Final[Mapping[str, int]] = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    LEAST_ALLOCATED: 1,
    "NodeAffinity": 1,
    "NodePreferAvoidPods": 10000,
    "PodTopologySpread": 2,
    "TaintToleration": 1,
}
# In the order of the predicates they stand for.
_FILTERS_117: Final = (
    "NodeUnschedulable",
    "NodeResourcesFit",
    "NodeName",
    "NodePorts",
    "NodeAffinity",
    "VolumeRestrictions",
    "TaintToleration",
    "EBSLimits",
    "GCEPDLimits",
    "NodeVolumeLimits",
    "AzureDiskLimits",
    "VolumeBinding",
    "VolumeZone",
    "InterPodAffinity",
)
_SCORES_117: Final[Mapping[str, int]] = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    LEAST_ALLOCATED: 1,
    "NodeAffinity": 1,
    "NodePreferAvoidPods": 10000,
    "DefaultPodTopologySpread": 1,
    "TaintToleration": 1,
}
# Plugins of the default profiles that work before Filter and before Score.
_WITH_PRE_FILTER: Final = frozenset(
    (
        "NodeResourcesFit",
        "NodePorts",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeBinding",
        "VolumeRestrictions",
    )
)
_WITH_PRE_SCORE: Final = frozenset(
    (
        "InterPodAffinity",
        "PodTopologySpread",
        "SelectorSpread",
        "DefaultPodTopologySpread",
        "TaintToleration",
        "NodeAffinity",
        "ServiceAffinity",
    )
)


def older_profile(
    version: str,
    gates: Mapping[str, bool],
    *,
    provider: str = DEFAULT_PROVIDER,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
) -> ProfileConfig:
    """The profile of a provider of v1.17 or v1.20; raises ConfigError."""
    if provider not in _PROVIDERS:
        raise ConfigError(
            f'couldn\'t create scheduler using provider "{provider}": algorithm provider '
            f'"{provider}" is not registered; the providers are {", ".join(_PROVIDERS)}'
        )
    filters, scores = (
        (_FILTERS_120, dict(_SCORES_120))
        if version == "v1.20"
        else (_FILTERS_117, dict(_SCORES_117))
    )
    if not gates.get(DEFAULT_POD_TOPOLOGY_SPREAD, True):
        scores["SelectorSpread"] = 1
    if provider == AUTOSCALER_PROVIDER:
        scores = {
            MOST_ALLOCATED if name == LEAST_ALLOCATED else name: weight
            for name, weight in scores.items()
        }
    spread = () if gates.get(DEFAULT_POD_TOPOLOGY_SPREAD, True) else (_NO_DEFAULT_CONSTRAINTS,)
    return ProfileConfig(
        scheduler_name=scheduler_name,
        plugins=older_plugins(filters, scores),
        plugin_config=spread,
    )


def older_plugins(filters: Iterable[str], scores: Mapping[str, int]) -> Plugins:
    """Plugins at exactly these points, without today's defaults."""
    names = tuple(filters)
    binds_volumes = _set("VolumeBinding") if "VolumeBinding" in names else PluginSet()
    return Plugins(
        multi_point=PluginSet(disabled=(PluginRef("*"),)),
        queue_sort=_set("PrioritySort"),
        pre_filter=_set(*(name for name in names if name in _WITH_PRE_FILTER)),
        filter=_set(*names),
        post_filter=_set("DefaultPreemption"),
        pre_score=_set(*(name for name in scores if name in _WITH_PRE_SCORE)),
        score=PluginSet(enabled=tuple(PluginRef(*entry) for entry in scores.items())),
        reserve=binds_volumes,
        pre_bind=binds_volumes,
        bind=_set("DefaultBinder"),
    )


def _set(*names: str) -> PluginSet:
    return PluginSet(enabled=tuple(PluginRef(name) for name in names))


# With the gate off a pod without constraints is spread by SelectorSpread alone.
_NO_DEFAULT_CONSTRAINTS: Final = PluginConfig(
    name="PodTopologySpread", args={"defaultingType": "List"}
)
