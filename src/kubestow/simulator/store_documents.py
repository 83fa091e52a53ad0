"""The objects of a cluster in memory as the documents that a simulation, a plan or a file reads."""

from collections.abc import Collection

from kubestow.api.files import Document
from kubestow.apiserver.memory import MemoryCluster
from kubestow.simulator.manifests import READ_KINDS


def documents_of(store: MemoryCluster, kinds: Collection[str] = READ_KINDS) -> list[Document]:
    """The objects of these kinds as they are now; by default all that a scheduler reads."""
    return [
        Document(stored.document, f'{resource.qualified_name} "{stored.name}"')
        for resource in store.resources
        if resource.kind in kinds
        for stored in store.objects_of(resource)
    ]
