"""The v1.9 predicates and priorities by the names a Policy uses (spec 05 §16.1).

Custom ones, whose rule is an argument of the Policy, have no fixed name and are made in
`editions.v1_9.engine`.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kubestow.editions.shared.disks import volume_limit
from kubestow.editions.v1_9.plugins.contract import Predicate, Priority
from kubestow.editions.v1_9.plugins.predicates.disk_conflict import NoDiskConflict
from kubestow.editions.v1_9.plugins.predicates.fits_resources import PodFitsResources
from kubestow.editions.v1_9.plugins.predicates.general import GeneralPredicates
from kubestow.editions.v1_9.plugins.predicates.host_name import HostName
from kubestow.editions.v1_9.plugins.predicates.host_ports import PodFitsHostPorts
from kubestow.editions.v1_9.plugins.predicates.inter_pod_affinity import MatchInterPodAffinity
from kubestow.editions.v1_9.plugins.predicates.node_conditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
)
from kubestow.editions.v1_9.plugins.predicates.node_selector import MatchNodeSelector
from kubestow.editions.v1_9.plugins.predicates.taints import PodToleratesNodeTaints
from kubestow.editions.v1_9.plugins.predicates.volume_binding import CheckVolumeBinding
from kubestow.editions.v1_9.plugins.predicates.volume_count import MaxVolumeCount
from kubestow.editions.v1_9.plugins.predicates.volume_zone import NoVolumeZoneConflict
from kubestow.editions.v1_9.plugins.priorities.balanced import BalancedResourceAllocation
from kubestow.editions.v1_9.plugins.priorities.equal import EqualPriority
from kubestow.editions.v1_9.plugins.priorities.image_locality import ImageLocalityPriority
from kubestow.editions.v1_9.plugins.priorities.inter_pod_affinity import InterPodAffinityPriority
from kubestow.editions.v1_9.plugins.priorities.node_affinity import NodeAffinityPriority
from kubestow.editions.v1_9.plugins.priorities.prefer_avoid_pods import NodePreferAvoidPodsPriority
from kubestow.editions.v1_9.plugins.priorities.requested import (
    LeastRequestedPriority,
    MostRequestedPriority,
)
from kubestow.editions.v1_9.plugins.priorities.resource_limits import ResourceLimitsPriority
from kubestow.editions.v1_9.plugins.priorities.selector_spread import SelectorSpreadPriority
from kubestow.editions.v1_9.plugins.priorities.taint_toleration import TaintTolerationPriority


class Settings(NamedTuple):
    """What some rules need besides their name.

    `environment` has the variables of the process: the limits of disks can be set there.
    """

    hard_pod_affinity_weight: int
    environment: Mapping[str, str]


PredicateFactory = Callable[[str, Settings], Predicate]
PriorityFactory = Callable[[str, Settings], Priority]


def _max_ebs(name: str, settings: Settings) -> Predicate:
    return MaxVolumeCount(name, kind="EBS", limit=volume_limit("EBS", settings.environment))


def _max_gce_pd(name: str, settings: Settings) -> Predicate:
    return MaxVolumeCount(name, kind="GCEPD", limit=volume_limit("GCEPD", settings.environment))


def _max_azure(name: str, settings: Settings) -> Predicate:
    limit = volume_limit("AzureDisk", settings.environment)
    return MaxVolumeCount(name, kind="AzureDisk", limit=limit)


def _inter_pod_affinity(name: str, settings: Settings) -> Priority:
    return InterPodAffinityPriority(name, hard_weight=settings.hard_pod_affinity_weight)


def _plain(rule: Callable[[str], Predicate]) -> PredicateFactory:
    return lambda name, settings: rule(name)


def _plain_priority(rule: Callable[[str], Priority]) -> PriorityFactory:
    return lambda name, settings: rule(name)


PREDICATES: Final[Mapping[str, PredicateFactory]] = {
    "CheckNodeCondition": _plain(CheckNodeCondition),
    "CheckNodeDiskPressure": _plain(CheckNodeDiskPressure),
    "CheckNodeMemoryPressure": _plain(CheckNodeMemoryPressure),
    "CheckVolumeBinding": _plain(CheckVolumeBinding),
    "GeneralPredicates": _plain(GeneralPredicates),
    "HostName": _plain(HostName),
    "MatchInterPodAffinity": _plain(MatchInterPodAffinity),
    "MatchNodeSelector": _plain(MatchNodeSelector),
    "MaxAzureDiskVolumeCount": _max_azure,
    "MaxEBSVolumeCount": _max_ebs,
    "MaxGCEPDVolumeCount": _max_gce_pd,
    "NoDiskConflict": _plain(NoDiskConflict),
    "NoVolumeZoneConflict": _plain(NoVolumeZoneConflict),
    "PodFitsHostPorts": _plain(PodFitsHostPorts),
    "PodFitsPorts": _plain(PodFitsHostPorts),  # its name before v1.0
    "PodFitsResources": _plain(PodFitsResources),
    "PodToleratesNodeTaints": _plain(PodToleratesNodeTaints),
}

PRIORITIES: Final[Mapping[str, PriorityFactory]] = {
    "BalancedResourceAllocation": _plain_priority(BalancedResourceAllocation),
    "EqualPriority": _plain_priority(EqualPriority),
    "ImageLocalityPriority": _plain_priority(ImageLocalityPriority),
    "InterPodAffinityPriority": _inter_pod_affinity,
    "LeastRequestedPriority": _plain_priority(LeastRequestedPriority),
    "MostRequestedPriority": _plain_priority(MostRequestedPriority),
    "NodeAffinityPriority": _plain_priority(NodeAffinityPriority),
    "NodePreferAvoidPodsPriority": _plain_priority(NodePreferAvoidPodsPriority),
    "ResourceLimitsPriority": _plain_priority(ResourceLimitsPriority),
    "SelectorSpreadPriority": _plain_priority(SelectorSpreadPriority),
    "ServiceSpreadingPriority": _plain_priority(SelectorSpreadPriority),
    "TaintTolerationPriority": _plain_priority(TaintTolerationPriority),
}
