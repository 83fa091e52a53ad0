"""What the trial of a group found (spec 11 §7.2)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.engine.decision import Decision, Nomination
from kubestow.errors import PluginError
from kubestow.framework.status import Code, Status
from kubestow.queue import QueuedPod

UNSCHEDULABLE_TEXT: Final = "pod group is unschedulable"
GROUP_UNSCHEDULABLE: Final = Status(Code.UNSCHEDULABLE, error=PluginError(UNSCHEDULABLE_TEXT))
WAITING_FOR_PREEMPTION: Final = GROUP_UNSCHEDULABLE.with_reasons(
    "pod group is waiting for preemption to complete"
)


class MemberOutcome(NamedTuple):
    """What the trial found for one member.

    status       None if the member fits; else why not, also where evicting pods makes it fit
    node_name    where it was put for the members after it; empty if it could not be placed
    assumed      the copy that was put there
    permit       the answer of Permit, if it was asked; None is Success
    needs_preemption   whether pods are evicted to make it fit
    """

    queued_pod: QueuedPod
    decision: Decision
    status: Status | None
    nomination: Nomination | None = None
    node_name: str = ""
    assumed: PodInfo | None = None
    permit: Status | None = None
    needs_preemption: bool = False


class GroupOutcome(NamedTuple):
    """What the trial found for all; `status` None if the group can be placed.

    Members beyond those listed were not tried. `is_waiting`: the group fits once pods have been
    evicted. `asks_permit`: Permit was asked for each member that was placed.
    """

    members: Sequence[MemberOutcome]
    status: Status | None
    is_waiting: bool = False
    asks_permit: bool = True

    @property
    def has_victims(self) -> bool:
        return any(member.decision.has_victims for member in self.members)

    @property
    def placed_count(self) -> int:
        """How many members are placed now: none if the group cannot be."""
        return 0 if self.status is not None else sum(bool(each.node_name) for each in self.members)

    def nominated_as(self, other: "GroupOutcome") -> "GroupOutcome":
        """This outcome, each member nominated to the node on which the other trial placed it."""
        node_names = {member.queued_pod.uid: member.node_name for member in other.members}
        return self._replace(
            members=[
                member._replace(
                    nomination=Nomination(node_names.get(member.queued_pod.uid, "")),
                    node_name=node_names.get(member.queued_pod.uid, ""),
                )
                for member in self.members
            ]
        )
