"""Deletes the objects of terminating definitions of custom resources, then the definitions."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.emptying import EmptyingController
from kubestow.apiserver.custom.rules import CLEANUP
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.watch import Watch
from kubestow.cluster.documents import as_list
from kubestow.cluster.resources import CUSTOM_RESOURCE_DEFINITIONS
from kubestow.errors import NotFoundError


class DefinitionController(EmptyingController):
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
