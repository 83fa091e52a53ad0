"""Which claims a pod uses (spec 08 B4)."""

from collections.abc import Iterator
from typing import NamedTuple

from kubestow.api.device import ResourceClaim
from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.index.devices.claims import Claims


class ClaimError(Exception):
    """A claim of the pod cannot be used, or not yet."""


class _Reference(NamedTuple):
    name: str
    # A claim made from a template belongs to one pod; any pod may use one that it names.
    is_generated: bool


def claims_of(pod: Pod, claims: Claims) -> list[ResourceClaim]:
    """The claims of the pod, in its order; raises ClaimError for the first that cannot be used."""
    return [_usable(pod, reference, claims) for reference in _references(pod)]


def are_resolvable(pod: Pod, claims: Claims) -> bool:
    try:
        claims_of(pod, claims)
    except ClaimError:
        return False
    return True


def uses(pod: Pod, claim: ResourceClaim, claims: Claims) -> bool:
    """Whether the pod, whose claims are resolvable, uses this claim."""
    return any(found.metadata.uid == claim.metadata.uid for found in claims_of(pod, claims))


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


def _usable(pod: Pod, reference: _Reference, claims: Claims) -> ResourceClaim:
    namespace = pod.metadata.namespace
    claim = claims.get(namespace, reference.name)
    if claim is None:
        raise ClaimError(f'could not find ResourceClaim "{namespace}/{reference.name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimError(f'resourceclaim "{claim.metadata.name}" is being deleted')
    if reference.is_generated and not _is_controlled_by(claim, pod):
        raise ClaimError(
            f"ResourceClaim {object_ref(claim.metadata)} was not created for Pod "
            f"{object_ref(pod.metadata)} (Pod is not owner)"
        )
    return claim


def _is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    for owner in claim.metadata.owner_references:
        if owner.controller:
            return owner.uid == pod.metadata.uid
    return False
