"""Evicts pods from nodes with NoExecute taints, at once or after the time they tolerate.

    taint added, pod does not tolerate it ───────────► condition, event, deleted
    pod tolerates it for some seconds ───timer───────► condition, event, deleted
                                       └─ taint gone ► cancelled
    pod tolerates all taints without limit ──────────► stays

As upstream, the time runs from when the taint was first seen: a later change of the node's taints
does not start it again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.node import Node, Taint
from kubestow.api.pod import Pod, Toleration
from kubestow.api.taints import NO_EXECUTE, TolerationTable
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import Key, StoredObject
from kubestow.apiserver.traits import ANY, NO_PODS
from kubestow.apiserver.watch import Watch, WatchEvent, WatchGroup
from kubestow.clock import Clock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.pods import typed_pod, with_condition
from kubestow.simulator.event_log import EventLog

NAME: Final = "taint-eviction-controller"
_CONDITION: Final[JsonObject] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class TaintEviction:
    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        self._cluster = cluster
        self._clock = clock
        self._log = log
        self._guard = Guard(NAME)
        # The NoExecute taints of nodes that have some.
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._pods: Watch | None = None

    @property
    def is_busy(self) -> bool:
        """Whether some pod is to be evicted later."""
        return bool(self._timers)

    async def run(self) -> None:
        """Follow nodes and pods until cancelled."""
        pods = self._pods = self._cluster.watch(PODS, traits=NO_PODS, concerns=self._concerns)
        group = WatchGroup((self._cluster.watch(NODES), pods))
        try:
            while not group.is_closed:
                await group.wait()
                for event in group.events_nowait():
                    handle = self._after_node if event.stored.resource is NODES else self._after_pod
                    self._guard.run(event.stored, partial(handle, event))
        finally:
            group.close()
            self._guard.close()
            for timer in self._timers.values():
                timer.cancel()

    def _concerns(self, event: WatchEvent) -> bool:
        """Whether the pod is on a node with taints, or is to be evicted."""
        stored = event.stored
        node_name = typed_pod(stored).spec.node_name
        return node_name in self._taints or stored.key in self._timers

    def _after_node(self, event: WatchEvent) -> None:
        node = event.object
        assert isinstance(node, Node), node
        name = node.metadata.name
        taints = () if event.type == "DELETED" else _no_execute(node)
        if taints == self._taints.get(name, ()):
            return
        if not taints:
            del self._taints[name]
        else:
            self._taints[name] = taints
        if self._pods is not None:
            # `_concerns` accepts no pod while there is neither.
            self._pods.read_traits(ANY if self._taints or self._timers else NO_PODS)
        if event.type == "DELETED":
            return  # `pod_gc` deletes the pods; evictions that are due take place.
        for stored in list(self._cluster.objects_of(PODS)):
            if isinstance(stored.typed, Pod) and stored.typed.spec.node_name == name:
                self._guard.run(stored, partial(self._decide, stored, taints))

    def _after_pod(self, event: WatchEvent) -> None:
        pod = event.object
        assert isinstance(pod, Pod), pod
        if event.type == "DELETED":
            self._cancel(event.stored)
        elif taints := self._taints.get(pod.spec.node_name):
            # The event of the condition that an eviction writes is read after the deletion.
            newest = self._cluster.find(PODS, *event.stored.key)
            if newest is not None and newest.uid == event.stored.uid:
                self._decide(newest, taints)

    def _decide(self, stored: StoredObject, taints: tuple[Taint, ...]) -> None:
        pod = stored.typed
        assert isinstance(pod, Pod), pod
        if pod.metadata.deletion_timestamp is not None:
            return
        tolerated_s = tolerated_seconds(taints, pod.spec.tolerations)
        if tolerated_s is None:
            self._cancel(stored)
        elif tolerated_s <= 0:
            self._cancel(stored)
            self._evict(stored)
        elif stored.key not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[stored.key] = loop.call_later(tolerated_s, self._on_timer, stored)

    def _on_timer(self, stored: StoredObject) -> None:
        self._timers.pop(stored.key, None)
        self._guard.run(stored, partial(self._evict, stored))

    def _evict(self, stored: StoredObject) -> None:
        name = "/".join(stored.key)
        self._record(stored, f"Marking for deletion Pod {name}")
        condition = {**_CONDITION, "lastTransitionTime": whole_seconds(self._clock.now_ns())}
        with suppress(NotFoundError):
            newest = self._cluster.get(PODS, *stored.key)
            if newest.uid != stored.uid:
                return
            self._cluster.change(
                PODS,
                *stored.key,
                lambda document: with_condition(document, condition),
                subresource="status",
            )
            self._cluster.delete(PODS, *stored.key, uid=stored.uid)

    def _cancel(self, stored: StoredObject) -> None:
        if (timer := self._timers.pop(stored.key, None)) is not None:
            timer.cancel()
            self._record(stored, f"Cancelling deletion of Pod {'/'.join(stored.key)}")

    def _record(self, stored: StoredObject, note: str) -> None:
        self._log.record(stored, reporter=NAME, reason="TaintManagerEviction", note=note)


def tolerated_seconds(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """How long a pod stays on a node with these taints; None: without limit."""
    seconds: list[int] = []
    table = TolerationTable(tolerations)
    for taint in taints:
        match = table.first(taint)
        if match is None:
            return 0.0
        if match.toleration_seconds is not None:
            seconds.append(match.toleration_seconds)
    return max(min(seconds), 0) if seconds else None


def _no_execute(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
