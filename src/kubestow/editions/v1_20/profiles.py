"""The default profile of v1.17 and v1.20: plugins at each extension point, in their order.

In v1.17 predicates and priorities were mapped to plugins one by one; in v1.20 plugins were all
there was. VolumeRestrictions and VolumeZone had no PreFilter then, which today's forms may have.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kubestow.api.pod import DEFAULT_SCHEDULER_NAME
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.editions.v1_20 import DEFAULT_POD_TOPOLOGY_SPREAD
from kubestow.errors import ConfigError

DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
_PROVIDERS: Final = (AUTOSCALER_PROVIDER, DEFAULT_PROVIDER)
LEAST_ALLOCATED: Final = "NodeResourcesLeastAllocated"
MOST_ALLOCATED: Final = "NodeResourcesMostAllocated"

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


def default_profile(
    gates: FeatureGates,
    *,
    provider: str = DEFAULT_PROVIDER,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
) -> ProfileConfig:
    """The profile of a provider of the gates' edition; raises ConfigError."""
    if provider not in _PROVIDERS:
        raise ConfigError(
            f'couldn\'t create scheduler using provider "{provider}": algorithm provider '
            f'"{provider}" is not registered; the providers are {", ".join(_PROVIDERS)}'
        )
    scores = dict(gates.edition.scores)
    spread: tuple[PluginConfig, ...] = ()
    if _is_off(DEFAULT_POD_TOPOLOGY_SPREAD, gates):
        scores["SelectorSpread"] = 1
        spread = (_NO_DEFAULT_CONSTRAINTS,)
    if provider == AUTOSCALER_PROVIDER:
        scores = {
            MOST_ALLOCATED if name == LEAST_ALLOCATED else name: weight
            for name, weight in scores.items()
        }
    return ProfileConfig(
        scheduler_name=scheduler_name,
        plugins=plugins_at(gates.edition.filters, scores),
        plugin_config=spread,
    )


def _is_off(name: str, gates: FeatureGates) -> bool:
    return name in gates.edition.gates and not gates.enabled(name)


def plugins_at(filters: Iterable[str], scores: Mapping[str, int]) -> Plugins:
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
