"""Deletes the content of terminating namespaces, then finalizes them."""

from collections.abc import Iterable

from kubestow.apiserver.controllers.emptying import EmptyingController
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import Selection
from kubestow.apiserver.watch import Watch
from kubestow.cluster.resources import NAMESPACES


class NamespaceController(EmptyingController):
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
