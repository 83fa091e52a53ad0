"""The client of the embedded API server: the same requests, answered in process.

Nothing here ever waits, so awaiting these methods does not yield to other tasks; only reading a
watch waits. Typed objects are shared with the server, not copied.
"""

from collections.abc import Sequence
from typing import TypeVar, cast

from kubestow.api.coordination import Event
from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import too_large_version
from kubestow.apiserver.selectors import Selection, parse_selection
from kubestow.apiserver.store import StoredObject, parse_version
from kubestow.cluster.client import Listing, ObjectWatch, PatchType, update_patch
from kubestow.cluster.pod_status import pod_status_patch
from kubestow.cluster.resources import EVENTS, PODS, ApiResource, Subresource
from kubestow.errors import GoneError, NotFoundError

T = TypeVar("T", bound=ApiObject)


class MemoryClient:
    """A `ClusterClient` of a `MemoryCluster`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    @property
    def host(self) -> str:
        return "memory"

    async def is_served(self, cls: type[ApiObject]) -> bool:
        try:
            self._resource(cls)
        except NotFoundError:
            return False
        return True

    async def get(self, cls: type[T], namespace: str, name: str) -> T:
        return _typed(cls, self._cluster.get(self._resource(cls), namespace, name))

    async def list(
        self,
        cls: type[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> Sequence[T]:
        resource = self._resource(cls)
        selection = parse_selection(
            resource,
            namespace=namespace,
            field_selector=field_selector,
            label_selector=label_selector,
        )
        return [_typed(cls, stored) for stored in self._cluster.list(resource, selection).items]

    async def list_and_watch(
        self,
        cls: type[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        resource_version: str = "",
    ) -> Listing[T]:
        selection = self._selection(cls, field_selector, label_selector)
        version = parse_version(resource_version)
        if version > self._cluster.version:
            # Not reached yet, or of another store, which this one may never reach.
            raise GoneError(str(too_large_version(version, self._cluster.version)))
        page = self._cluster.list(self._resource(cls), selection, version=version)
        return Listing(
            items=[_typed(cls, stored) for stored in page.items],
            resource_version=str(page.version),
            watch=self._watch(cls, selection, page.version),
        )

    async def watch(
        self,
        cls: type[T],
        *,
        resource_version: str,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> ObjectWatch[T]:
        selection = self._selection(cls, field_selector, label_selector, namespace)
        return self._watch(cls, selection, parse_version(resource_version))

    async def create(self, new: T) -> T:
        cls = type(new)
        return _typed(cls, self._cluster.create(self._resource(cls), to_document(new)))

    async def update(self, old: T, new: T, *, subresource: Subresource = "") -> T:
        patch = update_patch(old, new)
        if not patch:
            return old
        metadata = old.metadata
        return await self.patch(
            type(old),
            metadata.namespace,
            metadata.name,
            patch,
            "merge",
            subresource=subresource,
        )

    async def patch(
        self,
        cls: type[T],
        namespace: str,
        name: str,
        patch: JsonObject,
        patch_type: PatchType = "strategic",
        *,
        subresource: Subresource = "",
    ) -> T:
        stored = self._cluster.patch(
            self._resource(cls), namespace, name, patch, patch_type, subresource=subresource
        )
        return _typed(cls, stored)

    async def delete(
        self,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        self._cluster.delete(
            self._resource(cls), namespace, name, uid=uid, grace_period_s=grace_period_s
        )

    async def bind(self, pod: Pod, node_name: str) -> None:
        metadata = pod.metadata
        self._cluster.bind(metadata.namespace, metadata.name, node_name, uid=metadata.uid)

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        patch = pod_status_patch(pod, condition=condition, nominated_node_name=nominated_node_name)
        if patch:
            metadata = pod.metadata
            self._cluster.patch(
                PODS, metadata.namespace, metadata.name, patch, subresource="status"
            )

    async def delete_pod(self, pod: Pod) -> None:
        metadata = pod.metadata
        self._cluster.delete(PODS, metadata.namespace, metadata.name, uid=metadata.uid)

    async def create_event(self, event: Event) -> None:
        self._cluster.create(EVENTS, to_document(event))

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
