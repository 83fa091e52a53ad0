"""Which claims a pod uses (spec 08 B4)."""

from collections.abc import Iterator
from typing import NamedTuple

from kubestow.api.device import ResourceClaim
from kubestow.api.group import GroupKey, group_key_of
from kubestow.api.meta import object_ref
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.index.devices.claims import Claims


class ClaimError(Exception):
    """A claim of the pod cannot be used, or not yet."""


class _Reference(NamedTuple):
    name: str
    # A claim made from a template belongs to one pod; any pod may use one that it names.
    is_generated: bool


def claims_of(pod: Pod, claims: Claims, *, accepts_groups: bool = False) -> list[ResourceClaim]:
    """The claims of the pod, in its order; raises ClaimError for the first that cannot be used.

    `accepts_groups`: a claim that was made for the pod's group can be used as well.
    """
    return [
        _usable(pod, reference, claims, accepts_groups=accepts_groups)
        for reference in _references(pod)
    ]


def are_resolvable(pod: Pod, claims: Claims, *, accepts_groups: bool = False) -> bool:
    try:
        claims_of(pod, claims, accepts_groups=accepts_groups)
    except ClaimError:
        return False
    return True


def uses(pod: Pod, claim: ResourceClaim, claims: Claims, *, accepts_groups: bool = False) -> bool:
    """Whether the pod, whose claims are resolvable, uses this claim."""
    found = claims_of(pod, claims, accepts_groups=accepts_groups)
    return any(each.metadata.uid == claim.metadata.uid for each in found)


def refers_to(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the pod names the claim, or it is known to be made for one of its templates."""
    if pod.metadata.namespace != claim.metadata.namespace:
        return False
    generated = (status.resource_claim_name for status in pod.status.resource_claim_statuses)
    named = (entry.resource_claim_name for entry in pod.spec.resource_claims)
    return claim.metadata.name in (*named, *generated)


def _references(pod: Pod) -> Iterator[_Reference]:
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield _Reference(entry.resource_claim_name, is_generated=False)
        elif entry.resource_claim_template_name is not None:
            name = _generated_name(pod, entry)
            if name is not None:
                yield _Reference(name, is_generated=True)
        else:
            raise ClaimError(
                f'pod "{object_ref(pod.metadata)}", spec.resourceClaim "{entry.name}": '
                "none of the supported fields are set"
            )


def _generated_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The claim made from the template; None if none is needed."""
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{object_ref(pod.metadata)}": ResourceClaim not created yet')


def _usable(
    pod: Pod, reference: _Reference, claims: Claims, *, accepts_groups: bool
) -> ResourceClaim:
    namespace = pod.metadata.namespace
    claim = claims.get(namespace, reference.name)
    if claim is None:
        raise ClaimError(f'could not find ResourceClaim "{namespace}/{reference.name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimError(f'resourceclaim "{claim.metadata.name}" is being deleted')
    if reference.is_generated and not _is_controlled_by(claim, pod):
        key = group_key_of(pod) if accepts_groups else None
        if key is None:
            raise _not_created_for(claim, pod, "Pod is not owner")
        if not _is_controlled_by_group(claim, key):
            raise _not_created_for(claim, pod, f"neither Pod nor PodGroup {key.name} is the owner")
    return claim


def _not_created_for(claim: ResourceClaim, pod: Pod, why: str) -> ClaimError:
    return ClaimError(
        f"ResourceClaim {object_ref(claim.metadata)} was not created for Pod "
        f"{object_ref(pod.metadata)} ({why})"
    )


def _is_controlled_by_group(claim: ResourceClaim, key: GroupKey) -> bool:
    """By name: a pod does not know the UID of its group."""
    owner = controller_of(claim)
    return (
        owner is not None
        and owner.name == key.name
        and owner.kind == "PodGroup"
        and owner.api_version.startswith("scheduling.k8s.io/")
    )


def _is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner.uid == pod.metadata.uid
