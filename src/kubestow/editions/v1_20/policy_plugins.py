"""From a Policy to the plugins of v1.17 and v1.20 (spec 09 §13.4).

Missing lists mean the default ones, empty lists none. Entries with arguments, whatever their names,
together configure one plugin each: NodeLabel, ServiceAffinity or RequestedToCapacityRatio.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kubestow.config.profile import PluginConfig, ProfileConfig
from kubestow.editions.edition import Edition
from kubestow.editions.shared.policy import Policy, PredicatePolicy, PriorityPolicy
from kubestow.editions.v1_20.profiles import plugins_at
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
    "CheckNodeLabelPresence": ("NodeLabel",),
    "CheckServiceAffinity": ("ServiceAffinity",),
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
_BY_ARGUMENT: Final = ("NodeLabel", "ServiceAffinity", "RequestedToCapacityRatio")
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
    edition: Edition,
    hard_pod_affinity_weight: int,
) -> ProfileConfig:
    """The profile that a Policy describes; raises ConfigError.

    `default` has the plugins for lists that the Policy does not have at all.
    """
    arguments = _Arguments(policy)
    plugins = default.plugins
    filters = [ref.name for ref in plugins.filter.enabled]
    scores = {ref.name: ref.weight for ref in plugins.score.enabled}
    if policy.predicates is not None:
        filters = _filters({_predicate_name(entry) for entry in policy.predicates})
    if policy.priorities is not None:
        scores = _scores(_weights(policy.priorities), edition)
    config = [*default.plugin_config, *arguments.plugin_config()]
    if "InterPodAffinity" in (*filters, *scores):
        weight = policy.hard_pod_affinity_symmetric_weight or hard_pod_affinity_weight
        args = {"hardPodAffinityWeight": weight}
        config.append(PluginConfig(name="InterPodAffinity", args=args))
    names = {entry.name for entry in policy.priorities or ()}
    if "EvenPodsSpreadPriority" in names and names.isdisjoint(_SPREAD):
        config.append(PluginConfig(name="PodTopologySpread", args={"defaultingType": "List"}))
    return msgspec.structs.replace(
        default, plugins=plugins_at(filters, scores), plugin_config=tuple(config)
    )


def _filters(names: set[str]) -> list[str]:
    _refuse_unknown("Predicate", names, _PREDICATES)
    names = names | set(_MANDATORY)
    found = (plugin for name in _PREDICATES if name in names for plugin in _PREDICATES[name])
    return list(dict.fromkeys(found))


def _scores(weights: Mapping[str, int], edition: Edition) -> dict[str, int]:
    spread = next(name for name in edition.scores if name.endswith("PodTopologySpread"))
    by_argument = {name: name for name in _BY_ARGUMENT}
    known = {**_PRIORITIES, **dict.fromkeys(_SPREAD, spread), **by_argument}
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


def _predicate_name(entry: PredicatePolicy) -> str:
    argument = entry.argument
    if argument is None or entry.name in _PREDICATES:
        return entry.name
    if argument.service_affinity is not None:
        return "CheckServiceAffinity"
    return entry.name if argument.labels_presence is None else "CheckNodeLabelPresence"


def _priority_name(entry: PriorityPolicy) -> str:
    argument = entry.argument
    if argument is None or entry.name in (*_PRIORITIES, *_SPREAD):
        return entry.name
    if argument.service_anti_affinity is not None:
        return "ServiceAffinity"
    if argument.label_preference is not None:
        return "NodeLabel"
    is_ratio = argument.requested_to_capacity_ratio_arguments is not None
    return "RequestedToCapacityRatio" if is_ratio else entry.name


def _weights(priorities: Iterable[PriorityPolicy]) -> dict[str, int]:
    """The weight of each priority. Several entries for one plugin add up, and must be equal."""
    weights: dict[str, int] = {}
    first: dict[str, int] = {}
    for entry in priorities:
        name = _priority_name(entry)
        if name not in _BY_ARGUMENT:
            weights[name] = entry.weight
            continue
        if first.setdefault(name, entry.weight) != entry.weight:
            raise ConfigError(
                f"{name} priority {entry.name} has weight {entry.weight}, expected "
                f"{first[name]} as that of the others of its kind"
            )
        weights[name] = weights.get(name, 0) + entry.weight
    return weights


class _Arguments:
    """The arguments of all entries, by the plugin they configure."""

    def __init__(self, policy: Policy) -> None:
        self._of: dict[str, dict[str, list[object]]] = {}
        for predicate in policy.predicates or ():
            argument = predicate.argument
            if argument is not None and argument.service_affinity is not None:
                self._add("ServiceAffinity", "affinityLabels", argument.service_affinity.labels)
            if argument is not None and (presence := argument.labels_presence) is not None:
                field = "presentLabels" if presence.presence else "absentLabels"
                self._add("NodeLabel", field, presence.labels)
        for priority in policy.priorities or ():
            argument = priority.argument
            if argument is None:
                continue
            if (apart := argument.service_anti_affinity) is not None:
                self._add("ServiceAffinity", "antiAffinityLabelsPreference", [apart.label])
            if (wish := argument.label_preference) is not None:
                kind = "present" if wish.presence else "absent"
                self._add("NodeLabel", f"{kind}LabelsPreference", [wish.label])
            if (ratio := argument.requested_to_capacity_ratio_arguments) is not None:
                for field, entries in (("shape", ratio.shape), ("resources", ratio.resources)):
                    self._add("RequestedToCapacityRatio", field, map(msgspec.to_builtins, entries))

    def plugin_config(self) -> list[PluginConfig]:
        return [PluginConfig(name=name, args=args) for name, args in self._of.items()]

    def _add(self, plugin: str, field: str, values: Iterable[object]) -> None:
        self._of.setdefault(plugin, {}).setdefault(field, []).extend(values)
