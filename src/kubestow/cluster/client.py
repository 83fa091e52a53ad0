"""The requests a scheduler sends to an API server, real or embedded.

The engine reads and writes through the methods of `ClusterClient`. Each makes a value of its
request (`requests`) and sends it: a client is one method, `send`. `apiserver.memory_client` answers
from memory, `http` from a real server; others note, delay or refuse what they send on.

Objects go in and out as typed structs. A struct has only the fields the scheduler reads, so a
change is sent as the difference between two of them: fields that are not declared are never lost.

All methods raise the `ApiError` family. None of them retries, unless its docstring states it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from kubestow.api.coordination import Event
from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.documents import is_object
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
    PatchType,
    Request,
    Update,
    WatchObjects,
)
from kubestow.cluster.resources import Subresource

# Made by the client of an object that it cannot decode: UNDECODED exists, VANISHED was deleted.
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "UNDECODED", "VANISHED"]

PATCH_TYPES: Final[dict[str, PatchType]] = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

T = TypeVar("T", bound=ApiObject)
T_co = TypeVar("T_co", bound=ApiObject, covariant=True)


class ObjectEvent(Protocol[T_co]):
    """One event of a watch.

    The object of a BOOKMARK has only a version; if it was not decoded, also its name.
    """

    @property
    def type(self) -> EventType: ...

    @property
    def object(self) -> T_co: ...

    @property
    def resource_version(self) -> str: ...


class ObjectWatch(Protocol[T_co]):
    """The events of one resource, in order. Once it has ended, batches are empty."""

    @property
    def is_closed(self) -> bool: ...

    async def next_batch(self) -> Sequence[ObjectEvent[T_co]]:
        """The events that have arrived, waiting for the first; empty if the watch has ended.

        GoneError if the version followed is too old.
        """
        ...

    def close(self) -> None: ...


class CallingWatch(ABC, Generic[T]):
    """An `ObjectWatch` in this process, which can call a function instead of waking a task."""

    @abstractmethod
    async def call(self, on_batch: Callable[[Sequence[ObjectEvent[T]]], int]) -> None:
        """Call a function with the events of each turn of the loop, until the watch has ended.

        It returns how many it has handled; the others it gets again in the next turn.
        """


class Listing(NamedTuple, Generic[T]):
    """All objects of a kind as of one version, and a watch of everything after it."""

    items: Sequence[T]
    resource_version: str
    watch: ObjectWatch[T]
    # Namespace and name of objects that exist, but could not be decoded.
    undecoded: Sequence[tuple[str, str]] = ()


class ClusterClient:
    """The requests of a scheduler. Namespaces of kinds without one are the empty text."""

    @property
    def host(self) -> str:
        """The address of the server, for messages."""
        raise NotImplementedError

    async def send(self, request: Request) -> Any:
        """Send a request; the answer is what its class says."""
        raise NotImplementedError

    async def is_served(self, cls: type[ApiObject]) -> bool:
        """Whether the server has this kind."""
        return await self.send(IsServed(cls))

    async def get(self, cls: type[T], namespace: str, name: str) -> T:
        return await self.send(Get(cls, namespace, name))

    async def list(
        self,
        cls: type[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> Sequence[T]:
        return await self.send(ListObjects(cls, namespace, field_selector, label_selector))

    async def list_and_watch(
        self,
        cls: type[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        resource_version: str = "",
    ) -> Listing[T]:
        """All objects, at least as new as the version given, and a watch of what follows.

        Version "0" accepts any version. GoneError if the server cannot compare with the version,
        because it no longer has it or has not reached it; repeat without one.
        """
        return await self.send(ListAndWatch(cls, field_selector, label_selector, resource_version))

    async def watch(
        self,
        cls: type[T],
        *,
        resource_version: str,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
    ) -> ObjectWatch[T]:
        """What follows after a version; GoneError if that is too old."""
        return await self.send(
            WatchObjects(cls, resource_version, namespace, field_selector, label_selector)
        )

    async def create(self, new: T) -> T:
        return await self.send(Create(new))

    async def update(self, old: T, new: T, *, subresource: Subresource = "") -> T:
        """Make the changes from `old` to `new`; ConflictError if `old` is no longer the latest."""
        return await self.send(Update(new, old, subresource))

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
        return await self.send(Patch(cls, namespace, name, patch, patch_type, subresource))

    async def delete(
        self,
        cls: type[ApiObject],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        """Delete an object; with a UID only if it has that UID."""
        await self.send(Delete(cls, namespace, name, uid, grace_period_s))

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Place this pod (by UID) on a node (spec 09 §4.6, W1)."""
        await self.send(BindPod(pod, node_name))

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        """Write a condition and a nomination (W2 to W5); nothing is sent if the pod has both.

        ConflictError if there is another pod of this name. None leaves a part as it is, an empty
        node name removes the nomination. The condition is written as given:
        `pod_status.changed_condition` sets its times.
        """
        await self.send(PatchPodStatus(pod, condition, nominated_node_name))

    async def delete_pod(self, pod: Pod) -> None:
        """Delete this pod (by UID) with its own grace period (W6)."""
        await self.send(DeletePod(pod))

    async def create_event(self, event: Event) -> None:
        await self.send(CreateEvent(event))


def update_patch(old: ApiObject, new: ApiObject) -> JsonObject:
    """The JSON merge patch that makes the changes from `old` to `new`, and only to `old` itself."""
    before, after = to_document(old), to_document(new)
    # A spec or status that has only defaults is not encoded at all. The server may have further
    # fields in it, so such a part is compared field by field, never removed as a whole.
    parts: JsonObject = {key: {} for key, value in before.items() if is_object(value)}
    after = parts | after
    patch = _difference(before, after)
    if not patch:
        return {}
    metadata: JsonObject = patch.setdefault("metadata", {})
    metadata["resourceVersion"] = old.metadata.resource_version
    metadata["uid"] = old.metadata.uid
    return patch


def _difference(old: JsonObject, new: JsonObject) -> JsonObject:
    patch: JsonObject = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        patch[key] = _difference(before, value) if is_object(before) and is_object(value) else value
    return patch
