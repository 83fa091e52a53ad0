"""The API server of a run: serves writes one at a time, in the order of the recording.

The recorded scheduler had many goroutines. Those of its scheduling cycle are served at once; each
other write waits here until `serve_next` chooses it: by its kind, then by the name of its object.
The event of a write is handled by all informers before the next one is served.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.device import ResourceClaim
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod, first_condition, key_of
from kubestow.api.pod_group import UpstreamPodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.client import update_patch
from kubestow.cluster.documents import as_object
from kubestow.cluster.pod_status import group_status_patch, pod_status_patch
from kubestow.cluster.requests import (
    BindPod,
    Create,
    Delete,
    DeletePod,
    Patch,
    PatchPodStatus,
    Request,
    Update,
)
from kubestow.cluster.resources import PODS, Subresource
from kubestow.errors import ApiError

T = TypeVar("T", bound=ApiObject)
R = TypeVar("R")

BIND_FAILURE: Final = "the server is currently unable to handle the request"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"

# The pod whose binding cycle the current task runs.
binding_pod: ContextVar[str] = ContextVar("binding_pod", default="")


class Turn(IntEnum):
    """Who is served first when several wait."""

    STATUS = 0
    CLAIM = 1
    BINDING = 2
    DELETION = 3
    # Not a write: the pod of a failed binding cycle goes back to the queue.
    RETURN = 4


class _Request(NamedTuple):
    turn: Turn
    name: str
    # Pods that the write is about or made for; it waits while one of them is held.
    pods: tuple[str, ...]
    serve: Callable[[], Any]
    answer: asyncio.Future[Any]


class RunApi:
    """The writes of a scheduler that wait, and those that were served."""

    def __init__(self, cluster: MemoryCluster, deliver: Callable[[], None]) -> None:
        """`deliver` hands the events of a write to the informers."""
        self._cluster = cluster
        self._deliver = deliver
        self._waiting: list[_Request] = []
        self.held: set[str] = set()
        # Pod → how many of its next bindings fail.
        self.failing_bindings: dict[str, int] = {}
        # Whether a scheduling cycle runs: its own writes do not wait.
        self.is_in_cycle = False
        self.writes: list[JsonObject] = []

    async def request(
        self, turn: Turn, name: str, pods: tuple[str, ...], serve: Callable[[], R]
    ) -> R:
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Request(turn, name, pods, serve, answer))
        return await answer

    def serve_next(self) -> bool:
        """Serve the write whose turn it is; False if none may be served."""
        self._waiting = [request for request in self._waiting if not request.answer.done()]
        ready = [request for request in self._waiting if self.held.isdisjoint(request.pods)]
        if not ready:
            return False
        request = min(ready, key=lambda request: (request.turn, request.name))
        self._waiting.remove(request)
        try:
            request.answer.set_result(request.serve())
        except ApiError as error:
            request.answer.set_exception(error)
        return True

    # --- the writes ---

    def write(self, shown: JsonObject, write: Callable[[], R]) -> R:
        """Do a write and note it as the recording shows it.

        The events of a cycle's own writes are delivered at once. Other tasks go on with the answer
        until they wait for their next write; then the replay delivers the events.
        """
        self.writes.append(shown)
        try:
            result = write()
        except ApiError as error:
            shown["error"] = str(error)
            raise
        if self.is_in_cycle:
            self._deliver()
        return result

    def bind(self, pod: Pod, node_name: str) -> None:
        metadata, key = pod.metadata, key_of(pod)

        def write() -> None:
            self._cluster.get(PODS, metadata.namespace, metadata.name)  # Refused if it is gone.
            if self.failing_bindings.get(key, 0) > 0:
                self.failing_bindings[key] -= 1
                # Not a status of an API server, which v1.37 would answer with another try.
                raise ApiError(BIND_FAILURE, code=502, reason="Unknown")
            self._cluster.bind(metadata.namespace, metadata.name, node_name, uid=metadata.uid)

        shown = {"verb": "bind", "resource": "pods/binding", "name": key, "node": node_name}
        self.write(shown, write)

    def patch_status(
        self, pod: Pod, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        patch = pod_status_patch(pod, condition=condition, nominated_node_name=nominated_node_name)
        if not patch:
            return
        metadata, status = pod.metadata, patch["status"]
        # Upstream names no UID: a pod that was made again is changed as well.
        patch = {"status": status}
        # As sent; conditions that were written are shown as they are then.
        body: JsonObject = {}
        if "conditions" in status:
            body["conditions"] = [
                shown_condition(msgspec.convert(changes, Condition))
                for changes in status["conditions"]
            ]
        if "nominatedNodeName" in status:
            body["nominatedNodeName"] = nominated_node_name

        def write() -> None:
            stored = self._cluster.patch(
                PODS, metadata.namespace, metadata.name, patch, subresource="status"
            )
            if condition is not None and "conditions" in status:
                assert isinstance(stored.typed, Pod)
                written = first_condition(stored.typed.status.conditions, condition.type)
                assert written is not None, condition
                body["conditions"] = [shown_condition(written)]

        shown = {"verb": "patch", "resource": "pods/status", "name": key_of(pod), "body": body}
        self.write(shown, write)

    def patch_group_status(self, pod_group: UpstreamPodGroup, condition: Condition) -> None:
        patch = group_status_patch(pod_group, condition)
        if not patch:
            return
        metadata = pod_group.metadata

        def write() -> None:
            resource = self._cluster.resources.of_type(type(pod_group))
            self._cluster.patch(
                resource, metadata.namespace, metadata.name, patch, subresource="status"
            )

        shown: JsonObject = {
            "verb": "patch",
            "resource": "podgroups/status",
            "name": f"{metadata.namespace}/{metadata.name}",
            "body": {"conditions": [shown_group_condition(condition)]},
        }
        self.write(shown, write)


class RunClient(MemoryClient):
    """The client of the scheduler: its writes wait for their turn."""

    def __init__(
        self, cluster: MemoryCluster, api: RunApi, delete_pod: Callable[[str, str], None]
    ) -> None:
        super().__init__(cluster)
        self._api = api
        self._delete_pod = delete_pod

    async def send(self, request: Request) -> Any:
        api = self._api
        match request:
            case BindPod(pod, node_name):
                key = key_of(pod)
                await api.request(Turn.BINDING, key, (key,), lambda: api.bind(pod, node_name))
            case PatchPodStatus(pod, condition, nominated_node_name):
                key = key_of(pod)
                await api.request(
                    Turn.STATUS,
                    key,
                    (key,),
                    lambda: api.patch_status(pod, condition, nominated_node_name),
                )
            case DeletePod(pod):
                key = key_of(pod)
                shown = {"verb": "delete", "resource": "pods", "name": key}

                def delete() -> None:
                    self._delete_pod(*request.key)

                await api.request(Turn.DELETION, key, (key,), lambda: api.write(shown, delete))
            case Create(new):
                name = new.metadata.name or new.metadata.generate_name
                return await self._write_claim(request, name)
            case Update(new, old, subresource):
                # The difference as it is now, also if the turn comes later.
                changes = update_patch(old, new) or _only_to(old)
                patch = Patch(request.kind, *request.key, changes, "merge", subresource)
                return await self._write_claim(request, request.key[1], subresource, patch, new)
            case Patch(name=name, subresource=subresource):
                return await self._write_claim(request, name, subresource)
            case Delete(name=name):
                return await self._write_claim(request, name)
            case _:
                return await super().send(request)

    async def _write_claim(
        self,
        request: Request,
        name: str,
        subresource: Subresource = "",
        served: Request | None = None,
        sent: ApiObject | None = None,
    ) -> Any:
        """A write to a volume or claim, or for one, shown by its result; if it fails, as sent.

        `served` is what is carried out in its place.
        """
        for_pod = binding_pod.get()
        cls, namespace = request.kind, request.key[0]
        key = f"{namespace}/{name}" if namespace else name
        resource = _SHORT_NAMES.get(cls) or self._cluster.resources.of_type(cls).plural
        shown: JsonObject = {
            "verb": request.verb,
            "resource": f"{resource}/{subresource}" if subresource else resource,
            "name": key,
        }
        if for_pod:
            shown["for"] = for_pod

        def serve() -> Any:
            if sent is not None and (body := _shown_result(sent, subresource)):
                shown["body"] = body
            result = self._api.write(shown, lambda: self._answered(served or request))
            if request.verb in ("update", "patch") and isinstance(result, ApiObject):
                shown["body"] = _shown_result(result, subresource)
            if not shown.get("body", True):
                del shown["body"]  # Empty parts are left out.
            return result

        pods = (for_pod,) if for_pod else ()
        return await self._api.request(Turn.CLAIM, key, pods, serve)

    def _answered(self, request: Request) -> Any:
        """The recorder's API server makes a new version of an object that a write leaves as it
        is, so that the next writer of the old version is refused."""
        version = self._cluster.version
        result = self.answer(request)
        if self._cluster.version > version or not isinstance(result, ApiObject):
            return result
        resource = self._cluster.resources.of_type(request.kind)
        stored = self._cluster.get(resource, *request.key)
        return self._cluster.replace(resource, stored.document).typed


def _only_to(old: ApiObject) -> JsonObject:
    """A patch without changes, refused if the object has another version."""
    metadata = old.metadata
    return {"metadata": {"resourceVersion": metadata.resource_version, "uid": metadata.uid}}


_SHORT_NAMES: Final[Mapping[type[ApiObject], str]] = {
    PersistentVolumeClaim: "pvcs",
    PersistentVolume: "pvs",
}


def shown_condition(condition: Condition) -> JsonObject:
    """A condition as the recording shows it: without times and empty parts."""
    parts: JsonObject = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
    return {key: value for key, value in parts.items() if value}


def shown_group_condition(condition: Condition) -> JsonObject:
    """A condition of a PodGroup as the recording shows it; it always has a message."""
    return {**shown_condition(condition), "message": condition.message}


def _shown_result(result: ApiObject, subresource: str) -> JsonObject:
    """The parts of an object that PreBind may have written."""
    document = to_document(result)
    match result:
        case PersistentVolumeClaim():
            return {"selectedNode": result.metadata.annotations.get(SELECTED_NODE)}
        case PersistentVolume():
            reference = as_object(as_object(document.get("spec")).get("claimRef"))
            return {"claim": f"{reference.get('namespace')}/{reference.get('name')}"}
        case ResourceClaim() if subresource:
            status = as_object(document.get("status"))
            as_object(status.get("allocation")).pop("allocationTimestamp", None)
            return status
        case ResourceClaim():
            return {"finalizers": list(result.metadata.finalizers)}
        case _:
            return as_object(document.get("status"))
