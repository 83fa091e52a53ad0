"""Garbage collection by owner references: dependents are deleted with their owners.

    owner deleted ─── Background ──► owner gone, then its dependents
                  ├── Foreground ──► dependents first; the owner waits for those that block it
                  └── Orphan ──────► dependents lose the reference and stay

An object is deleted when it has owners and none of them exists. The collector follows every
resource in the order of the writes and keeps the owners of each object; whether an owner exists is
read from the store, which is always up to date.

Not here: deleting the content of a namespace (`emptying`).
"""

from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.traits import ANY, FINALIZED, GONE, OWNED
from kubestow.apiserver.watch import Watch, WatchEvent, WatchGroup
from kubestow.cluster.documents import as_list, objects_in
from kubestow.cluster.resources import EVENTS, LEASES, PODS, ApiResource
from kubestow.errors import ConflictError, NotFoundError

# Added to an owner by the delete request, removed here when its dependents are handled.
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
FINALIZERS: Final = {"Foreground": FOREGROUND, "Orphan": ORPHAN, "Background": ""}

# Written often and never owned: not followed.
_NEVER_OWNED: Final = (EVENTS.qualified_name, LEASES.qualified_name)


class _Object(NamedTuple):
    """Resource, namespace and name of an object."""

    resource: ApiResource
    namespace: str
    name: str


class GarbageCollector:
    """Run it beside a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._guard = Guard("garbage-collector")
        # By UID: the owner references of each object, and the dependents of each owner.
        self._references: dict[str, list[JsonObject]] = {}
        self._dependents: dict[str, dict[str, _Object]] = {}
        # Objects with new owners, until the next check whether these exist.
        self._changed: list[StoredObject] = []
        # Owners that wait until their dependents are deleted.
        self._waiting: dict[str, _Object] = {}

    async def run(self) -> None:
        """Collect until cancelled."""
        group = WatchGroup(())
        watches: dict[str, Watch] = {}
        followed_count = 0
        try:
            while True:
                # A resource that is deleted ends its watch.
                if group.is_closed or len(self._cluster.resources) != followed_count:
                    self._follow_resources(group, watches)
                    followed_count = len(self._cluster.resources)
                await group.wait()
                self.handle(group.events_nowait())
        finally:
            group.close()
            self._guard.close()

    def _follow_resources(self, group: WatchGroup, watches: dict[str, Watch]) -> None:
        """Watch every resource: custom ones come and go."""
        group.drop_closed()
        for resource in self._cluster.resources:
            name = resource.qualified_name
            if name in _NEVER_OWNED:
                continue
            if name not in watches or watches[name].is_closed:
                # What `_concerns` accepts has one of these.
                traits = OWNED | FINALIZED | GONE if resource is PODS else ANY
                watches[name] = self._cluster.watch(
                    resource, traits=traits, concerns=self._concerns
                )
                group.add(watches[name])

    def _concerns(self, event: WatchEvent) -> bool:
        """Whether the object has owners or dependents, or is being deleted with conditions.

        A dependent of which the event is not handled yet finds out itself that its owner is gone.
        """
        metadata, uid = event.object.metadata, event.stored.uid
        return (
            bool(metadata.owner_references)
            or bool(metadata.finalizers)
            or uid in self._references
            or (event.type == "DELETED" and (uid in self._dependents or uid in self._waiting))
        )

    def handle(self, events: list[WatchEvent]) -> None:
        """Record all events first, then act: a dependent may come after its owner's deletion."""
        for event in events:
            self._guard.run(event.stored, partial(self._record_owners, event), "owners")
        for event in events:
            if event.type == "DELETED":
                self._guard.run(event.stored, partial(self._after_deletion, event.stored.uid))
            elif "deletionTimestamp" in event.stored.metadata:
                self._guard.run(event.stored, partial(self._handle_finalizers, event.stored))
        changed, self._changed = self._changed, []
        for stored in changed:
            self._guard.run(stored, partial(self._collect, _place(stored), stored.uid), "collect")
        for uid, place in list(self._waiting.items()):
            if (stored := self._find(place, uid)) is not None:
                self._guard.run(stored, partial(self._finish_waiting, place, uid), "finish")

    # --- Owners of each object ----------------------------------------------------------------

    def _record_owners(self, event: WatchEvent) -> None:
        """Record an object's owners, and the object itself if it has some and they changed."""
        stored = event.stored
        references: list[JsonObject] = []
        if event.type != "DELETED":
            references = stored.metadata.get("ownerReferences") or []
        known = self._references.get(stored.uid)
        if references is known or (not references and known is None):
            return
        for owner in known or ():
            dependents = self._dependents.get(owner.get("uid", ""), {})
            dependents.pop(stored.uid, None)
            if not dependents:
                self._dependents.pop(owner.get("uid", ""), None)
        if not references:
            del self._references[stored.uid]
            return
        self._references[stored.uid] = references
        for owner in objects_in(references):
            self._dependents.setdefault(owner.get("uid", ""), {})[stored.uid] = _place(stored)
        self._changed.append(stored)

    # --- Dependents ---------------------------------------------------------------------------

    def _after_deletion(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        for dependent_uid, place in list(self._dependents.get(uid, {}).items()):
            self._collect(place, dependent_uid)

    def _collect(self, place: _Object, uid: str) -> None:
        """Delete the object if all its owners are gone; remove dangling references."""
        stored = self._find(place, uid)
        if stored is None or "deletionTimestamp" in stored.metadata:
            return
        references = objects_in(stored.metadata.get("ownerReferences"))
        alive = [owner for owner in references if self._exists(owner, place.namespace)]
        if len(alive) == len(references):
            return
        if alive:
            self._replace_references(place, uid, alive)
        else:
            self._delete(place, uid)

    def _exists(self, owner: JsonObject, namespace: str) -> bool:
        try:
            api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
            resource = self._cluster.served.of_kind(api_version, kind).stored
        except NotFoundError:
            return True  # An owner of an unknown kind cannot be looked up.
        found = self._cluster.find(
            resource, namespace if resource.namespaced else "", owner.get("name", "")
        )
        return found is not None and found.uid == owner.get("uid")

    # --- Owners that wait ---------------------------------------------------------------------

    def _handle_finalizers(self, owner: StoredObject) -> None:
        """Orphan or delete the dependents of a terminating owner, as its finalizers require."""
        finalizers = as_list(owner.metadata.get("finalizers"))
        place, uid = _place(owner), owner.uid
        if ORPHAN in finalizers:
            for dependent_uid, dependent in list(self._dependents.get(uid, {}).items()):
                others = [
                    reference
                    for reference in objects_in(self._references.get(dependent_uid))
                    if reference.get("uid") != uid
                ]
                self._replace_references(dependent, dependent_uid, others)
            self._remove_finalizer(place, uid, ORPHAN)
        elif FOREGROUND in finalizers and uid not in self._waiting:
            self._waiting[uid] = place
            for dependent_uid, dependent in list(self._dependents.get(uid, {}).items()):
                has_own = dependent_uid in self._dependents
                self._delete(dependent, dependent_uid, FOREGROUND if has_own else "")

    def _finish_waiting(self, place: _Object, uid: str) -> None:
        blocking = any(
            reference.get("blockOwnerDeletion") and reference.get("uid") == uid
            for dependent_uid in self._dependents.get(uid, {})
            for reference in objects_in(self._references.get(dependent_uid))
        )
        if not blocking:
            self._waiting.pop(uid, None)
            self._remove_finalizer(place, uid, FOREGROUND)

    # --- Writes: the object may be gone or changed already --------------------------------------

    def _find(self, place: _Object, uid: str) -> StoredObject | None:
        found = self._cluster.find(*place)
        return found if found is not None and found.uid == uid else None

    def _delete(self, place: _Object, uid: str, finalizer: str = "") -> None:
        with suppress(NotFoundError, ConflictError):
            self._cluster.delete(*place, uid=uid, finalizer=finalizer)

    def _replace_references(self, place: _Object, uid: str, references: list[JsonObject]) -> None:
        self._patch_metadata(place, uid, {"ownerReferences": references or None})

    def _remove_finalizer(self, place: _Object, uid: str, finalizer: str) -> None:
        stored = self._find(place, uid)
        if stored is not None:
            finalizers = as_list(stored.metadata.get("finalizers"))
            left = [other for other in finalizers if other != finalizer]
            self._patch_metadata(place, uid, {"finalizers": left or None})

    def _patch_metadata(self, place: _Object, uid: str, metadata: JsonObject) -> None:
        with suppress(NotFoundError, ConflictError):
            patch: JsonObject = {"metadata": {**metadata, "uid": uid}}
            self._cluster.patch(*place, patch, "merge")


def _place(stored: StoredObject) -> _Object:
    return _Object(stored.resource, *stored.key)
