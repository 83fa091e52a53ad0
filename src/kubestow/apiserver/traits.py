"""Traits of pods: by which parts of this process choose the events that they read.

Every write to a pod is an event, and most events concern few of the parts that follow pods. Each
part names the traits of the pods it reads; a write computes those of its pod once, and which parts
that concerns is looked up. The traits are bits of one number.
"""

from typing import Final

from kubestow.api.pod import Pod
from kubestow.apiserver.store import Change

# Every pod has this one, and all objects of other kinds.
EXISTS: Final = 1
# This is the event of the pod's deletion.
GONE: Final = 2
# It has a node. Active: and it has not ended.
PLACED: Final = 4
ACTIVE: Final = 8
# Its deletion has begun.
ENDING: Final = 16
# Succeeded or failed.
ENDED: Final = 32
# It has owners, or had some before this write.
OWNED: Final = 64
FINALIZED: Final = 128
HAS_VOLUMES: Final = 256
HAS_CLAIMS: Final = 512

ANY: Final = EXISTS
NO_PODS: Final = 0


def traits_of(change: Change) -> int:
    """The traits of a pod as it is after a write, or was before its deletion."""
    old, new = change.old, change.new
    stored = old if new is None else new
    assert stored is not None
    pod = stored.typed
    assert isinstance(pod, Pod), pod
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    traits = EXISTS if new is not None else EXISTS | GONE
    has_ended = status.phase in ("Succeeded", "Failed")
    if has_ended:
        traits |= ENDED
    if spec.node_name:
        traits |= PLACED if has_ended else PLACED | ACTIVE
    if metadata.deletion_timestamp is not None:
        traits |= ENDING
    if metadata.owner_references or (old is not None and old.typed.metadata.owner_references):
        traits |= OWNED
    if metadata.finalizers:
        traits |= FINALIZED
    if spec.volumes:
        traits |= HAS_VOLUMES
    if spec.resource_claims or status.extended_resource_claim_status is not None:
        traits |= HAS_CLAIMS
    return traits
