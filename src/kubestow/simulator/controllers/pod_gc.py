"""Deletes pods that no kubelet will end: those of deleted nodes, and other leftovers.

Every CHECK_S seconds:

    pods of a node that has been missing for QUARANTINE_S    marked as failed, deleted at once
    terminating pods without a node                          deleted at once
    terminating pods of a node that is out of service        deleted at once
    finished pods, beyond TERMINATED_POD_THRESHOLD           the oldest are deleted

Between two checks only events are collected: a check costs what changed, and the pods that may have
to go. All pods are looked at only while a node is missing.
"""

import asyncio
import heapq
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.pod import is_terminal
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import Key, StoredObject
from kubestow.apiserver.traits import ENDED, ENDING, GONE, PLACED
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.clock import Clock
from kubestow.cluster.documents import objects_in, replaced_at, value_at, whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.pods import (
    is_finished,
    is_terminating,
    typed_pod,
    with_condition,
)

CHECK_S: Final = 20.0
QUARANTINE_S: Final = 40.0
TERMINATED_POD_THRESHOLD: Final = 12_500
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_ORPHANED: Final[JsonObject] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class PodGC:
    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        *,
        threshold: int = TERMINATED_POD_THRESHOLD,
    ) -> None:
        self._cluster = cluster
        self._nodes = cluster.objects_by_key(NODES)
        self._clock = clock
        self._threshold = threshold
        self._guard = Guard("pod-garbage-collector")
        traits = GONE | ENDED | ENDING | PLACED
        pods = cluster.watch(PODS, traits=traits, concerns=self._concerns)
        self._group = WatchGroup((cluster.watch(NODES), pods))
        self._finished = FinishedPods()
        # The newest state of pods that are ending.
        self._terminating: dict[Key, StoredObject] = {}
        # Names of nodes that may be missing; when each was first found missing that pods are on.
        self._suspects: set[str] = set()
        self._missing_since_s: dict[str, float] = {}

    async def run(self) -> None:
        """Check the pods until cancelled."""
        try:
            start_s = self._clock.monotonic_s()
            while not self._group.is_closed:
                self.check()
                if not self._has_work:
                    await self._group.wait()
                passed_s = self._clock.monotonic_s() - start_s
                await asyncio.sleep(CHECK_S - passed_s % CHECK_S)
        finally:
            self._group.close()
            self._guard.close()

    def _concerns(self, event: WatchEvent) -> bool:
        """Whether the pod has ended, is ending, is gone, or is on a node that may be missing."""
        if event.type == "DELETED":
            return True
        pod = typed_pod(event.stored)
        node_name = pod.spec.node_name
        if node_name and ("", node_name) not in self._nodes:
            return True
        return pod.metadata.deletion_timestamp is not None or is_terminal(pod)

    @property
    def is_busy(self) -> bool:
        """Whether the next check has something to look at, or pods of missing nodes to delete."""
        return bool(self._group.has_events or self._suspects or self._missing_since_s)

    @property
    def _has_work(self) -> bool:
        """Whether a later check may find something, also if nothing changes until then."""
        return bool(
            self._suspects
            or self._missing_since_s
            or self._terminating
            or len(self._finished) > self._threshold
        )

    def check(self) -> None:
        """Delete the pods that should not be there now."""
        self._follow(self._group.events_nowait())
        self._delete_all(self._oldest_finished())
        terminating = list(self._terminating.values())
        self._delete_all(filter(self._is_out_of_service, terminating))
        if self._suspects:
            pods = list(self._cluster.objects_of(PODS))
            gone = self._nodes_gone(pods)
            self._delete_all((pod for pod in pods if _node_of(pod) in gone), _ORPHANED)
        self._delete_all(pod for pod in terminating if not _node_of(pod))

    def _follow(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            stored = event.stored
            if stored.resource is NODES:
                if event.type == "DELETED":
                    self._suspects.add(stored.name)
                continue
            is_there = event.type != "DELETED"
            if is_there and is_finished(stored):
                self._finished.put(stored)
            else:
                self._finished.discard(stored.key)
            if is_there and is_terminating(stored):
                self._terminating[stored.key] = stored
            else:
                self._terminating.pop(stored.key, None)
            node_name = _node_of(stored)
            if node_name and ("", node_name) not in self._nodes:
                self._suspects.add(node_name)

    def _oldest_finished(self) -> list[StoredObject]:
        """The finished pods beyond the threshold: first evicted ones, then the oldest."""
        return self._finished.first(len(self._finished) - self._threshold)

    def _is_out_of_service(self, pod: StoredObject) -> bool:
        node = self._cluster.find(NODES, "", _node_of(pod))
        if node is None or _is_ready(node):
            return False
        taints = objects_in(value_at(node.document, "spec", "taints"))
        return any(taint.get("key") == OUT_OF_SERVICE for taint in taints)

    def _nodes_gone(self, pods: Iterable[StoredObject]) -> set[str]:
        """The nodes that have been missing for long enough."""
        now_s = self._clock.monotonic_s()
        used = {name for pod in pods if (name := _node_of(pod))}
        self._missing_since_s = {
            name: self._missing_since_s.get(name, now_s)
            for name in used & self._suspects
            if self._cluster.find(NODES, "", name) is None
        }
        self._suspects = set(self._missing_since_s)
        return {
            name
            for name, since_s in self._missing_since_s.items()
            if now_s - since_s >= QUARANTINE_S
        }

    def _delete_all(
        self, pods: Iterable[StoredObject], condition: JsonObject | None = None
    ) -> None:
        for pod in pods:
            self._guard.run(pod, partial(self._delete, pod, condition))

    def _delete(self, pod: StoredObject, condition: JsonObject | None) -> None:
        """Delete a pod without its grace period, marked as failed unless it has ended."""
        with suppress(NotFoundError):
            if not is_finished(pod):
                self._cluster.change(
                    PODS, *pod.key, partial(self._failed, condition), subresource="status"
                )
            self._cluster.delete(PODS, *pod.key, uid=pod.uid, grace_period_s=0)

    def _failed(self, condition: JsonObject | None, document: JsonObject) -> JsonObject:
        document = replaced_at(document, ("status", "phase"), "Failed")
        if condition is None:
            return document
        now = whole_seconds(self._clock.now_ns())
        return with_condition(document, {**condition, "lastTransitionTime": now})


def _node_of(pod: StoredObject) -> str:
    return typed_pod(pod).spec.node_name


def _is_ready(node: StoredObject) -> bool:
    return any(
        one.get("type") == "Ready" and one.get("status") == "True"
        for one in objects_in(value_at(node.document, "status", "conditions"))
    )


# Evicted pods first, then the oldest; of equal ones that which ended first.
_Rank = tuple[bool, str, str, int]


class FinishedPods:
    """The newest state of pods that have ended, in the order in which they are deleted.

    A heap of ranks, among them some that hold no more: these are passed over when they come up, and
    removed when they are most of it.
    """

    def __init__(self) -> None:
        self._pods: dict[Key, tuple[_Rank, StoredObject]] = {}
        self._heap: list[tuple[_Rank, Key]] = []
        self._put_count = 0

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, pod: StoredObject) -> None:
        key = pod.key
        known = self._pods.get(key)
        if known is None:
            self._put_count += 1
            number = self._put_count
        else:
            number = known[0][-1]
        rank = (*_age_rank(pod), number)
        self._pods[key] = rank, pod
        if known is None or known[0] != rank:
            heapq.heappush(self._heap, (rank, key))

    def discard(self, key: Key) -> None:
        if self._pods.pop(key, None) is not None and len(self._heap) > 2 * len(self._pods):
            self._heap = [(rank, key) for key, (rank, _) in self._pods.items()]
            heapq.heapify(self._heap)

    def first(self, count: int) -> list[StoredObject]:
        """The pods that go first; they stay until `discard`."""
        found: list[tuple[_Rank, Key]] = []
        while len(found) < count:
            entry = rank, key = heapq.heappop(self._heap)
            holds = key in self._pods and self._pods[key][0] == rank
            # A rank that a pod has had before is there twice.
            if holds and entry not in found[-1:]:
                found.append(entry)
        for entry in found:
            heapq.heappush(self._heap, entry)
        return [self._pods[key][1] for _, key in found]


def _age_rank(pod: StoredObject) -> tuple[bool, str, str]:
    is_evicted = (
        typed_pod(pod).status.phase == "Failed"
        and value_at(pod.document, "status", "reason") == "Evicted"
    )
    return not is_evicted, pod.desired["metadata"].get("creationTimestamp", ""), pod.name
