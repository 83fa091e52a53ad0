"""Makes the claims of pods from templates, and takes claims back when pods end (spec 08 B2).

    pod with a template ──► claim, owned by the pod and named in its status
    pod finished or gone ──► its reservations are removed; a claim without any is deallocated, and
                             deleted if it was made for the pod

With the gate DRAWorkloadResourceClaims also for pod groups (spec 11 §2.6): one claim per template
of a group, owned by the group and named in its status and in that of its members.

The scheduler only reads the names of generated claims, and reserves claims for the pods it binds.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from kubestow.api.device import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from kubestow.api.group import group_key_of
from kubestow.api.meta import JsonObject, OwnerReference
from kubestow.api.pod import Pod, PodResourceClaim, is_terminal
from kubestow.api.pod_group import PodGroup
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.traits import ANY, HAS_CLAIMS
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.cluster.documents import as_object, objects_in, replaced_at
from kubestow.cluster.resources import (
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ApiResource,
)
from kubestow.errors import NotFoundError
from kubestow.plugins.dynamic_resources.writes import FINALIZER
from kubestow.simulator.claim_documents import (
    claim_document,
    reserved_only_for,
    with_claim_names,
)
from kubestow.simulator.standing import NOTHING_STANDS, StandingObjects


class ResourceClaimController:
    """Run it beside a `MemoryCluster`."""

    def __init__(
        self, cluster: MemoryCluster, *, standing: StandingObjects = NOTHING_STANDS
    ) -> None:
        """Objects among `standing` are left as they are."""
        self._cluster = cluster
        self._standing = standing
        self._guard = Guard("resource-claim-controller")

        self._has_groups = cluster.gates.enabled("DRAWorkloadResourceClaims")

    async def run(self) -> None:
        """Follow pods, groups, claims and templates until cancelled."""
        followed = [PODS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES]
        if self._has_groups:
            followed.append(POD_GROUPS)
        group = WatchGroup(
            self._cluster.watch(resource, traits=HAS_CLAIMS if resource is PODS else ANY)
            for resource in followed
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
            case PodGroup() as pod_group:
                self._follow_group(pod_group, is_deleted=event.type == "DELETED")
            case _:
                pass

    # --- pods ---

    def _follow_pod(self, pod: Pod, *, is_deleted: bool) -> None:
        if not _uses_claims(pod) or pod in self._standing:
            return
        if not is_deleted and pod.metadata.deletion_timestamp is None and not is_terminal(pod):
            self._make_claims(pod)
            self._reserve(pod)
        if is_deleted or _is_done(pod):
            for name in list(_claim_names(pod)):
                self._release(pod.metadata.namespace, name)

    def _make_waiting_claims(self, template: ResourceClaimTemplate) -> None:
        """Make the claims of pods and groups that were created before their template."""
        for resource in (POD_GROUPS, PODS) if self._has_groups else (PODS,):
            for stored in list(self._cluster.objects_of(resource)):
                found = stored.typed
                if (
                    isinstance(found, Pod | PodGroup)
                    and found.metadata.namespace == template.metadata.namespace
                    and any(
                        entry.resource_claim_template_name == template.metadata.name
                        for entry in found.spec.resource_claims
                    )
                ):
                    if isinstance(found, Pod):
                        self._follow_pod(found, is_deleted=False)
                    else:
                        self._follow_group(found, is_deleted=False)

    def _make_claims(self, pod: Pod) -> None:
        current = self._pod(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return
        key = group_key_of(current) if self._has_groups else None
        pod_group = None if key is None else self._group(key.namespace, key.name)
        if key is not None and pod_group is None:
            return  # Whose its claims are shows when the group exists.
        made: dict[str, str] = {}
        for entry in current.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            if pod_group is not None and entry in pod_group.spec.resource_claims:
                name = self._claim_of_group(pod_group, entry, current)
            else:
                name = self._make_claim(current, entry)
            if name is not None:
                made[entry.name] = name
        self._note_claims(PODS, current, made)

    def _note_claims(
        self, resource: ApiResource, owner: Pod | PodGroup, made: Mapping[str, str]
    ) -> None:
        """Name claims in the status of the pod or group that they were made for."""
        if made:
            self._cluster.change(
                resource,
                owner.metadata.namespace,
                owner.metadata.name,
                lambda document: with_claim_names(document, made),
                subresource="status",
            )

    def _make_claim(self, owner: Pod | PodGroup, entry: PodResourceClaim) -> str | None:
        """The name of a new claim; None if none is needed, or its template does not exist yet."""
        namespace = owner.metadata.namespace
        for status in owner.status.resource_claim_statuses:
            if status.name != entry.name:
                continue
            if status.resource_claim_name is None:
                return None
            known = self._claim(namespace, status.resource_claim_name)
            controller = None if known is None else controller_of(known)
            if controller is not None and controller.uid == owner.metadata.uid:
                return None
        template_name = entry.resource_claim_template_name or ""
        stored = self._cluster.find(RESOURCE_CLAIM_TEMPLATES, namespace, template_name)
        if stored is None:
            return None
        created = self._cluster.create(
            RESOURCE_CLAIMS, claim_document(owner, entry, as_object(stored.document.get("spec")))
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
            if claim in self._standing:
                continue
            consumer = self._consumer(pod, claim)
            if all(each.uid != consumer["uid"] for each in claim.status.reserved_for):
                self._change_status(
                    claim,
                    lambda status, consumer=consumer: {
                        **status,
                        "reservedFor": [*objects_in(status.get("reservedFor")), consumer],
                    },
                )

    def _consumer(self, pod: Pod, claim: ResourceClaim) -> JsonObject:
        """What a claim of the pod is reserved for: its group, if the claim was made for that."""
        owner = controller_of(claim)
        if self._has_groups and owner is not None and owner.kind == POD_GROUPS.kind:
            return {
                "apiGroup": POD_GROUPS.group,
                "resource": POD_GROUPS.plural,
                "name": owner.name,
                "uid": owner.uid,
            }
        return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}

    # --- groups ---

    def _follow_group(self, pod_group: PodGroup, *, is_deleted: bool) -> None:
        meta = pod_group.metadata
        if pod_group in self._standing:
            return
        if is_deleted:
            for stored in list(self._cluster.objects_of(RESOURCE_CLAIMS)):
                claim = stored.typed
                if isinstance(claim, ResourceClaim) and meta.uid in _uids_of(claim):
                    self._release(claim.metadata.namespace, claim.metadata.name)
            return
        # An event shows the group as it was before the claims of another event.
        current = self._group(meta.namespace, meta.name)
        if current is None or current.metadata.uid != meta.uid:
            return
        if current.metadata.deletion_timestamp is None:
            made = {
                entry.name: name
                for entry in current.spec.resource_claims
                if entry.resource_claim_template_name is not None
                and (name := self._make_claim(current, entry)) is not None
            }
            self._note_claims(POD_GROUPS, current, made)
        for stored in list(self._cluster.objects_of(PODS)):
            pod = stored.typed
            if isinstance(pod, Pod) and group_key_of(pod) == (meta.namespace, meta.name):
                self._follow_pod(pod, is_deleted=False)

    def _claim_of_group(self, pod_group: PodGroup, entry: PodResourceClaim, pod: Pod) -> str | None:
        """The claim that was made for the group; None if there is none, or the pod names it."""
        for status in pod_group.status.resource_claim_statuses:
            if status.name == entry.name and status.resource_claim_name is not None:
                named = (entry.name, status.resource_claim_name)
                known = pod.status.resource_claim_statuses
                is_named = any((each.name, each.resource_claim_name) == named for each in known)
                return None if is_named else status.resource_claim_name
        return None

    # --- claims ---

    def _follow_claim(self, claim: ResourceClaim, *, is_deleted: bool) -> None:
        if not is_deleted:
            self._release(claim.metadata.namespace, claim.metadata.name)
            return
        owner = controller_of(claim)
        if owner is None:
            return
        namespace = claim.metadata.namespace
        if self._has_groups and owner.kind == POD_GROUPS.kind:
            pod_group = self._group(namespace, owner.name)
            if pod_group is not None and pod_group.metadata.uid == owner.uid:
                self._follow_group(pod_group, is_deleted=False)
            return
        pod = self._pod(namespace, owner.name)
        if pod is not None and pod.metadata.uid == owner.uid:
            self._follow_pod(pod, is_deleted=False)

    def _release(self, namespace: str, name: str) -> None:
        """Remove reservations of pods that will not run, and what the claim then does not need."""
        claim = self._claim(namespace, name)
        if claim is None or claim in self._standing:
            return
        reserved_for = claim.status.reserved_for
        kept = {each.uid for each in reserved_for if self._keeps(namespace, each)}
        is_protected = FINALIZER in claim.metadata.finalizers
        if any(each.uid not in kept for each in reserved_for):
            self._change_status(
                claim, lambda status: reserved_only_for(kept, status, frees=is_protected)
            )
            if is_protected and not kept:
                self._drop_finalizer(claim)
        elif is_protected and claim.metadata.deletion_timestamp is not None and not kept:
            self._change_status(claim, lambda status: reserved_only_for(kept, status, frees=True))
            self._drop_finalizer(claim)
        if not kept:
            self._delete_if_unneeded(namespace, name)

    def _keeps(self, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
        if self._has_groups and (consumer.api_group, consumer.resource) == (
            POD_GROUPS.group,
            POD_GROUPS.plural,
        ):
            pod_group = self._group(namespace, consumer.name)
            return pod_group is not None and pod_group.metadata.uid == consumer.uid
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
        """Delete a claim that was made for a pod which will not run, or for a group that is gone.

        Of a group upstream leaves that to the garbage collector.
        """
        claim = self._claim(namespace, name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        owner = controller_of(claim)
        if owner is None:
            return
        if owner.kind == "Pod":
            pod = self._pod(namespace, owner.name)
            is_needed = pod is not None and pod.metadata.uid == owner.uid and not _is_done(pod)
        elif self._has_groups and owner.kind == POD_GROUPS.kind:
            pod_group = self._group(namespace, owner.name)
            is_needed = pod_group is not None and pod_group.metadata.uid == owner.uid
        else:
            return
        if not is_needed:
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

    def _group(self, namespace: str, name: str) -> PodGroup | None:
        stored = self._cluster.find(POD_GROUPS, namespace, name)
        return stored.typed if stored and isinstance(stored.typed, PodGroup) else None

    def _pod(self, namespace: str, name: str) -> Pod | None:
        stored = self._cluster.find(PODS, namespace, name)
        return stored.typed if stored and isinstance(stored.typed, Pod) else None


def controller_of(claim: ResourceClaim) -> OwnerReference | None:
    return next((each for each in claim.metadata.owner_references if each.controller), None)


def _uids_of(claim: ResourceClaim) -> set[str]:
    """The owner of the claim, and what it is reserved for."""
    owner = controller_of(claim)
    uids = {consumer.uid for consumer in claim.status.reserved_for}
    return uids if owner is None else uids | {owner.uid}


def _uses_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


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
