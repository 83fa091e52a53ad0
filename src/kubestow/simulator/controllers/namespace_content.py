"""What every namespace has from the start: the account `default` and the server's certificate.

Both are made again when they are deleted, as long as their namespace is not; the certificate is
also put right when it is another one, as in a cluster that was loaded from a file. A namespace of
the system that is deleted is made again: node leases need theirs.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.apiserver.writes import namespaces
from kubestow.cluster.resources import NAMESPACES, ApiResource

SERVICE_ACCOUNT: Final = "default"
ROOT_CERTIFICATE: Final = "kube-root-ca.crt"


class NamespaceContent:
    def __init__(self, cluster: MemoryCluster, *, authority: bytes) -> None:
        self._cluster = cluster
        self._guard = Guard("namespace-content")
        accounts = cluster.resources.named("serviceaccounts")
        maps = cluster.resources.named("configmaps")
        certificate: JsonObject = {"data": {"ca.crt": authority.decode()}}
        # By resource and name: the content of an object that every namespace has.
        self._content: Final[Mapping[tuple[ApiResource, str], JsonObject]] = {
            (accounts, SERVICE_ACCOUNT): {},
            (maps, ROOT_CERTIFICATE): certificate,
        }

    async def run(self) -> None:
        """Follow the namespaces and what belongs in them until cancelled."""
        followed = (NAMESPACES, *(resource for resource, _ in self._content))
        group = WatchGroup(self._cluster.watch(resource) for resource in followed)
        try:
            while not group.is_closed:
                await group.wait()
                for event in group.events_nowait():
                    self._guard.run(event.stored, partial(self._handle, event))
        finally:
            group.close()
            self._guard.close()

    def _handle(self, event: WatchEvent) -> None:
        stored = event.stored
        if stored.resource is NAMESPACES:
            if event.type == "DELETED" and stored.name in namespaces.SYSTEM:
                self._cluster.create(NAMESPACES, {"metadata": {"name": stored.name}})
            self._fill(stored)
        elif (stored.resource, stored.name) in self._content:
            namespace = self._cluster.find(NAMESPACES, "", stored.key[0])
            if namespace is not None:
                self._fill(namespace)

    def _fill(self, namespace: StoredObject) -> None:
        newest = self._cluster.find(NAMESPACES, "", namespace.name)
        if newest is None or "deletionTimestamp" in newest.metadata:
            return
        for (resource, name), content in self._content.items():
            found = self._cluster.find(resource, namespace.name, name)
            if found is None:
                metadata = {"name": name, "namespace": namespace.name}
                self._cluster.create(resource, {**content, "metadata": metadata})
            elif found.document != {**found.document, **content}:
                self._cluster.update(resource, {**found.document, **content})
