"""Makes the claims of pods from templates, and takes claims back when pods end (spec 08 B2).

    pod with a template ──► claim, owned by the pod and named in its status
    pod finished or gone ──► its reservations are removed; a claim without any is deallocated, and
                             deleted if it was made for the pod

The scheduler only reads the names of generated claims, and reserves claims for the pods it binds.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from kubestow.api.device import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from kubestow.api.meta import JsonObject, OwnerReference
from kubestow.api.pod import Pod, PodResourceClaim, is_terminal
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.cluster.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from kubestow.errors import NotFoundError
from kubestow.plugins.dynamic_resources.writes import FINALIZER

# Which entry of the pod's resourceClaims a claim was made for.
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
GENERATED_BASE_MAX: Final = 57  # characters; a hyphen and five random ones follow


class ResourceClaimController:
    """Run it beside a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._guard = Guard("resource-claim-controller")

    async def run(self) -> None:
        """Follow pods, claims and templates until cancelled."""
        group = WatchGroup(
            self._cluster.watch(resource)
            for resource in (PODS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
        )
        try:
            while not group.is_closed:
                for event in group.events_nowait():
                    self._guard.run(event.stored, partial(self._handle, event))
                await group.wait()
        finally:
            group.close()
            self._guard.close()

    def _handle(self, event: WatchEvent) -> None:
        match event.stored.typed:
            case Pod() as pod:
                self._follow_pod(pod, is_deleted=event.type == "DELETED")
            case ResourceClaim() as claim:
                self._follow_claim(claim, is_deleted=event.type == "DELETED")
            case ResourceClaimTemplate() as template:
                self._make_waiting_claims(template)
            case _:
                pass

    # --- pods ---

    def _follow_pod(self, pod: Pod, *, is_deleted: bool) -> None:
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return
        if not is_deleted and pod.metadata.deletion_timestamp is None and not is_terminal(pod):
            self._make_claims(pod)
            self._reserve(pod)
        if is_deleted or _is_done(pod):
            for name in list(_claim_names(pod)):
                self._release(pod.metadata.namespace, name)

    def _make_waiting_claims(self, template: ResourceClaimTemplate) -> None:
        """Make the claims of pods that were created before their template."""
        for stored in list(self._cluster.objects_of(PODS)):
            pod = stored.typed
            if (
                isinstance(pod, Pod)
                and pod.metadata.namespace == template.metadata.namespace
                and any(
                    entry.resource_claim_template_name == template.metadata.name
                    for entry in pod.spec.resource_claims
                )
            ):
                self._follow_pod(pod, is_deleted=False)

    def _make_claims(self, pod: Pod) -> None:
        current = self._pod(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return
        made = {
            entry.name: name
            for entry in current.spec.resource_claims
            if entry.resource_claim_template_name is not None
            and (name := self._make_claim(current, entry)) is not None
        }
        if made:
            self._cluster.change(
                PODS,
                current.metadata.namespace,
                current.metadata.name,
                lambda document: _with_claim_names(document, made),
                subresource="status",
            )

    def _make_claim(self, pod: Pod, entry: PodResourceClaim) -> str | None:
        """The name of a new claim; None if none is needed, or its template does not exist yet."""
        namespace = pod.metadata.namespace
        for status in pod.status.resource_claim_statuses:
            if status.name != entry.name:
                continue
            if status.resource_claim_name is None:
                return None
            known = self._claim(namespace, status.resource_claim_name)
            owner = None if known is None else controller_of(known)
            if owner is not None and owner.uid == pod.metadata.uid:
                return None
        template_name = entry.resource_claim_template_name or ""
        stored = self._cluster.find(RESOURCE_CLAIM_TEMPLATES, namespace, template_name)
        if stored is None:
            return None
        created = self._cluster.create(
            RESOURCE_CLAIMS, _claim_document(pod, entry, as_object(stored.document.get("spec")))
        )
        return created.name

    def _reserve(self, pod: Pod) -> None:
        """Reserve claims for a pod that was not placed by a scheduler."""
        if not pod.spec.node_name:
            return
        for name in list(_claim_names(pod)):
            claim = self._claim(pod.metadata.namespace, name)
            if claim is None or claim.status.allocation is None:
                continue
            if all(each.uid != pod.metadata.uid for each in claim.status.reserved_for):
                consumer = {
                    "resource": "pods",
                    "name": pod.metadata.name,
                    "uid": pod.metadata.uid,
                }
                self._change_status(
                    claim,
                    lambda status, consumer=consumer: {
                        **status,
                        "reservedFor": [*objects_in(status.get("reservedFor")), consumer],
                    },
                )

    # --- claims ---

    def _follow_claim(self, claim: ResourceClaim, *, is_deleted: bool) -> None:
        if not is_deleted:
            self._release(claim.metadata.namespace, claim.metadata.name)
            return
        owner = controller_of(claim)
        pod = None if owner is None else self._pod(claim.metadata.namespace, owner.name)
        if pod is not None and owner is not None and pod.metadata.uid == owner.uid:
            self._follow_pod(pod, is_deleted=False)

    def _release(self, namespace: str, name: str) -> None:
        """Remove reservations of pods that will not run, and what the claim then does not need."""
        claim = self._claim(namespace, name)
        if claim is None:
            return
        reserved_for = claim.status.reserved_for
        kept = {each.uid for each in reserved_for if self._keeps(namespace, each)}
        is_protected = FINALIZER in claim.metadata.finalizers
        if any(each.uid not in kept for each in reserved_for):
            self._change_status(
                claim, lambda status: _reserved_only_for(kept, status, frees=is_protected)
            )
            if is_protected and not kept:
                self._drop_finalizer(claim)
        elif is_protected and claim.metadata.deletion_timestamp is not None and not kept:
            self._change_status(claim, lambda status: _reserved_only_for(kept, status, frees=True))
            self._drop_finalizer(claim)
        if not kept:
            self._delete_if_unneeded(namespace, name)

    def _keeps(self, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
        if consumer.api_group or consumer.resource != "pods":
            return True
        pod = self._pod(namespace, consumer.name)
        return pod is not None and pod.metadata.uid == consumer.uid and not _is_done(pod)

    def _drop_finalizer(self, claim: ResourceClaim) -> None:
        """Only allocated claims are protected from deletion."""
        kept = [each for each in claim.metadata.finalizers if each != FINALIZER]
        with suppress(NotFoundError):
            self._cluster.change(
                RESOURCE_CLAIMS,
                claim.metadata.namespace,
                claim.metadata.name,
                lambda document: replaced_at(document, ("metadata", "finalizers"), kept),
            )

    def _delete_if_unneeded(self, namespace: str, name: str) -> None:
        """Delete a claim that was made for a pod which will not run."""
        claim = self._claim(namespace, name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        owner = controller_of(claim)
        if owner is None or owner.kind != "Pod":
            return
        pod = self._pod(namespace, owner.name)
        if pod is None or pod.metadata.uid != owner.uid or _is_done(pod):
            with suppress(NotFoundError):
                self._cluster.delete(RESOURCE_CLAIMS, namespace, name)

    def _change_status(
        self, claim: ResourceClaim, edit: Callable[[JsonObject], JsonObject]
    ) -> None:
        def change(document: JsonObject) -> JsonObject:
            return {**document, "status": edit(as_object(document.get("status")))}

        meta = claim.metadata
        self._cluster.change(
            RESOURCE_CLAIMS, meta.namespace, meta.name, change, subresource="status"
        )

    def _claim(self, namespace: str, name: str) -> ResourceClaim | None:
        stored = self._cluster.find(RESOURCE_CLAIMS, namespace, name)
        return stored.typed if stored and isinstance(stored.typed, ResourceClaim) else None

    def _pod(self, namespace: str, name: str) -> Pod | None:
        stored = self._cluster.find(PODS, namespace, name)
        return stored.typed if stored and isinstance(stored.typed, Pod) else None


def controller_of(claim: ResourceClaim) -> OwnerReference | None:
    return next((each for each in claim.metadata.owner_references if each.controller), None)


def _is_done(pod: Pod) -> bool:
    """Whether no container of the pod runs, or ever will."""
    was_deleted = pod.metadata.deletion_timestamp is not None
    return is_terminal(pod) or (was_deleted and not pod.spec.node_name)


def _claim_names(pod: Pod) -> Iterator[str]:
    """The claims of the pod, those made for it included."""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name is not None:
            yield status.resource_claim_name
    if pod.status.extended_resource_claim_status is not None:
        yield pod.status.extended_resource_claim_status.resource_claim_name


def _claim_document(pod: Pod, entry: PodResourceClaim, template: JsonObject) -> JsonObject:
    metadata = as_object(template.get("metadata"))
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "generateName": _generate_name(pod.metadata.name, entry.name),
            "namespace": pod.metadata.namespace,
            "labels": as_object(metadata.get("labels")),
            "annotations": {
                **as_object(metadata.get("annotations")),
                POD_CLAIM_ANNOTATION: entry.name,
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": pod.metadata.name,
                    "uid": pod.metadata.uid,
                    "controller": True,
                }
            ],
        },
        "spec": as_object(template.get("spec")),
    }


def _generate_name(pod_name: str, entry_name: str) -> str:
    """Both names, cut in proportion to their lengths where they are too long together."""
    base = f"{pod_name}-{entry_name}-"
    if len(base) <= GENERATED_BASE_MAX:
        return base
    pod_part = pod_name[: len(pod_name) * GENERATED_BASE_MAX // len(base)]
    return f"{pod_part}-{entry_name[: len(entry_name) * GENERATED_BASE_MAX // len(base)]}"


def _with_claim_names(document: JsonObject, names: Mapping[str, str]) -> JsonObject:
    path = ("status", "resourceClaimStatuses")
    known = [
        each for each in objects_in(value_at(document, *path)) if each.get("name") not in names
    ]
    made = [{"name": name, "resourceClaimName": claim} for name, claim in names.items()]
    return replaced_at(document, path, [*known, *made])


def _reserved_only_for(uids: set[str], status: JsonObject, *, frees: bool) -> JsonObject:
    """`frees`: without any reservation the claim is deallocated too."""
    kept = [each for each in objects_in(status.get("reservedFor")) if each.get("uid") in uids]
    if kept or not frees:
        return {**status, "reservedFor": kept}
    return {}
