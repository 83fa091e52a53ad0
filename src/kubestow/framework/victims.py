"""Deletes the victims of preemption, with one request each.

Cycles are faster than the API server: until a deletion is seen, the pod is a possible victim for
the next preemptors as well. Upstream sends one request for each of them.

Each request names the UID. A pod that was made again under the name of a victim, as a StatefulSet
does, is no victim; the one that was meant is gone.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod, is_terminating
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.client import ClusterClient
from kubestow.errors import ConflictError, NotFoundError


class DeletionResult(Enum):
    MADE = "this call has deleted the pod"
    SHARED = "another call has deleted the pod, or it was seen leaving: nothing was sent"
    GONE = "the API server does not have the pod"


class VictimClient(Protocol):
    async def delete(self, victim: Pod, condition: Condition | None) -> DeletionResult:
        """Write the condition if there is one, then delete the pod; raises the ApiError family."""
        ...

    def is_sent(self, victim: Pod) -> bool:
        """Whether a deletion is under way that may have been carried out already."""
        ...

    def is_requested(self, uid: str) -> bool:
        """Whether the deletion of this pod was requested and not seen yet."""
        ...


class _Request:
    """A deletion that several calls may wait for."""

    __slots__ = ("is_sent", "task", "waiting_count")

    def __init__(self, client: ClusterClient, victim: Pod, condition: Condition | None) -> None:
        self.is_sent = False
        self.waiting_count = 0
        self.task = asyncio.ensure_future(delete_pod(client, victim, condition, self._sending))

    def _sending(self) -> None:
        self.is_sent = True

    @property
    def has_failed(self) -> bool:
        return self.task.cancelled() or self.task.exception() is not None


class SharedVictims:
    """One per scheduler: what one plugin has requested is not requested again by another.

    A request is kept until the informer shows that the pod is leaving, so there are never more
    than pods that exist.
    """

    def __init__(self, client: ClusterClient, pods: ObjectStore[Pod]) -> None:
        self._client = client
        self._pods = pods
        self._requests: dict[str, _Request] = {}  # by UID
        pods.subscribe(self._changed)

    def __len__(self) -> int:
        return len(self._requests)

    async def delete(self, victim: Pod, condition: Condition | None) -> DeletionResult:
        uid = victim.metadata.uid
        request = self._requests.get(uid)
        if request is not None:
            await self._wait_ended(uid, request)
            return DeletionResult.SHARED
        if is_leaving(self._pods, victim):
            return DeletionResult.SHARED
        request = self._requests[uid] = _Request(self._client, victim, condition)
        request.task.add_done_callback(lambda task: self._ended(victim, request))
        return await self._wait_ended(uid, request)

    def is_sent(self, victim: Pod) -> bool:
        request = self._requests.get(victim.metadata.uid)
        return request is not None and request.is_sent and not request.task.done()

    def is_requested(self, uid: str) -> bool:
        return uid in self._requests

    async def _wait_ended(self, uid: str, request: _Request) -> DeletionResult:
        request.waiting_count += 1
        try:
            # Shielded: another call may wait for the same.
            return await asyncio.shield(request.task)
        finally:
            request.waiting_count -= 1
            if not request.waiting_count and not request.task.done():
                self._forget(uid, request)
                request.task.cancel()

    def _ended(self, victim: Pod, request: _Request) -> None:
        if request.has_failed or is_leaving(self._pods, victim):
            self._forget(victim.metadata.uid, request)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if not self._requests or old is None:
            return
        uid = old.metadata.uid
        if new is None or new.metadata.uid != uid or is_terminating(new):
            request = self._requests.get(uid)
            if request is not None and request.task.done():
                self._forget(uid, request)

    def _forget(self, uid: str, request: _Request) -> None:
        if self._requests.get(uid) is request:
            del self._requests[uid]


async def delete_pod(
    client: ClusterClient,
    victim: Pod,
    condition: Condition | None,
    sending: Callable[[], None] = lambda: None,
) -> DeletionResult:
    """Send the two requests; `sending` is called before the second."""
    try:
        if condition is not None:
            await client.patch_pod_status(victim, condition=condition)
        sending()
        await client.delete_pod(victim)
    except NotFoundError:
        return DeletionResult.GONE
    except ConflictError as error:
        if error.is_replaced:
            return DeletionResult.GONE
        raise
    return DeletionResult.MADE


def is_leaving(pods: ObjectStore[Pod], pod: Pod) -> bool:
    """Whether the pod is gone from the informer's store, or being deleted there."""
    stored = pods.get(pod.metadata.namespace, pod.metadata.name)
    return stored is None or stored.metadata.uid != pod.metadata.uid or is_terminating(stored)
