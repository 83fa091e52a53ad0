"""From a Policy to the plugins of v1.17 and v1.20 (spec 09 §13.4).

Missing lists mean the default ones, empty lists none. Rules with arguments (labelsPresence,
serviceAffinity, labelPreference, serviceAntiAffinity) exist with v1.9 only.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kubestow.config.legacy import Policy
from kubestow.config.older_profiles import older_plugins
from kubestow.config.profile import PluginConfig, ProfileConfig
from kubestow.errors import ConfigError

# In the order in which predicates are checked; nothing for those that became taints.
_PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "MaxEBSVolumeCount": ("EBSLimits",),
    "MaxGCEPDVolumeCount": ("GCEPDLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("AzureDiskLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "CheckNodeCondition": (),
    "CheckNodeMemoryPressure": (),
    "CheckNodeDiskPressure": (),
    "CheckNodePIDPressure": (),
}
_MANDATORY: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
_SPREAD: Final = ("SelectorSpreadPriority", "ServiceSpreadingPriority")
# Empty: a constant.
_PRIORITIES: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EqualPriority": "",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "NodeAffinityPriority": "NodeAffinity",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "TaintTolerationPriority": "TaintToleration",
}


def profile_of_policy(
    policy: Policy,
    default: ProfileConfig,
    *,
    version: str,
    hard_pod_affinity_weight: int,
) -> ProfileConfig:
    """The profile that a Policy describes; raises ConfigError.

    `default` has the plugins for lists that the Policy does not have at all.
    """
    _refuse_arguments(policy)
    plugins = default.plugins
    filters = [ref.name for ref in plugins.filter.enabled]
    scores = {ref.name: ref.weight for ref in plugins.score.enabled}
    if policy.predicates is not None:
        filters = _filters({entry.name for entry in policy.predicates})
    if policy.priorities is not None:
        weights = {entry.name: entry.weight for entry in policy.priorities}
        scores = _scores(weights, version)
    config = list(default.plugin_config)
    if "InterPodAffinity" in (*filters, *scores):
        weight = policy.hard_pod_affinity_symmetric_weight or hard_pod_affinity_weight
        args = {"hardPodAffinityWeight": weight}
        config.append(PluginConfig(name="InterPodAffinity", args=args))
    names = {entry.name for entry in policy.priorities or ()}
    if "EvenPodsSpreadPriority" in names and names.isdisjoint(_SPREAD):
        config.append(PluginConfig(name="PodTopologySpread", args={"defaultingType": "List"}))
    return msgspec.structs.replace(
        default, plugins=older_plugins(filters, scores), plugin_config=tuple(config)
    )


def _filters(names: set[str]) -> list[str]:
    _refuse_unknown("Predicate", names, _PREDICATES)
    names = names | set(_MANDATORY)
    found = (plugin for name in _PREDICATES if name in names for plugin in _PREDICATES[name])
    return list(dict.fromkeys(found))


def _scores(weights: Mapping[str, int], version: str) -> dict[str, int]:
    spread = "PodTopologySpread" if version == "v1.20" else "DefaultPodTopologySpread"
    known = _PRIORITIES | dict.fromkeys(_SPREAD, spread)
    _refuse_unknown("Priority", weights, known)
    scores: dict[str, int] = {}
    # By name, and of two that become one plugin the weight of the first stays.
    for name in sorted(weights):
        if known[name]:
            scores.setdefault(known[name], weights[name])
    return scores


def _refuse_unknown(what: str, names: Iterable[str], known: Mapping[str, object]) -> None:
    for name in sorted(names):
        if name not in known:
            raise ConfigError(
                f"Invalid configuration: {what} type not found for {name}; "
                f"known are {', '.join(sorted(known))}"
            )


def _refuse_arguments(policy: Policy) -> None:
    for entry in (*(policy.predicates or ()), *(policy.priorities or ())):
        if entry.argument is not None:
            raise ConfigError(
                f'"{entry.name}" has an argument, which only --compatibility v1.9 supports'
            )
