"""NodeResourcesBalancedAllocation of v1.37: pods count with their footprint (spec 12 §6)."""

from typing import ClassVar

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod
from kubestow.editions.v1_37.api.requests import footprint
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation


class NodeResourcesBalancedAllocationV137(NodeResourcesBalancedAllocation):
    answers_as: ClassVar[type] = NodeResourcesBalancedAllocation

    def _view(self, pod: Pod) -> ResourceList:
        return footprint(
            pod,
            use_pod_level=self._use_pod_level,
            use_pod_level_status=self._use_pod_level_status,
        )
