"""The objects of all resources under one resource version, and the watches of them.

Invariants: versions only grow; a watch gets the changes of its resource in the order of their
versions; documents passed in and out are shared and never modified.
Not here: which writes are allowed, and what is stored for them (`memory`).
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.custom.definitions import Definitions
from kubestow.apiserver.refusals import not_found, too_large_version
from kubestow.apiserver.selectors import EVERYTHING, Selection
from kubestow.apiserver.served import ServedTable
from kubestow.apiserver.store import (
    Change,
    Collection,
    Key,
    StoredObject,
    decode_token,
    encode_token,
)
from kubestow.apiserver.subscribers import Subscribers
from kubestow.apiserver.traits import ANY
from kubestow.apiserver.watch import EventTest, Watch, WatchEvent, event_of
from kubestow.cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, ApiResource, ResourceTable

HISTORY_MAX: Final = 16_384  # changes kept per resource
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class ObjectPage(NamedTuple):
    """The result of a list: objects by namespace and name, all as of one version."""

    items: list[StoredObject]
    version: int
    # Empty on the last page; else the argument for the next one.
    continue_token: str = ""
    remaining_count: int = 0


class MemoryStatistics(msgspec.Struct, frozen=True):
    version: int
    object_counts: dict[str, int]
    watch_count: int


class WatchedObjects:
    """What an API server stores. What writes derives from it, and calls `_commit` and `_remove`."""

    def __init__(
        self, resources: ResourceTable, *, history_max: int, lists_as_created: bool
    ) -> None:
        self.resources: Final = resources
        self.served: Final = ServedTable(resources)
        self._definitions = Definitions(self.served)
        self._lists_as_created = lists_as_created
        self._is_dry_run = False
        self._history_max = history_max
        self._version = 0
        self._collections: dict[str, Collection] = {}
        self._subscribers: dict[str, Subscribers] = {}

    @property
    def version(self) -> int:
        """The resource version of the latest write to any resource."""
        return self._version

    def statistics(self) -> MemoryStatistics:
        return MemoryStatistics(
            version=self._version,
            object_counts={
                name: len(collection.objects)
                for name, collection in self._collections.items()
                if collection.objects
            },
            watch_count=sum(len(each.watches) for each in self._subscribers.values()),
        )

    # --- Reading ------------------------------------------------------------------------------

    def get(self, resource: ApiResource, namespace: str, name: str) -> StoredObject:
        """The object as it is now; NotFoundError if there is none."""
        found = self.find(resource, namespace, name)
        if found is None:
            raise not_found(resource, name)
        return found

    def find(self, resource: ApiResource, namespace: str, name: str) -> StoredObject | None:
        """The object as it is now, None if there is none."""
        return self._collection(resource).objects.get((namespace, name))

    def objects_by_key(self, resource: ApiResource) -> Mapping[Key, StoredObject]:
        """The objects of a built-in resource as they are at any time, by namespace and name."""
        return self._collection(resource).objects

    def objects_of(self, resource: ApiResource) -> Iterable[StoredObject]:
        """All objects of a resource, in the order in which they were created."""
        return self._collection(resource).objects.values()

    def version_of(self, resource: ApiResource) -> int:
        """The resource version of the latest write to a resource; 0 if there was none."""
        return self._collection(resource).version

    def has_any(self, resource: ApiResource) -> bool:
        """Whether there is an object of a resource."""
        return bool(self._collection(resource).objects)

    def list(
        self,
        resource: ApiResource,
        selection: Selection = EVERYTHING,
        *,
        version: int = 0,
        is_exact: bool = False,
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectPage:
        """The objects selected, in the order of namespace and name (see `lists_as_created`).

        `version` requests a state at least that new, with `is_exact` exactly that one. With `limit`
        the result comes in pages, all of them as of the first one's version.
        """
        after: Key | None = None
        if continue_token:
            version, after = decode_token(continue_token)
            is_exact = True
        if version > self._version:
            raise too_large_version(version, self._version)
        collection = self._collection(resource)
        if is_exact:
            objects = collection.objects_at(version)
        else:
            version, objects = self._version, collection.objects
        keys = [
            key
            for key, stored in objects.items()
            if (after is None or key > after)
            and (selection.is_everything or selection.selects(stored))
        ]
        if not self._lists_as_created or limit or is_exact:
            keys.sort()
        page = keys[:limit] if limit else keys
        remaining_count = len(keys) - len(page)
        return ObjectPage(
            items=[objects[key] for key in page],
            version=version,
            continue_token=encode_token(version, page[-1]) if remaining_count else "",
            remaining_count=remaining_count,
        )

    # --- Watching -----------------------------------------------------------------------------

    def watch(
        self,
        resource: ApiResource,
        selection: Selection = EVERYTHING,
        *,
        from_version: int = 0,
        bookmarks: bool = False,
        initial_events: bool = False,
        only_while: ApiResource | None = None,
        traits: int = ANY,
        concerns: EventTest | None = None,
        wakes: EventTest | None = None,
    ) -> Watch:
        """All changes after a version; GoneError if it is too old.

        From version 0 the watch begins with an ADDED event for every existing object; with
        `initial_events` too, followed by a bookmark that marks their end. Events of pods with none
        of the `traits` are left out, those that `concerns` refuses, and all while there is no
        object of the resource `only_while`; those that `wakes` refuses may be read later.
        """
        if from_version > self._version:
            raise too_large_version(from_version, self._version)
        collection = self._collection(resource)
        watch = Watch(
            selection,
            bookmarks=bookmarks,
            on_close=lambda closed: self._unsubscribe(resource, closed),
            only_while=only_while,
            traits=traits,
            concerns=concerns,
            wakes=wakes,
        )
        subscribers = self._subscribers_of(resource)
        if initial_events or from_version == 0:
            is_open = self._is_open(watch)
            for stored in self.list(resource, selection).items if is_open else ():
                if traits == ANY or subscribers.is_read(watch, Change(0, None, stored)):
                    watch.push(WatchEvent("ADDED", stored))
            if initial_events:
                end = self._bookmark(resource, {INITIAL_EVENTS_END: "true"})
                watch.push(WatchEvent("BOOKMARK", end))
        else:
            for change in collection.changes_since(from_version):
                if traits == ANY or subscribers.is_read(watch, change):
                    watch.offer(change, event_of(change))
        subscribers.add(watch)
        return watch

    def observe(self, resource: ApiResource, on_event: Callable[[WatchEvent], None]) -> None:
        """Call a function with every existing object, and with every change as it is written.

        It must not write to the store.
        """
        for stored in self.list(resource).items:
            on_event(WatchEvent("ADDED", stored))
        self._subscribers_of(resource).observe(on_event)

    def send_bookmarks(self) -> None:
        """Send a bookmark with the current version to every watch that requested bookmarks."""
        for name, subscribers in self._subscribers.items():
            bookmark = self._bookmark(self.resources.named(name))
            for watch in subscribers.watches:
                watch.offer_bookmark(bookmark)

    def close_watches(self) -> None:
        """End every watch, as a server that shuts down does; readers open new ones."""
        for subscribers in tuple(self._subscribers.values()):
            for watch in subscribers.watches:
                watch.close()

    # --- Storing ------------------------------------------------------------------------------

    @contextmanager
    def dry_run(self) -> Generator[None]:
        """Writes inside are checked and answered as usual, but change nothing (`dryRun=All`).

        Nothing may be awaited inside.
        """
        self._is_dry_run = True
        try:
            yield
        finally:
            self._is_dry_run = False

    def _collection(self, resource: ApiResource) -> Collection:
        name = resource.qualified_name
        collection = self._collections.get(name)
        if collection is None:
            collection = Collection(self.resources.named(name), history_max=self._history_max)
            self._collections[name] = collection
        return collection

    def _remove(self, collection: Collection, old: StoredObject) -> StoredObject:
        change = Change(self._version + 1, old, None)
        self._publish(collection, change)
        return change.last_state()

    def _commit(
        self, collection: Collection, old: StoredObject | None, new: StoredObject
    ) -> StoredObject:
        self._publish(collection, Change(new.version, old, new))
        return new

    def _publish(self, collection: Collection, change: Change) -> None:
        assert change.version == self._version + 1, change.version
        if self._is_dry_run:
            return
        self._version = change.version
        collection.apply(change)
        resource = collection.resource
        if resource is CUSTOM_RESOURCE_DEFINITIONS:
            self._follow_definition(change)
        if change.old is None or change.new is None:
            self._after_count(collection)
        subscribers = self._subscribers.get(resource.qualified_name)
        if subscribers is not None:
            subscribers.publish(change)

    def _after_count(self, collection: Collection) -> None:
        """Open or close the watches that depend on there being objects of a resource."""
        if len(collection.objects) > 1:
            return
        resource = collection.resource
        for subscribers in self._subscribers.values():
            if any(watch.only_while == resource for watch in subscribers.watches):
                subscribers.choose_again()

    def _is_open(self, watch: Watch) -> bool:
        return watch.only_while is None or self.has_any(watch.only_while)

    def _subscribers_of(self, resource: ApiResource) -> Subscribers:
        name = resource.qualified_name
        found = self._subscribers.get(name)
        if found is None:
            found = self._subscribers[name] = Subscribers(resource, self._is_open)
        return found

    def _follow_definition(self, change: Change) -> None:
        self._definitions.follow(change)
        name = change.key[1]
        if change.new is not None and name in self._collections:
            self._collections[name].redefine(self.resources.named(name))
        elif change.new is None:
            # Its objects are gone with it, and so are the watches of them.
            self._collections.pop(name, None)
            gone = self._subscribers.pop(name, None)
            for watch in () if gone is None else gone.watches:
                watch.close()

    def _bookmark(
        self, resource: ApiResource, annotations: dict[str, str] | None = None
    ) -> StoredObject:
        metadata: JsonObject = {"resourceVersion": str(self._version)}
        if annotations:
            metadata["annotations"] = annotations
        document: JsonObject = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": metadata,
        }
        return StoredObject(resource, document, self._version)

    def _unsubscribe(self, resource: ApiResource, closed: Watch) -> None:
        if (subscribers := self._subscribers.get(resource.qualified_name)) is not None:
            subscribers.remove(closed)
