"""Placements of groups that may be parts of a tree (spec 12 §15.4, §17)."""

from collections.abc import Sequence

from kubestow.api.pod import Pod
from kubestow.editions.v1_37.engine.groups.tree import GroupCycleV137
from kubestow.editions.v1_37.groups.state import groups_of
from kubestow.errors import CacheError, PluginError
from kubestow.framework.group_cycle import Assignments, GroupCycle, GroupPlacement
from kubestow.framework.handle import Handle
from kubestow.plugins.pod_group_pods_count import PodGroupPodsCount
from kubestow.plugins.topology_placement_generator import TopologyPlacementGenerator


class TopologyPlacementGeneratorV137(TopologyPlacementGenerator):
    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._trees = groups_of(handle.groups, handle.objects)

    def generate_placements(
        self, cycle: GroupCycle, parent: GroupPlacement
    ) -> Sequence[GroupPlacement]:
        assert isinstance(cycle, GroupCycleV137), cycle
        if not self._trees.has_trees:
            return super().generate_placements(cycle, parent)
        key = self._trees.topology_key_of(cycle.node)
        if key is None:
            return [parent]
        required = None
        scheduled = self._scheduled(cycle)
        if scheduled:
            try:
                required = self._domain_of(scheduled, (key,))
            except CacheError as error:
                raise PluginError(
                    f"cannot determine domain for already scheduled pods: {error}"
                ) from error
        return self._placements(parent, (key,), required, 0)

    def _scheduled(self, cycle: GroupCycleV137) -> list[Pod]:
        found = (cycle.by_key.get(leaf) for leaf in self._trees.leaves_of(cycle.node))
        return [pod for members in found if members for pod in members.scheduled_pods()]


class PodGroupPodsCountV137(PodGroupPodsCount):
    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._trees = groups_of(handle.groups, handle.objects)

    def score_placement(self, cycle: GroupCycle, assignments: Assignments) -> int:
        assert isinstance(cycle, GroupCycleV137), cycle
        found = (cycle.by_key.get(leaf) for leaf in self._trees.leaves_of(cycle.node))
        scheduled = sum(members.scheduled_count for members in found if members)
        return scheduled + len(assignments.pods)
