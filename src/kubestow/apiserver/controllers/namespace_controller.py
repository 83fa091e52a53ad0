"""Deletes the content of terminating namespaces, then finalizes them.

One task per namespace: it deletes the objects in it, waits for those that take time (grace periods,
finalizers), and finalizes the namespace when none is left. While no namespace is terminating, the
only cost is a watch of the namespaces.
"""

import asyncio
from contextlib import suppress

from kubestow.apiserver.controllers.guard import RETRY_S_MAX, Faults
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import Selection
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.cluster.resources import NAMESPACES
from kubestow.errors import ConflictError, NotFoundError


class NamespaceController:
    """Run it beside a `MemoryCluster` made with `namespace_lifecycle`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._faults = Faults("namespace-controller")

    async def run(self) -> None:
        """Serve until cancelled."""
        watch = self._cluster.watch(NAMESPACES)
        emptied: set[str] = set()
        try:
            async with asyncio.TaskGroup() as tasks:
                while batch := await watch.next_batch():
                    for event in batch:
                        if _is_terminating(event) and event.stored.uid not in emptied:
                            emptied.add(event.stored.uid)
                            tasks.create_task(self._empty_until_done(event.stored))
        finally:
            watch.close()

    async def _empty_until_done(self, namespace: StoredObject) -> None:
        """Empty the namespace, and try again after a fault: no other task does."""
        while self._cluster.find(NAMESPACES, *namespace.key) is not None:
            try:
                await self._empty(namespace.name)
            except Exception as error:
                delay_s = self._faults.failed(namespace, error)
                await asyncio.sleep(RETRY_S_MAX if delay_s is None else delay_s)
            else:
                break
        self._faults.succeeded(namespace)

    async def _empty(self, namespace: str) -> None:
        """Delete all objects in the namespace, and the namespace once they are gone."""
        selection = Selection(namespace=namespace)
        group = WatchGroup(
            self._cluster.watch(resource, selection)
            for resource in self._cluster.resources
            if resource.namespaced
        )
        left: set[str] = set()
        try:
            while True:
                # The first events are all existing objects; deleting them causes more events.
                while events := group.events_nowait():
                    for event in events:
                        self._follow(event, left)
                if not left:
                    break
                group.drop_closed()  # a custom resource that was deleted meanwhile
                await group.wait()
        finally:
            group.close()
        with suppress(NotFoundError):
            self._cluster.finalize_namespace(namespace)

    def _follow(self, event: WatchEvent, left: set[str]) -> None:
        stored = event.stored
        if event.type == "DELETED":
            left.discard(stored.uid)
            return
        left.add(stored.uid)
        if "deletionTimestamp" not in stored.metadata:
            with suppress(NotFoundError, ConflictError):  # It may be gone or changed already.
                self._cluster.delete(stored.resource, *stored.key, uid=stored.uid)


def _is_terminating(event: WatchEvent) -> bool:
    return event.type != "DELETED" and "deletionTimestamp" in event.stored.metadata
