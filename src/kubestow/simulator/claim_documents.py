"""Claims that are made from templates, and changes of their status, as documents."""

from collections.abc import Mapping
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.api.pod_group import PodGroup
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS

# Which entry of the pod's resourceClaims a claim was made for.
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
GENERATED_BASE_MAX: Final = 57  # characters; a hyphen and five random ones follow


def claim_document(
    owner: Pod | PodGroup, entry: PodResourceClaim, template: JsonObject
) -> JsonObject:
    metadata = as_object(template.get("metadata"))
    kind = PODS if isinstance(owner, Pod) else POD_GROUPS
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "generateName": _generate_name(owner.metadata.name, entry.name),
            "namespace": owner.metadata.namespace,
            "labels": as_object(metadata.get("labels")),
            "annotations": {
                **as_object(metadata.get("annotations")),
                POD_CLAIM_ANNOTATION: entry.name,
            },
            "ownerReferences": [
                {
                    "apiVersion": kind.api_version,
                    "kind": kind.kind,
                    "name": owner.metadata.name,
                    "uid": owner.metadata.uid,
                    "controller": True,
                }
            ],
        },
        "spec": as_object(template.get("spec")),
    }


def _generate_name(owner_name: str, entry_name: str) -> str:
    """A name of both names, each cut in proportion to its length if they are too long together."""
    base = f"{owner_name}-{entry_name}-"
    if len(base) <= GENERATED_BASE_MAX:
        return base
    owner_part = owner_name[: len(owner_name) * GENERATED_BASE_MAX // len(base)]
    return f"{owner_part}-{entry_name[: len(entry_name) * GENERATED_BASE_MAX // len(base)]}"


def with_claim_names(document: JsonObject, names: Mapping[str, str]) -> JsonObject:
    path = ("status", "resourceClaimStatuses")
    known = [
        each for each in objects_in(value_at(document, *path)) if each.get("name") not in names
    ]
    made = [{"name": name, "resourceClaimName": claim} for name, claim in names.items()]
    return replaced_at(document, path, [*known, *made])


def reserved_only_for(uids: set[str], status: JsonObject, *, frees: bool) -> JsonObject:
    """`frees`: without any reservation the claim is deallocated too."""
    kept = [each for each in objects_in(status.get("reservedFor")) if each.get("uid") in uids]
    if kept or not frees:
        return {**status, "reservedFor": kept}
    return {}
