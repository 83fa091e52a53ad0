"""Claims that all members of a group share (spec 11 §10).

A claim that a pod and its group name alike is reserved for the group: its members write no
reservations of their own. With the gate DRAWorkloadResourceClaims off every claim is the pod's.
"""

from typing import Final

from kubestow.api.device import ResourceClaim, ResourceClaimConsumerReference
from kubestow.api.group import Group, GroupKey
from kubestow.api.meta import object_ref
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.cache.groups import Groups
from kubestow.errors import CacheError, PluginError
from kubestow.framework.status import Status
from kubestow.index.devices.claims import Claims
from kubestow.plugins.dynamic_resources.resolve import ClaimError
from kubestow.plugins.dynamic_resources.writes import ClaimWriter

GROUP_API: Final = "scheduling.k8s.io"
GROUP_RESOURCE: Final = "podgroups"
UNRESERVED: Final = Status.unresolvable("ResourceClaim unreserved for PodGroup")


class GroupClaims:
    def __init__(
        self, groups: Groups, claims: Claims, writer: ClaimWriter, *, is_enabled: bool
    ) -> None:
        self._groups = groups
        self._claims = claims
        self._writer = writer
        self.is_enabled = is_enabled

    def consumers(self, pod: Pod) -> list[ResourceClaimConsumerReference]:
        """Per claim of the pod, what it is reserved for; ClaimError if the group is not known."""
        if not self.is_enabled:
            return []
        key = self._groups.key_of(pod)
        group = None if key is None else self._rules(key)
        return [_consumer(pod, group, entry) for entry in pod.spec.resource_claims]

    def is_reserved(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Whether the claim is reserved for the pod, or for its group."""
        key = self._groups.key_of(pod) if self.is_enabled else None
        return any(
            consumer.uid == pod.metadata.uid
            or (
                key is not None
                and consumer.api_group == GROUP_API
                and consumer.resource == GROUP_RESOURCE
                # Pods do not know the UID of their group.
                and consumer.name == key.name
            )
            for consumer in claim.status.reserved_for
        )

    def give_up(self, pod: Pod) -> Status | None:
        """Take the group off a claim that it got in vain; None if there is no such claim.

        Only while no member is placed: the next attempt may then choose other devices.
        """
        key = self._groups.key_of(pod) if self.is_enabled else None
        if key is None:
            return None
        try:
            if self._groups.members(key).scheduled_count > 0:
                return None
            rules = self._groups.required_rules(key)
        except CacheError as error:
            raise PluginError(str(error)) from error
        pod_group = self._groups.object_of(key)
        for entry in rules.resource_claims:
            assert isinstance(pod_group, UpstreamPodGroup), key
            claim = self._claim_of(pod_group, entry)
            if (
                claim is not None
                and claim.status.allocation is not None
                and self.is_reserved(claim, pod)
            ):
                self._writer.drop_consumer(
                    claim, pod_group.metadata.uid, f"group {object_ref(pod_group.metadata)}"
                )
                return UNRESERVED
        return None

    def _claim_of(
        self, pod_group: UpstreamPodGroup, entry: PodResourceClaim
    ) -> ResourceClaim | None:
        name, is_generated = _claim_name(pod_group, entry)
        if name is None:
            return None
        namespace = pod_group.metadata.namespace
        claim = self._claims.get(namespace, name)
        if claim is None:
            raise PluginError(f'could not find ResourceClaim "{namespace}/{name}"')
        if is_generated:
            owner = controller_of(claim)
            if owner is None or owner.uid != pod_group.metadata.uid:
                return None
        return claim

    def _rules(self, key: GroupKey) -> Group:
        try:
            return self._groups.required_rules(key)
        except CacheError as error:
            raise ClaimError(str(error)) from error


def _consumer(
    pod: Pod, group: Group | None, entry: PodResourceClaim
) -> ResourceClaimConsumerReference:
    if group is not None and entry in group.resource_claims:
        return ResourceClaimConsumerReference(
            api_group=GROUP_API, resource=GROUP_RESOURCE, name=group.key.name, uid=group.uid
        )
    return pod_consumer(pod)


def pod_consumer(pod: Pod) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(
        resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
    )


def _claim_name(pod_group: UpstreamPodGroup, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The name of a claim of the group, and whether it was made from a template."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    what = f"PodGroup {object_ref(pod_group.metadata)}"
    if entry.resource_claim_template_name is None:
        raise PluginError(
            f"{what}, spec.resourceClaim {entry.name}: none of the supported fields are set"
        )
    for status in pod_group.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise PluginError(f"{what}: ResourceClaim not created yet")
