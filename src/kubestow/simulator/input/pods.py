"""Pods that lose their place, or leave the cluster, with everything that was theirs.

    forgotten   as if no scheduler had placed them: `--reschedule`
    evicted     deleted and made again by their controllers: `--drain`
    removed     deleted, and not made again: `--remove-pods`

What belongs to a pod that is deleted goes with it, as controllers do it: claims that were made for
it, its reservations of devices, the attachments of its volumes.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.documents import (
    as_list,
    as_object,
    namespace_of,
    objects_in,
    removed_at,
    replaced_at,
    value_at,
)

# Only on static pods, which a kubelet starts by itself.
MIRROR: Final = "kubernetes.io/config.mirror"
# The names of the claims that were made for the pod; they exist without a placement.
_CLAIM_NAMES: Final = "resourceClaimStatuses"
_TERMINAL: Final = ("Succeeded", "Failed")


class PodKey(NamedTuple):
    namespace: str
    name: str

    @classmethod
    def of(cls, pod: Pod) -> "PodKey":
        return cls(pod.metadata.namespace, pod.metadata.name)


class _Attachment(NamedTuple):
    node: str
    volume: str


def key_of(pod: JsonObject) -> PodKey:
    return PodKey(namespace_of(pod), value_at(pod, "metadata", "name") or "")


def is_placed_by_scheduler(document: JsonObject) -> bool:
    """Whether it is a pod that a scheduler has placed, and that runs."""
    metadata = as_object(document.get("metadata"))
    return (
        document.get("kind") == "Pod"
        and bool(value_at(document, "spec", "nodeName"))
        and value_at(document, "status", "phase") not in _TERMINAL
        and not metadata.get("deletionTimestamp")
        and MIRROR not in as_object(metadata.get("annotations"))
    )


# --- Forgotten --------------------------------------------------------------------------------


def without_placements(documents: Sequence[Document]) -> list[Document]:
    """The documents as if no pod had been placed.

    Pods that no scheduler places keep their node: static pods, and pods that have ended or are
    being deleted. Devices allocated for the others are free again; volumes stay bound.
    """
    forgotten = {key_of(one.raw) for one in documents if is_placed_by_scheduler(one.raw)}
    kept = _without_attachments(documents, forgotten)
    return [Document(_without_placement(one.raw, forgotten), one.source) for one in kept]


def _without_placement(raw: JsonObject, forgotten: set[PodKey]) -> JsonObject:
    match raw.get("kind"):
        case "Pod" if key_of(raw) in forgotten:
            status = as_object(raw.get("status"))
            kept = {_CLAIM_NAMES: status[_CLAIM_NAMES]} if _CLAIM_NAMES in status else {}
            return removed_at({**raw, "status": kept}, ("spec", "nodeName"))
        case "ResourceClaim":
            return _released(raw, forgotten)
        case _:
            return raw


# --- Evicted and removed ----------------------------------------------------------------------


def evicted(documents: Sequence[Document], pods: set[PodKey]) -> list[Document]:
    """The documents after these pods were deleted and their controllers made them again."""
    return [
        Document(_made_again(one.raw), one.source)
        if one.raw.get("kind") == "Pod" and key_of(one.raw) in pods
        else one
        for one in _without_belongings(documents, pods)
    ]


def without_pods(documents: Sequence[Document], pods: set[PodKey]) -> list[Document]:
    """The documents after these pods were deleted."""
    return [
        one
        for one in _without_belongings(documents, pods)
        if one.raw.get("kind") != "Pod" or key_of(one.raw) not in pods
    ]


def _made_again(pod: JsonObject) -> JsonObject:
    pod = removed_at(removed_at(pod, ("spec", "nodeName")), ("status",))
    pod = removed_at(pod, ("metadata", "creationTimestamp"))
    # Another pod, of which admission has filled in the same: its classes may not be in the input.
    uid = value_at(pod, "metadata", "uid")
    return replaced_at(pod, ("metadata", "uid"), f"{uid}-again") if uid else pod


def _without_belongings(documents: Sequence[Document], pods: set[PodKey]) -> list[Document]:
    lost_volumes = {
        volume
        for one in documents
        if one.raw.get("kind") == "PersistentVolumeClaim" and _is_owned(one.raw, pods)
        if (volume := value_at(one.raw, "spec", "volumeName"))
    }
    return [
        Document(_released(one.raw, pods), one.source)
        if one.raw.get("kind") == "ResourceClaim"
        else one
        for one in _without_attachments(documents, pods)
        if not _belongs(one.raw, pods, lost_volumes)
    ]


def _belongs(raw: JsonObject, pods: set[PodKey], lost_volumes: set[str]) -> bool:
    """Whether an object is deleted with one of the pods."""
    match raw.get("kind"):
        case "ResourceClaim" | "PersistentVolumeClaim":
            return _is_owned(raw, pods)
        case "PersistentVolume":
            is_deleted = value_at(raw, "spec", "persistentVolumeReclaimPolicy") == "Delete"
            return is_deleted and value_at(raw, "metadata", "name") in lost_volumes
        case _:
            return False


def _is_owned(raw: JsonObject, pods: set[PodKey]) -> bool:
    owners = objects_in(value_at(raw, "metadata", "ownerReferences"))
    return any(
        owner.get("kind") == "Pod" and PodKey(namespace_of(raw), owner.get("name") or "") in pods
        for owner in owners
    )


def _released(claim: JsonObject, pods: set[PodKey]) -> JsonObject:
    """The claim without reservations for these pods; without any other it is deallocated."""
    consumers = objects_in(as_list(value_at(claim, "status", "reservedFor")))
    namespace = namespace_of(claim)
    kept = [
        consumer
        for consumer in consumers
        if PodKey(namespace, consumer.get("name") or "") not in pods
    ]
    if len(kept) == len(consumers):
        return claim
    if not kept:
        return removed_at(claim, ("status",))
    return {**claim, "status": {**as_object(claim.get("status")), "reservedFor": kept}}


# --- Attachments ------------------------------------------------------------------------------


def _without_attachments(documents: Sequence[Document], pods: set[PodKey]) -> list[Document]:
    """The documents without attachments of volumes that only these pods use on their nodes."""
    if not any(one.raw.get("kind") == "VolumeAttachment" for one in documents):
        return list(documents)
    volumes = {
        (namespace_of(one.raw), value_at(one.raw, "metadata", "name")): value_at(
            one.raw, "spec", "volumeName"
        )
        for one in documents
        if one.raw.get("kind") == "PersistentVolumeClaim"
    }
    freed: set[_Attachment] = set()
    used: set[_Attachment] = set()
    for one in documents:
        if one.raw.get("kind") == "Pod":
            (freed if key_of(one.raw) in pods else used).update(_attachments(one.raw, volumes))
    freed -= used
    return [
        one
        for one in documents
        if one.raw.get("kind") != "VolumeAttachment" or _attachment(one.raw) not in freed
    ]


def _attachments(
    pod: JsonObject, volumes: dict[tuple[str, str | None], str | None]
) -> Iterable[_Attachment]:
    node = value_at(pod, "spec", "nodeName") or ""
    for volume in objects_in(value_at(pod, "spec", "volumes")):
        claim = value_at(volume, "persistentVolumeClaim", "claimName")
        if "ephemeral" in volume:
            claim = f"{key_of(pod).name}-{volume.get('name')}"
        if claim and (name := volumes.get((namespace_of(pod), claim))):
            yield _Attachment(node, name)


def _attachment(raw: JsonObject) -> _Attachment:
    volume = value_at(raw, "spec", "source", "persistentVolumeName")
    return _Attachment(value_at(raw, "spec", "nodeName") or "", volume or "")
