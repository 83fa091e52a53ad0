"""Deletes what a terminating object contains, then lets the object go.

One task per object: it deletes the content, waits for what takes time (grace periods, finalizers),
and finishes when nothing is left. While no object is terminating, the only cost is one watch.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from kubestow.apiserver.controllers.guard import RETRY_S_MAX, Faults
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import Watch, WatchEvent, WatchGroup
from kubestow.cluster.resources import ApiResource
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
