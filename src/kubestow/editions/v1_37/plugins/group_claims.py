"""Claims that are given back for a group that does not fit (spec 12 §15.5, §18)."""

from collections.abc import Sequence
from typing import Final

from kubestow.api.device import ResourceClaim
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.editions.v1_37.groups.state import groups_of
from kubestow.editions.v1_37.plugins.dynamic_resources.plugin import DynamicResourcesV137
from kubestow.errors import PluginError
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import GroupNominations, TriedMember, UnplacedGroup
from kubestow.framework.status import Status
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.plugin import (
    deallocatable,
    is_in_memory,
)

COMPLETED: Final = Status.unschedulable("deallocation and deletion of ResourceClaims completed")
GROUP_DEALLOCATED: Final = Status.unschedulable("deallocation of PodGroup ResourceClaim completed")
_SILENT: Final = Status.unschedulable()


class GivesUpForGroups(DynamicResourcesV137):
    """The part of the plugin that concerns groups, with the gate GenericWorkload."""

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._trees = groups_of(handle.groups, handle.objects)
        gates = handle.feature_gates
        self._places_groups = gates.enabled("TopologyAwareWorkloadScheduling")

    def pod_group_post_filter(self, group: UnplacedGroup) -> tuple[GroupNominations | None, Status]:
        if group.node.is_composite or self._is_placed(group):
            return None, _SILENT
        tried = [
            (member, attempt)
            for member in group.tried
            if (attempt := self._attempt_of(member)) is not None
        ]
        if not tried:
            raise PluginError("not found")
        given_up: set[str] = set()
        is_all_given_up = True
        for member, attempt in tried:
            is_all_given_up &= self._give_up(member, attempt, given_up)
        if not is_all_given_up and self._group_claims.is_enabled:
            status = self._give_up_for_group(group, [each for _, each in tried], given_up)
            if status is not None:
                return None, status
        return None, COMPLETED

    def _is_placed(self, group: UnplacedGroup) -> bool:
        """Whether the group is tried on some of the nodes only."""
        if not self._places_groups:
            return False
        rules = self._trees.rules(group.node.key)
        return rules is not None and rules.is_constrained

    def _attempt_of(self, member: TriedMember) -> DeviceAttempt | None:
        return member.state.get(self.name)

    def _give_up(self, member: TriedMember, attempt: DeviceAttempt, given_up: set[str]) -> bool:
        """Give a claim of the member back, as for a pod of its own; whether there was one."""
        candidates = deallocatable(attempt, member.pod.uid)
        if candidates:
            self._deallocate(candidates[0], given_up)
            return True
        special = attempt.special_claim
        if special is not None and not is_in_memory(special):
            self._writer.delete_special(special)
            return True
        return False

    def _deallocate(self, claim: ResourceClaim, given_up: set[str]) -> None:
        self._writer.deallocate(claim)
        if claim.metadata.uid in given_up:
            # The second write is based on the same version as the first, and is refused.
            raise PluginError(_conflict(claim))
        given_up.add(claim.metadata.uid)

    def _give_up_for_group(
        self, group: UnplacedGroup, attempts: Sequence[DeviceAttempt], given_up: set[str]
    ) -> Status | None:
        """Give a claim of the group back, while none of its members is placed."""
        members = self._trees.members(group.node.key)
        if members.scheduled_count > 0:
            return None
        uid = self._trees.uid_of(group.node)
        for attempt in attempts:
            for index in sorted(attempt.unavailable):
                claim = attempt.claims[index]
                consumers = [consumer.uid for consumer in claim.status.reserved_for]
                if consumers in ([], [uid]):
                    self._deallocate(claim, given_up)
                    return GROUP_DEALLOCATED
        return self._group_claims.give_up(group.pods[0].pod)


def _conflict(claim: ResourceClaim) -> str:
    return (
        "Operation cannot be fulfilled on resourceclaims.resource.k8s.io "
        f'"{claim.metadata.name}": the object has been modified; please apply your changes to the '
        "latest version and try again"
    )
