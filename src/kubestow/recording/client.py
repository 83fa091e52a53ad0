"""A client that notes how its requests end."""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.client import ClusterClient, Listing, ObjectWatch, PatchType
from kubestow.cluster.resources import Subresource
from kubestow.errors import ApiError
from kubestow.recording.recorder import Recorder

T = TypeVar("T", bound=ApiObject)
R = TypeVar("R", bound=ApiObject | None)

# Verb, kind, namespace and name of a request.
_Alike = tuple[str, type[ApiObject], str, str]


class RecordingClient:
    """Sends everything to another client.

    Lists and watches are those of informers, which the recorder follows; events are not read by a
    scheduler. All other answers are noted just before the caller gets them.
    """

    def __init__(self, client: ClusterClient, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        # The requests under way that are alike, in the order in which they were sent. Their answers
        # may come in another.
        self._open: dict[_Alike, list[object]] = {}

    @property
    def host(self) -> str:
        return self._client.host

    async def is_served(self, cls: type[ApiObject]) -> bool:
        return await self._client.is_served(cls)

    async def list(
        self,
        cls: type[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> Sequence[T]:
        return await self._client.list(
            cls, namespace=namespace, field_selector=field_selector, label_selector=label_selector
        )

    async def list_and_watch(
        self,
        cls: type[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        resource_version: str = "",
    ) -> Listing[T]:
        return await self._client.list_and_watch(
            cls,
            field_selector=field_selector,
            label_selector=label_selector,
            resource_version=resource_version,
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
        return await self._client.watch(
            cls,
            resource_version=resource_version,
            namespace=namespace,
            field_selector=field_selector,
            label_selector=label_selector,
        )

    async def create_event(self, event: Event) -> None:
        await self._client.create_event(event)

    async def get(self, cls: type[T], namespace: str, name: str) -> T:
        return await self._noted(
            "get", cls, namespace, name, self._client.get(cls, namespace, name)
        )

    async def create(self, new: T) -> T:
        metadata = new.metadata
        return await self._noted(
            "create", type(new), metadata.namespace, metadata.name, self._client.create(new)
        )

    async def update(self, old: T, new: T, *, subresource: Subresource = "") -> T:
        metadata = new.metadata
        call = self._client.update(old, new, subresource=subresource)
        return await self._noted("update", type(new), metadata.namespace, metadata.name, call)

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
        call = self._client.patch(cls, namespace, name, patch, patch_type, subresource=subresource)
        return await self._noted("patch", cls, namespace, name, call)

    async def delete(
        self,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        call = self._client.delete(cls, namespace, name, uid=uid, grace_period_s=grace_period_s)
        await self._noted("delete", cls, namespace, name, call)

    async def bind(self, pod: Pod, node_name: str) -> None:
        metadata = pod.metadata
        call = self._client.bind(pod, node_name)
        await self._noted("bind", Pod, metadata.namespace, metadata.name, call)

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        call = self._client.patch_pod_status(
            pod, condition=condition, nominated_node_name=nominated_node_name
        )
        await self._noted_of_pod("patch_pod_status", pod, call)

    async def delete_pod(self, pod: Pod) -> None:
        call = self._client.delete_pod(pod)
        await self._noted_of_pod("delete_pod", pod, call)

    async def _noted_of_pod(self, request: str, pod: Pod, call: Awaitable[None]) -> None:
        await self._noted(request, Pod, pod.metadata.namespace, pod.metadata.name, call)

    async def _noted(
        self, request: str, cls: type[ApiObject], namespace: str, name: str, call: Awaitable[R]
    ) -> R:
        alike: _Alike = (request, cls, namespace, name)
        sent = object()
        under_way = self._open.setdefault(alike, [])
        under_way.append(sent)
        try:
            answer = await call
        except ApiError as error:
            self._recorder.answered(*alike, error, under_way.index(sent))
            raise
        else:
            self._recorder.answered(*alike, answer, under_way.index(sent))
            return answer
        finally:
            under_way.remove(sent)
            if not under_way:
                del self._open[alike]
