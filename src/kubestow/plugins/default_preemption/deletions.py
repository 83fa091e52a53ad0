"""Which deletions of pods have reached the informer's store, and waiting for those that have not.

The answer to a DELETE says what the API server has done. Decisions are made on the store, which is
updated by a watch, before or after that answer.
"""

import asyncio
from collections.abc import Iterable

from kubestow.api.pod import Pod, is_terminating
from kubestow.cache.objects import ObjectStore
from kubestow.framework.victims import is_leaving


class Deletions:
    """One per executor; it follows the store for as long as that exists."""

    def __init__(self, pods: ObjectStore[Pod]) -> None:
        self._pods = pods
        self._awaited: dict[str, asyncio.Event] = {}  # by UID
        pods.subscribe(self._changed)

    def is_gone(self, pod: Pod) -> bool:
        """Whether the store no longer has this pod; it may have another of the same name."""
        return self._stored(pod) is None

    def is_seen(self, pod: Pod) -> bool:
        """Whether the pod is gone from the store, or being deleted there."""
        return is_leaving(self._pods, pod)

    def is_on_node(self, pod: Pod) -> bool:
        """Whether the store has this pod with a node; not while it is being bound."""
        stored = self._stored(pod)
        return stored is not None and bool(stored.spec.node_name)

    async def wait_seen(self, pods: Iterable[Pod]) -> None:
        """Return once the deletion of each of these pods has been seen."""
        for pod in pods:
            if not self.is_seen(pod):
                await self._awaited.setdefault(pod.metadata.uid, asyncio.Event()).wait()

    def _stored(self, pod: Pod) -> Pod | None:
        stored = self._pods.get(pod.metadata.namespace, pod.metadata.name)
        return stored if stored is not None and stored.metadata.uid == pod.metadata.uid else None

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if not self._awaited or old is None:
            return
        uid = old.metadata.uid
        if new is None or new.metadata.uid != uid or is_terminating(new):
            awaited = self._awaited.pop(uid, None)
            if awaited is not None:
                awaited.set()
