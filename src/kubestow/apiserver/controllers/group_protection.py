"""Lets a pod group go that is being deleted, once no pod that has not ended refers to it."""

from kubestow.api.group import group_key_of
from kubestow.api.pod import Pod, is_terminal
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.apiserver.writes.groups import FINALIZER
from kubestow.cluster.documents import as_list
from kubestow.cluster.resources import POD_GROUPS, PODS


class GroupProtection:
    """Run it beside a `MemoryCluster` whose groups get the finalizer."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        # Groups that are being deleted, by namespace and name.
        self._deleted: dict[tuple[str, str], StoredObject] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        pods = self._cluster.watch(
            PODS, only_while=POD_GROUPS, concerns=lambda event: bool(self._deleted)
        )
        group = WatchGroup([self._cluster.watch(POD_GROUPS), pods])
        guard = Guard("podgroup-protection-controller")
        try:
            while True:
                await group.wait()
                for event in group.events_nowait():
                    for stored in self._affected(event):
                        guard.run(stored, lambda stored=stored: self._release(stored))
        finally:
            guard.close()
            group.close()

    def _affected(self, event: WatchEvent) -> list[StoredObject]:
        """The groups that may go because of an event."""
        stored = event.stored
        if stored.resource.kind == POD_GROUPS.kind:
            self._deleted.pop(stored.key, None)
            if event.type != "DELETED" and "deletionTimestamp" in stored.metadata:
                self._deleted[stored.key] = stored
                return [stored]
            return []
        if not self._deleted or not isinstance(stored.typed, Pod):
            return []
        key = group_key_of(stored.typed)
        found = None if key is None else self._deleted.get((key.namespace, key.name))
        return [] if found is None else [found]

    def _release(self, stored: StoredObject) -> None:
        current = self._cluster.find(POD_GROUPS, *stored.key)
        if current is None or current.uid != stored.uid or self._is_used(stored):
            return
        finalizers = as_list(current.metadata.get("finalizers"))
        left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
        if left != finalizers:
            patch = {"metadata": {"finalizers": left or None}}
            self._cluster.patch(POD_GROUPS, *stored.key, patch, "merge")

    def _is_used(self, stored: StoredObject) -> bool:
        for pod in self._cluster.objects_of(PODS):
            if isinstance(pod.typed, Pod) and not is_terminal(pod.typed):
                key = group_key_of(pod.typed)
                if key is not None and (key.namespace, key.name) == stored.key:
                    return True
        return False
