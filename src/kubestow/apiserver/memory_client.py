"""The client of the embedded API server: the same requests, answered in process.

Nothing here ever waits, so awaiting an answer does not yield to other tasks; only reading a
watch waits. Typed objects are shared with the server, not copied.
"""

from typing import Any, TypeVar, cast

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import too_large_version
from kubestow.apiserver.selectors import Selection, parse_selection
from kubestow.apiserver.store import StoredObject, parse_version
from kubestow.cluster.client import ClusterClient, Listing, ObjectWatch, update_patch
from kubestow.cluster.pod_status import pod_status_patch
from kubestow.cluster.requests import (
    BindPod,
    Create,
    CreateEvent,
    Delete,
    DeletePod,
    Get,
    IsServed,
    ListAndWatch,
    ListObjects,
    Patch,
    PatchPodStatus,
    Request,
    Update,
    WatchObjects,
)
from kubestow.cluster.resources import EVENTS, PODS, ApiResource
from kubestow.errors import GoneError, NotFoundError

T = TypeVar("T", bound=ApiObject)


class MemoryClient(ClusterClient):
    """A client of a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    @property
    def host(self) -> str:
        return "memory"

    async def send(self, request: Request) -> Any:
        return self.answer(request)

    def answer(self, request: Request) -> Any:
        """What `send` returns."""
        cluster = self._cluster
        match request:
            case BindPod(pod, node_name):
                metadata = pod.metadata
                cluster.bind(metadata.namespace, metadata.name, node_name, uid=metadata.uid)
            case PatchPodStatus(pod, condition, nominated_node_name):
                patch = pod_status_patch(
                    pod, condition=condition, nominated_node_name=nominated_node_name
                )
                if patch:
                    cluster.patch(PODS, *request.key, patch, subresource="status")
            case CreateEvent(event):
                cluster.create(EVENTS, to_document(event))
            case Get(cls, namespace, name):
                return cluster.get(self._resource(cls), namespace, name).typed
            case Create(new):
                return cluster.create(self._resource(type(new)), to_document(new)).typed
            case Update(new, old, subresource):
                patch = update_patch(old, new)
                if not patch:
                    return old
                key = old.metadata.namespace, old.metadata.name
                return self.answer(Patch(type(old), *key, patch, "merge", subresource))
            case Patch(cls, namespace, name, patch, patch_type, subresource):
                return cluster.patch(
                    self._resource(cls), namespace, name, patch, patch_type, subresource=subresource
                ).typed
            case Delete(cls, namespace, name, uid, grace_period_s):
                cluster.delete(
                    self._resource(cls), namespace, name, uid=uid, grace_period_s=grace_period_s
                )
            case DeletePod(pod):
                cluster.delete(PODS, *request.key, uid=pod.metadata.uid)
            case ListObjects(cls, namespace, field_selector, label_selector):
                selection = self._selection(cls, field_selector, label_selector, namespace)
                page = cluster.list(self._resource(cls), selection)
                return [stored.typed for stored in page.items]
            case ListAndWatch(cls, field_selector, label_selector, resource_version):
                return self._list_and_watch(
                    cls,
                    self._selection(cls, field_selector, label_selector),
                    parse_version(resource_version),
                )
            case WatchObjects(cls, resource_version, namespace, field_selector, label_selector):
                selection = self._selection(cls, field_selector, label_selector, namespace)
                return self._watch(cls, selection, parse_version(resource_version))
            case IsServed(cls):
                return self._is_served(cls)
            case _:
                raise NotImplementedError(request.verb)

    def _is_served(self, cls: type[ApiObject]) -> bool:
        try:
            self._resource(cls)
        except NotFoundError:
            return False
        return True

    def _list_and_watch(self, cls: type[T], selection: Selection, version: int) -> Listing[T]:
        if version > self._cluster.version:
            # Not reached yet, or of another store, which this one may never reach.
            raise GoneError(str(too_large_version(version, self._cluster.version)))
        page = self._cluster.list(self._resource(cls), selection, version=version)
        return Listing(
            items=[_typed(cls, stored) for stored in page.items],
            resource_version=str(page.version),
            watch=self._watch(cls, selection, page.version),
        )

    def _resource(self, cls: type[ApiObject]) -> ApiResource:
        return self._cluster.resources.of_type(cls)

    def _selection(
        self, cls: type[ApiObject], field_selector: str, label_selector: str, namespace: str = ""
    ) -> Selection:
        return parse_selection(
            self._resource(cls),
            namespace=namespace,
            field_selector=field_selector,
            label_selector=label_selector,
        )

    def _watch(self, cls: type[T], selection: Selection, version: int) -> ObjectWatch[T]:
        watch = self._cluster.watch(
            self._resource(cls), selection, from_version=version, bookmarks=True
        )
        # The store holds any kind; this watch is of one resource, whose objects have one type.
        return cast(ObjectWatch[T], watch)


def _typed(cls: type[T], stored: StoredObject) -> T:
    typed = stored.typed
    assert isinstance(typed, cls), typed
    return typed
