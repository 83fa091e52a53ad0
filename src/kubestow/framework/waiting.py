"""Pods held back at Permit, and pods whose PreBind runs (spec 04 §11, §12.4).

reserved -- Permit: Wait ------> waiting -- allowed by every plugin --> continues to bind
                                    |
                                    +-- rejected, preempted or timed out --> fails
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.config.scalars import Duration
from kubestow.errors import PluginError
from kubestow.framework.status import SUCCESS, Code, Status

# Longer timeouts of plugins are cut to this.
PERMIT_WAIT_S_MAX: Final = 15 * 60.0


class WaitingPod:
    """One pod held back by one or more Permit plugins. The first outcome counts."""

    def __init__(self, pod: PodInfo, timeouts_s: Mapping[str, float]) -> None:
        self.pod = pod
        self._outcome: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self._timers = {
            plugin: asyncio.get_running_loop().call_later(
                max(timeout_s, 0), self._time_out, plugin, timeout_s
            )
            for plugin, timeout_s in timeouts_s.items()
        }

    @property
    def pending_plugins(self) -> list[str]:
        return list(self._timers)

    @property
    def is_rejected(self) -> bool:
        """Whether the wait has ended, and the pod is not bound."""
        return self._outcome.done() and not self._outcome.result().is_success

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """End the wait with a rejection; return whether the pod had no outcome yet."""
        return self._decide(Status(Code.UNSCHEDULABLE, message, plugin=plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """End the wait because the pod is evicted for another one."""
        return self._decide(Status(Code.ERROR, error=PluginError(message), plugin=plugin))

    async def wait_outcome(self) -> Status:
        return await self._outcome

    def _time_out(self, plugin: str, timeout_s: float) -> None:
        self.reject(
            plugin,
            f"rejected due to timeout after waiting {go_duration(timeout_s)} at plugin {plugin}",
        )

    def _decide(self, status: Status) -> bool:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._outcome.done():
            return False
        self._outcome.set_result(status)
        return True


class WaitingPods:
    """All pods held back, by UID. Shared by all profiles."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def add(self, pod: PodInfo, timeouts_s: Mapping[str, float]) -> None:
        self._pods[pod.uid] = WaitingPod(pod, timeouts_s)

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def reject(self, uid: str) -> bool:
        """Reject a pod that is being removed; False if it is not waiting."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", "removed")


class PodInPreBind:
    """A pod whose PreBind plugins run. Can be cancelled until they have all ended."""

    def __init__(self, task: "asyncio.Task[object] | None") -> None:
        self._task = task
        self._is_prebound = False
        self.cancel_reason: str | None = None

    def cancel(self, reason: str) -> bool:
        if self._is_prebound:
            return False
        if self.cancel_reason is None:
            self.cancel_reason = reason
            if self._task is not None:
                self._task.cancel(reason)
        return True

    def mark_prebound(self) -> bool:
        """PreBind has ended; False if it was cancelled meanwhile."""
        if self.cancel_reason is not None:
            return False
        self._is_prebound = True
        return True


def go_duration(seconds: float) -> str:
    """A duration as Go prints it: `100ms`, `1.5s`, `10s`, `5m0s`, `1h0m0s`."""
    return str(Duration(round(seconds * 1e9)))
