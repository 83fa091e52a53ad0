"""Deletes the objects of terminating definitions of custom resources, then the definitions.

One task per definition: it deletes its objects, waits for those with finalizers, and removes the
definition's own finalizer when none is left.
"""

import asyncio
from contextlib import suppress

from kubestow.apiserver.custom.rules import CLEANUP
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import Watch, WatchEvent
from kubestow.cluster.documents import as_list
from kubestow.cluster.resources import CUSTOM_RESOURCE_DEFINITIONS
from kubestow.errors import ConflictError, NotFoundError


class DefinitionController:
    """Run it beside a `MemoryCluster` made with `namespace_lifecycle`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    async def run(self) -> None:
        """Serve until cancelled."""
        watch = self._cluster.watch(CUSTOM_RESOURCE_DEFINITIONS)
        emptied: set[str] = set()
        try:
            async with asyncio.TaskGroup() as tasks:
                while batch := await watch.next_batch():
                    for event in batch:
                        if event.type == "DELETED":
                            emptied.discard(event.stored.uid)
                        elif _is_terminating(event) and event.stored.uid not in emptied:
                            emptied.add(event.stored.uid)
                            tasks.create_task(self._empty(event.stored.name))
        finally:
            watch.close()

    async def _empty(self, name: str) -> None:
        """Delete all objects of a definition, and the definition once they are gone."""
        try:
            watch = self._cluster.watch(self._cluster.resources.named(name))
        except NotFoundError:
            pass  # it was never served
        else:
            try:
                await self._delete_all(watch)
            finally:
                watch.close()
        with suppress(NotFoundError, ConflictError):
            self._remove_finalizer(name)

    async def _delete_all(self, watch: Watch) -> None:
        left: set[str] = set()
        while True:
            # The first events are all existing objects; deleting them causes more events.
            while events := watch.events_nowait():
                for event in events:
                    self._follow(event, left)
            if not left or watch.is_closed:
                return
            for event in await watch.next_batch():
                self._follow(event, left)

    def _follow(self, event: WatchEvent, left: set[str]) -> None:
        stored = event.stored
        if event.type == "DELETED":
            left.discard(stored.uid)
            return
        left.add(stored.uid)
        if "deletionTimestamp" not in stored.metadata:
            with suppress(NotFoundError, ConflictError):  # It may be gone or changed already.
                self._cluster.delete(stored.resource, *stored.key, uid=stored.uid)

    def _remove_finalizer(self, name: str) -> None:
        stored = self._cluster.get(CUSTOM_RESOURCE_DEFINITIONS, "", name)
        finalizers = as_list(stored.metadata.get("finalizers"))
        left = [finalizer for finalizer in finalizers if finalizer != CLEANUP]
        patch = {"metadata": {"finalizers": left or None}}
        self._cluster.patch(CUSTOM_RESOURCE_DEFINITIONS, "", name, patch, "merge")


def _is_terminating(event: WatchEvent) -> bool:
    return "deletionTimestamp" in event.stored.metadata
