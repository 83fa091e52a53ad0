"""The queue of v1.9: first come, first served, by namespace and name (spec 02 §19.2).

No priorities, no parking, no moves by events: a pod that failed comes back when its wait is over.

Invariant: every key of `_pods` is in `_order`; `_order` may also hold keys that were deleted, and
keys twice; pop skips them. So a pod deleted and added again before its turn keeps its place. Keys
without a pod are dropped when there are many of them: a standby adds pods and never pops one.
"""

import asyncio
from collections import deque
from typing import Final

from kubestow.api.pod import Pod, key_of

# Beyond as many as there are pods.
STALE_KEYS_MAX: Final = 1024


class Fifo:
    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._order: deque[str] = deque()
        self._has_work = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        """Append the pod, or replace the version that waits already; an update does the same."""
        key = key_of(pod)
        if key not in self._pods:
            self._order.append(key)
        self._pods[key] = pod
        if len(self._order) > 2 * len(self._pods) + STALE_KEYS_MAX:
            self._order = deque(dict.fromkeys(key for key in self._order if key in self._pods))
        self._has_work.set()

    def add_if_not_present(self, pod: Pod) -> None:
        if key_of(pod) not in self._pods:
            self.add(pod)

    def delete(self, pod: Pod) -> None:
        self._pods.pop(key_of(pod), None)

    def holds(self, pod: Pod) -> bool:
        return key_of(pod) in self._pods

    def pods(self) -> list[Pod]:
        """The waiting pods, in no particular order."""
        return list(self._pods.values())

    def pop_nowait(self) -> Pod | None:
        """The pod that came first; None if there is none."""
        while self._order:
            pod = self._pods.pop(self._order.popleft(), None)
            if pod is not None:
                return pod
        return None

    async def pop(self) -> Pod | None:
        """Wait for a pod; None once the queue is closed."""
        while not self._is_closed:
            if (pod := self.pop_nowait()) is not None:
                return pod
            self._has_work.clear()
            await self._has_work.wait()
        return None

    def close(self) -> None:
        self._is_closed = True
        self._has_work.set()
