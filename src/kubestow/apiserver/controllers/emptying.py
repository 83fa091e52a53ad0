"""Deletes what a terminating namespace or definition contains, then lets it go.

One task per object: it deletes the content, waits for what takes time (grace periods, finalizers),
and finishes when nothing is left. While no object is terminating, the only cost is one watch.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from kubestow.apiserver.controllers.guard import RETRY_S_MAX, Faults
from kubestow.apiserver.custom.rules import CLEANUP
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import Selection
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import Watch, WatchEvent, WatchGroup
from kubestow.cluster.documents import as_list
from kubestow.cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, ApiResource
from kubestow.errors import ConflictError, NotFoundError


class EmptyingController:
    """Run it beside a `MemoryCluster` made with `namespace_lifecycle`."""

    def __init__(self, name: str, cluster: MemoryCluster, owners: ApiResource) -> None:
        self._cluster = cluster
        self._owners = owners
        self._faults = Faults(name)

    async def run(self) -> None:
        """Serve until cancelled."""
        watch = self._cluster.watch(self._owners)
        emptied: set[str] = set()
        try:
            async with asyncio.TaskGroup() as tasks:
                while batch := await watch.next_batch():
                    for event in batch:
                        if event.type == "DELETED":
                            emptied.discard(event.stored.uid)
                        elif _is_terminating(event.stored) and event.stored.uid not in emptied:
                            emptied.add(event.stored.uid)
                            tasks.create_task(self._empty_until_done(event.stored))
        finally:
            watch.close()

    def _content_of(self, name: str) -> Iterable[Watch]:
        """Watches of everything that the object of this name contains."""
        raise NotImplementedError

    def _finish(self, name: str) -> None:
        """Let the object go, which is empty; NotFoundError if it is gone."""
        raise NotImplementedError

    async def _empty_until_done(self, owner: StoredObject) -> None:
        """Empty the object, and try again after a fault: no other task does."""
        while self._cluster.find(self._owners, *owner.key) is not None:
            try:
                await self._empty(owner.name)
            except Exception as error:
                delay_s = self._faults.failed(owner, error)
                await asyncio.sleep(RETRY_S_MAX if delay_s is None else delay_s)
            else:
                break
        self._faults.succeeded(owner)

    async def _empty(self, name: str) -> None:
        """Delete all content, and the object once it is gone."""
        group = WatchGroup(self._content_of(name))
        left: set[str] = set()
        try:
            while True:
                # The first events are all existing objects; deleting them causes more events.
                while events := group.events_nowait():
                    for event in events:
                        self._follow(event, left)
                group.drop_closed()  # a custom resource that was deleted meanwhile
                if not left or group.is_empty:
                    break
                await group.wait()
        finally:
            group.close()
        with suppress(NotFoundError, ConflictError):
            self._finish(name)

    def _follow(self, event: WatchEvent, left: set[str]) -> None:
        stored = event.stored
        if event.type == "DELETED":
            left.discard(stored.uid)
            return
        left.add(stored.uid)
        if not _is_terminating(stored):
            with suppress(NotFoundError, ConflictError):  # It may be gone or changed already.
                self._cluster.delete(stored.resource, *stored.key, uid=stored.uid)


def _is_terminating(stored: StoredObject) -> bool:
    return "deletionTimestamp" in stored.metadata


class DefinitionController(EmptyingController):
    """Deletes the objects of terminating definitions of custom resources, then the definitions."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__("definition-controller", cluster, CUSTOM_RESOURCE_DEFINITIONS)

    def _content_of(self, name: str) -> Iterable[Watch]:
        try:
            return [self._cluster.watch(self._cluster.resources.named(name))]
        except NotFoundError:
            return []  # It was never served.

    def _finish(self, name: str) -> None:
        stored = self._cluster.get(CUSTOM_RESOURCE_DEFINITIONS, "", name)
        finalizers = as_list(stored.metadata.get("finalizers"))
        left = [finalizer for finalizer in finalizers if finalizer != CLEANUP]
        patch = {"metadata": {"finalizers": left or None}}
        self._cluster.patch(CUSTOM_RESOURCE_DEFINITIONS, "", name, patch, "merge")


class NamespaceController(EmptyingController):
    """Deletes the content of terminating namespaces, then finalizes them."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__("namespace-controller", cluster, NAMESPACES)

    def _content_of(self, name: str) -> Iterable[Watch]:
        selection = Selection(namespace=name)
        return [
            self._cluster.watch(resource, selection)
            for resource in self._cluster.resources
            if resource.namespaced
        ]

    def _finish(self, name: str) -> None:
        self._cluster.finalize_namespace(name)
