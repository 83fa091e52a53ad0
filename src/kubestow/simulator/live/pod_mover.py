"""Moves a pod of the demo to another node, as the kubectl commands of a suggestion do.

Its node is cordoned until the pod is gone and the one that its controller makes instead has a node:
else the new pod would often come back, or take the place of the one that waits.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.owner_controller import controller_reference
from kubestow.simulator.live.forms import done, wrong

# As `kubectl wait --timeout` of the commands, in the cluster's time.
LIMIT_S: Final = 60.0
_TURN_S: Final = 0.25


class PodMover:
    def __init__(self, store: MemoryCluster, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # How many moves are under way from each node that was cordoned for them.
        self._moves: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    def move(self, namespace: str, name: str) -> JsonObject:
        """Begin; it ends as the cluster's time goes on."""
        pod = self._store.get(PODS, namespace, name)
        node: str = value_at(pod.document, "spec", "nodeName") or ""
        owner = controller_reference(pod.document)
        if not node or owner is None:
            reason = "no controller makes it again" if node else "it is on no node"
            raise wrong(f'"{name}" cannot be moved: {reason}', "name")
        before = {each.uid for each in self._made_by(namespace, owner)}
        # A node that a person has cordoned stays so.
        is_cordoned = value_at(self._store.get(NODES, "", node).document, "spec", "unschedulable")
        if not is_cordoned or node in self._moves:
            self._moves[node] += 1
            self._set_cordon(node, True)
        self._store.delete(PODS, namespace, name)
        work = self._end(node, pod, owner, before)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return done(f'moves "{name}" from {node}', 1)

    def stop(self) -> None:
        """Leave moves as they are: the cluster is replaced."""
        for task in self._tasks:
            task.cancel()
        self._moves.clear()

    async def _end(self, node: str, pod: StoredObject, owner: JsonObject, before: set[str]) -> None:
        end_s = self._clock.monotonic_s() + LIMIT_S
        while not self._is_over(pod, owner, before):
            if self._clock.monotonic_s() >= end_s:
                break
            await asyncio.sleep(_TURN_S)
        if node not in self._moves:
            return
        self._moves[node] -= 1
        if not self._moves[node]:
            del self._moves[node]
            self._set_cordon(node, False)

    def _is_over(self, pod: StoredObject, owner: JsonObject, before: set[str]) -> bool:
        found = self._made_by(pod.key[0], owner)
        is_gone = all(each.uid != pod.uid for each in found)
        new = [each for each in found if each.uid not in before]
        return is_gone and any(value_at(each.document, "spec", "nodeName") for each in new)

    def _made_by(self, namespace: str, owner: JsonObject) -> list[StoredObject]:
        return [
            each
            for each in self._store.objects_of(PODS)
            if each.key[0] == namespace
            and (controller_reference(each.document) or {}).get("uid") == owner.get("uid")
        ]

    def _set_cordon(self, node: str, cordoned: bool) -> None:
        with suppress(NotFoundError):
            patch = {"spec": {"unschedulable": True if cordoned else None}}
            self._store.patch(NODES, "", node, patch, "merge")
