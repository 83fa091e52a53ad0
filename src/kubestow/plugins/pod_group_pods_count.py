"""Prefers the placement that takes most members of a group (spec 11 §8.4)."""

from collections.abc import Sequence
from typing import ClassVar

from kubestow.errors import PluginError
from kubestow.framework.group_cycle import Assignments, GroupCycle
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE


class PodGroupPodsCount:
    name: ClassVar[str] = "PodGroupPodsCount"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score_placement(self, cycle: GroupCycle, assignments: Assignments) -> int:
        return cycle.known_members().scheduled_count + len(assignments.pods)

    def normalize_placements(self, cycle: GroupCycle, scores: Sequence[int]) -> Sequence[int]:
        most = max(scores)
        if most == 0:
            raise PluginError(
                "no pods from pod group are assigned to any of the candidate placements"
            )
        return [score * MAX_NODE_SCORE // most for score in scores]
