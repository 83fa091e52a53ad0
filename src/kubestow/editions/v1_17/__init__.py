"""v1.17: plugins stood for predicates and priorities, one by one.

As v1.20 but for the order in which nodes are visited, a few plugins and texts.
"""

from typing import Final

from kubestow.editions.edition import Edition, Version
from kubestow.editions.v1_20 import EDITION as V1_20

EDITION: Final = Edition(
    version=Version.V1_17,
    gates={},
    # In the order of the predicates they stand for.
    filters=(
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
    ),
    scores={
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesLeastAllocated": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10000,
        "DefaultPodTopologySpread": 1,
        "TaintToleration": 1,
    },
    metric_names={
        **V1_20.metric_names,
        "scheduler_preemption_victims": "scheduler_pod_preemption_victims",
        "scheduler_preemption_attempts_total": "scheduler_total_preemption_attempts",
    },
)
