"""A placed pod as it would be if it still waited."""

import msgspec

from kubestow.api.device import ResourceClaim, ResourceClaimStatus
from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod, PodStatus
from kubestow.explain.cluster import StillCluster


def unplaced(cluster: StillCluster, pod: Pod) -> list[ApiObject]:
    """The pod without a node, first, and the claims whose devices only it uses, without them.

    Volumes stay bound, as they would.
    """
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    spec = msgspec.structs.replace(pod.spec, node_name="")
    waiting = msgspec.structs.replace(pod, spec=spec, status=status)
    claims = [
        msgspec.structs.replace(claim, status=ResourceClaimStatus())
        for claim in cluster.objects.resource_claims.list_namespace(pod.metadata.namespace)
        if _is_only_for(claim, pod)
    ]
    return [waiting, *claims]


def _is_only_for(claim: ResourceClaim, pod: Pod) -> bool:
    consumers = claim.status.reserved_for
    return bool(consumers) and all(each.uid == pod.metadata.uid for each in consumers)
