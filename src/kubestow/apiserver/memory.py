"""An API server in memory: the same verbs, rules and errors, without a network.

`MemoryCluster` has the rules of writes; what it stores and reads is in `watched_objects`. The
engine uses it through `memory_client`, tools and the HTTP server use it directly. Every write is
one plain function call: it either raises an `ApiError` and changes nothing, or it changes one
object, increments the one resource version that all resources share, and adds an event to every
watch before it returns.

Invariant: documents passed in and out are shared and never modified.
Not here: defaults and admission (`admission`), removing a terminating pod (a kubelet, or a
simulated one, calls `finish_termination`), deleting dependents (`garbage_collector`) and the
content of namespaces (`controllers.emptying`).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from kubestow.api.meta import JsonObject, Object
from kubestow.api.pod import Pod
from kubestow.apiserver.custom.rules import CLEANUP
from kubestow.apiserver.identity import IdentitySource
from kubestow.apiserver.refusals import already_exists, invalid, not_found
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.store import Collection, Edit, StoredObject
from kubestow.apiserver.watched_objects import HISTORY_MAX, WatchedObjects
from kubestow.apiserver.writes import namespaces
from kubestow.apiserver.writes.admission import (
    Admitted,
    admit_change,
    admit_new,
    admit_pod_update,
    decoded,
)
from kubestow.apiserver.writes.binding import bound, require_node_name
from kubestow.apiserver.writes.defaults import apply_defaults
from kubestow.apiserver.writes.deletion import after_delete, is_finished, is_removed_at_once
from kubestow.apiserver.writes.dropped_fields import drop_disabled
from kubestow.apiserver.writes.names import require_stored_names
from kubestow.apiserver.writes.patch import apply_patch
from kubestow.apiserver.writes.pod_admission import PodAdmission
from kubestow.apiserver.writes.pod_updates import with_claim_statuses
from kubestow.apiserver.writes.server_fields import (
    SERVER_FIELDS,
    has_other_content,
    require_same,
    with_server_parts,
)
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, removed_at, whole_seconds
from kubestow.cluster.requests import PatchType
from kubestow.cluster.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    NODES,
    PODS,
    ApiResource,
    ResourceTable,
    Subresource,
    default_resources,
)
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.errors import DecodeError, InvalidError

GENERATED_NAME_TRIES: Final = 8

# Metadata of a new object that is not taken from its document as it is.
_ALWAYS_SET: Final = frozenset(("namespace",))
_SET_ON_ADMISSION: Final = frozenset(("namespace", *SERVER_FIELDS))

# Created first when several objects are loaded, because admission of the others looks them up.
LOADED_FIRST: Final = (
    "CustomResourceDefinition", "Namespace", "PriorityClass", "RuntimeClass", "StorageClass",
    "Workload",
)  # fmt: skip


class MemoryCluster(WatchedObjects):
    """What an API server stores, and the rules that it applies to every request."""

    def __init__(
        self,
        clock: Clock,
        *,
        resources: ResourceTable | None = None,
        admission: bool = True,
        namespace_lifecycle: bool = False,
        lists_as_created: bool = False,
        history_max: int = HISTORY_MAX,
        seed: int = 0,
        gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        """`admission=False` stores objects unchanged: recorded ones have their defaults already.

        With `namespace_lifecycle` objects are created only in namespaces that exist, and a deleted
        namespace stays until `finalize_namespace`; without it namespaces are only names. A deleted
        definition of a custom resource stays likewise until its objects are deleted. `gates` are
        those of the API server: fields of features that are off are dropped.

        With `lists_as_created` whole lists are in the order of creation, not of names: a scheduler
        that starts then sees nodes and pods in the order in which one that was there has seen them.
        """
        if resources is None:
            resources = default_resources(gates.edition.pod_group_version)
        super().__init__(resources, history_max=history_max, lists_as_created=lists_as_created)
        self.gates: Final = gates
        self._clock = clock
        self._admission = admission
        self._namespace_lifecycle = namespace_lifecycle
        self._identities = IdentitySource(seed)
        self._pod_admission = PodAdmission()

    # --- Writing ------------------------------------------------------------------------------

    def create(
        self, resource: ApiResource, document: JsonObject, *, admission: bool | None = None
    ) -> StoredObject:
        """Store a new object. A status given is kept, so that a cluster can be set up by hand.

        `admission` overrides the setting of the cluster. Without admission the object also keeps
        its own UID, creation time and generation.
        """
        is_admitted = self._admission if admission is None else admission
        collection = self._collection(resource)
        version = self._version + 1
        metadata = self._new_metadata(collection, as_object(document.get("metadata")), is_admitted)
        metadata["resourceVersion"] = str(version)
        document = {
            **document,
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": metadata,
        }
        if self._namespace_lifecycle:
            document = self._in_lifecycle(resource, document)
        if not is_admitted:
            admitted = Admitted(document, decoded(resource, document))
        elif resource is PODS:
            admitted = self._pod_admission.admit(document, self)
        else:
            admitted = admit_new(resource, document, self)
        new = StoredObject(resource, admitted.document, version, admitted.typed)
        if new.key in collection.objects:
            raise already_exists(resource, new.name)
        return self._commit(collection, None, new)

    def load(
        self, documents: Iterable[JsonObject], *, admission: bool | None = None
    ) -> tuple[StoredObject, ...]:
        """Create each document by its kind, first those that admission of others reads.

        A document of any kind is checked for wrong types, and loses the fields that its kind does
        not have, as one that a client sends. Pods and nodes are decoded when they are created.
        Without admission names are still checked.
        """
        ordered = sorted(documents, key=lambda document: document.get("kind") not in LOADED_FIRST)
        return tuple(self._load_one(document, admission) for document in ordered)

    def take_uids(self, uids: Iterable[str]) -> None:
        """Objects with these UIDs are loaded later; no object gets one of them until then."""
        self._identities.take(uids)

    def _load_one(self, document: JsonObject, admission: bool | None) -> StoredObject:
        served = self.served.of_kind(document.get("apiVersion", ""), document.get("kind", ""))
        if served.stored not in (PODS, NODES):
            document = served.read(document).document
        document = served.to_store(served.admit(document))
        if admission is False:
            require_stored_names(served.stored, as_object(document.get("metadata")))
        return self.create(served.stored, document, admission=admission)

    def update(
        self, resource: ApiResource, document: JsonObject, *, subresource: Subresource = ""
    ) -> StoredObject:
        """Replace an object. A resource version or UID in the document must be the stored one."""
        metadata = as_object(document.get("metadata"))
        namespace = _namespace(resource, metadata)
        old = self.get(resource, namespace, metadata.get("name") or "")
        return self._change(old, document, subresource)

    def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        patch_type: PatchType = "strategic",
        *,
        subresource: Subresource = "",
    ) -> StoredObject:
        """Change a part of an object."""
        old = self.get(resource, namespace, name)
        schema = schema_of(resource.group, resource.version, resource.kind)
        patched = apply_patch(old.document, patch, patch_type, schema=schema)
        return self._change(old, patched, subresource)

    def change(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        edit: Callable[[JsonObject], JsonObject],
        *,
        subresource: Subresource = "",
        is_part: bool = False,
    ) -> StoredObject:
        """Replace an object by the result of a function, which must not modify the document.

        With `is_part` the function writes a part that other requests may not write.
        """
        old = self.get(resource, namespace, name)
        return self._change(old, edit(old.document), subresource, is_part=is_part)

    def write_status(self, old: StoredObject, status: Object, edit: Edit) -> StoredObject:
        """Store another status of an object, made by a part of this process.

        `old` is the newest version, and the status differs from its own; it is what that of the
        document converts to that `edit` makes of the old one. Nothing of that is checked.
        """
        new = old.edited(self._version + 1, edit, status=status)
        return self._commit(self._collection(old.resource), old, new)

    def replace(self, resource: ApiResource, document: JsonObject) -> StoredObject:
        """Store a version of an object as it is, with its status and without admission."""
        metadata: JsonObject = document["metadata"]
        old = self.get(resource, _namespace(resource, metadata), metadata["name"])
        return self._commit(self._collection(resource), old, self._next(old, document))

    def delete(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
        finalizer: str = "",
    ) -> StoredObject:
        """Delete an object, or mark it as terminating; return its last or its marked state.

        A `finalizer` is added to the object first: a controller that watches for it acts before
        the object is removed.
        """
        old = self.get(resource, namespace, name)
        require_same(old, uid=uid, resource_version=resource_version)
        pod = old.known_typed
        if isinstance(pod, Pod) and not finalizer and is_removed_at_once(pod, grace_period_s):
            return self._remove(self._collection(resource), old)
        if self._namespace_lifecycle and resource is NAMESPACES:
            namespaces.require_deletable(name)
        if self._namespace_lifecycle and resource is CUSTOM_RESOURCE_DEFINITIONS:
            finalizer = CLEANUP
        document = after_delete(
            resource,
            old.document,
            grace_period_s=grace_period_s,
            now_ns=self._clock.now_ns(),
            finalizer=finalizer,
            is_held=self._is_held(old.document),
        )
        collection = self._collection(resource)
        if document is None:
            return self._remove(collection, old)
        if document is old.document:
            return old
        if self._is_held(document):
            document = namespaces.terminating(document)
        return self._commit(collection, old, self._next(old, document))

    def finish_termination(self, namespace: str, name: str) -> StoredObject:
        """Do what a kubelet does when a pod's containers have ended: remove the pod."""
        return self.delete(PODS, namespace, name, grace_period_s=0)

    def finalize_namespace(self, name: str) -> StoredObject:
        """Remove the finalizer of a namespace whose content is gone, and so the namespace."""
        old = self.get(NAMESPACES, "", name)
        document = removed_at(old.document, ("spec", "finalizers"))
        collection = self._collection(NAMESPACES)
        if is_finished(document["metadata"]):
            return self._remove(collection, old)
        if document is old.document:
            return old
        return self._commit(collection, old, self._next(old, document))

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> StoredObject:
        """Place a pod on a node (the binding subresource); ConflictError if it has a node."""
        if not node_name:
            raise invalid("Binding", name, ["target.name: Required value"])
        if self.gates.edition.api.checks_binding_targets:
            require_node_name(name, node_name)
        collection = self._collection(PODS)
        old = collection.objects.get((namespace, name))
        if old is None:
            raise not_found(PODS, name)
        version = self._version + 1
        new = bound(old, node_name, uid=uid, version=version, now_ns=self._clock.now_ns())
        return self._commit(collection, old, new)

    # --- Inside -------------------------------------------------------------------------------

    def _new_metadata(
        self, collection: Collection, given: JsonObject, is_admitted: bool
    ) -> JsonObject:
        """Metadata of an object about to be created, all but its resource version."""
        resource = collection.resource
        replaced = _SET_ON_ADMISSION if is_admitted else _ALWAYS_SET
        metadata = {
            key: value for key, value in given.items() if value is not None and key not in replaced
        }
        namespace = _namespace(resource, given)
        if namespace:
            metadata["namespace"] = namespace
        if not metadata.get("name"):
            metadata["name"] = self._new_name(collection, namespace, given.get("generateName"))
        uid = self._identities.next_uid()
        if "uid" in metadata:
            self._identities.take((metadata["uid"],))
        else:
            metadata["uid"] = uid
        metadata.setdefault("creationTimestamp", whole_seconds(self._clock.now_ns()))
        if resource.has_generation:
            metadata.setdefault("generation", 1)
        return metadata

    def _new_name(self, collection: Collection, namespace: str, prefix: Any) -> str:
        if not prefix:
            kind = collection.resource.kind
            detail = "metadata.name: Required value: name or generateName is required"
            raise invalid(kind, "", [detail])
        for _ in range(GENERATED_NAME_TRIES):
            name = self._identities.next_name(prefix)
            if (namespace, name) not in collection.objects:
                return name
        raise already_exists(collection.resource, prefix)

    def _change(
        self,
        old: StoredObject,
        wanted: JsonObject,
        subresource: Subresource,
        *,
        is_part: bool = False,
    ) -> StoredObject:
        """Store the parts of the wanted document that a request on the (sub)resource may change."""
        metadata = as_object(wanted.get("metadata"))
        require_same(
            old,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
        )
        if subresource == "status":
            status = as_object(wanted.get("status"))
            if old.resource is PODS and self.gates.edition.api.keeps_claim_statuses:
                status = with_claim_statuses(status, old.document)
            document = {**old.document, "status": status}
        else:
            document = with_server_parts(old, wanted)
            if self._is_held(old.document):
                document = namespaces.with_finalizer(document)
            if self._admission and not old.resource.is_custom:
                document = apply_defaults(drop_disabled(document, old.document, self.gates))
                if old.resource is PODS:
                    document = admit_pod_update(old.document, document, self)
        if document == old.document:
            # As a real server: a write without changes makes no version and no event.
            return old
        if not subresource and old.resource.has_generation and has_other_content(old, document):
            generation = (old.metadata.get("generation") or 0) + 1
            document["metadata"] = {**document["metadata"], "generation": generation}
        collection = self._collection(old.resource)
        new = self._next(old, document)
        if self._admission and not subresource:
            admit_change(old, new, self, is_part=is_part)
        if is_finished(document["metadata"]) and not self._is_held(document):
            return self._remove(collection, old)
        return self._commit(collection, old, new)

    def _in_lifecycle(self, resource: ApiResource, document: JsonObject) -> JsonObject:
        """The document as it may be created; ApiError if its namespace accepts no new objects."""
        if resource is NAMESPACES:
            return namespaces.with_finalizer(document)
        if resource.namespaced:
            metadata: JsonObject = document["metadata"]
            namespace: str = metadata["namespace"]
            found = self.find(NAMESPACES, "", namespace)
            namespaces.require_open(resource, metadata["name"], namespace, found)
        return document

    def _is_held(self, document: JsonObject) -> bool:
        """Whether something besides finalizers keeps an object that is being deleted."""
        if not self._namespace_lifecycle or document["kind"] != NAMESPACES.kind:
            return False
        return namespaces.is_held(document)

    def _next(self, old: StoredObject, document: JsonObject) -> StoredObject:
        """The next version of an object; InvalidError if the document does not decode."""
        version = self._version + 1
        metadata = {**document["metadata"], "resourceVersion": str(version)}
        try:
            new = old.followed_by({**document, "metadata": metadata}, version)
            _ = new.typed
        except DecodeError as error:
            raise InvalidError(str(error)) from error
        return new


def _namespace(resource: ApiResource, metadata: JsonObject) -> str:
    return (metadata.get("namespace") or "default") if resource.namespaced else ""
