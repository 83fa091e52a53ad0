"""Fake kubelets: pods that were bound start, pods that are being deleted end.

One task plays the kubelets of all nodes. It follows the pods and does what a kubelet reports back
to the API server, nothing more: there are no containers.
"""

import asyncio
from contextlib import suppress

from kubestow.api.pod import Pod, is_terminal
from kubestow.clock import Clock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.errors import NotFoundError


class FakeKubelets:
    def __init__(self, cluster: MemoryCluster, clock: Clock, *, starts_pods: bool = True) -> None:
        """Without `starts_pods` pods stay Pending on their node; they only ever end."""
        self._cluster = cluster
        self._clock = clock
        self._starts_pods = starts_pods
        self._ending: dict[str, asyncio.TimerHandle] = {}

    @property
    def is_busy(self) -> bool:
        """Whether some pod is still ending."""
        return bool(self._ending)

    async def run(self) -> None:
        watch = self._cluster.watch(PODS)
        try:
            while batch := await watch.next_batch():
                for event in batch:
                    pod = event.stored.typed
                    if event.type in ("ADDED", "MODIFIED") and isinstance(pod, Pod):
                        self._look_at(pod)
        finally:
            watch.close()
            for timer in self._ending.values():
                timer.cancel()

    def _look_at(self, pod: Pod) -> None:
        if not pod.spec.node_name:
            return
        if pod.metadata.deletion_timestamp is not None:
            self._end_later(pod)
        elif self._starts_pods and not is_terminal(pod) and pod.status.start_time is None:
            self._start(pod)

    def _start(self, pod: Pod) -> None:
        now = whole_seconds(self._clock.now_ns())
        status: dict[str, object] = {"phase": "Running", "startTime": now}
        self._patch_status(pod, status)

    def _end_later(self, pod: Pod) -> None:
        """Containers take the pod's whole grace period to end."""
        uid = pod.metadata.uid
        if uid not in self._ending:
            grace_s = pod.metadata.deletion_grace_period_seconds or 0
            loop = asyncio.get_running_loop()
            self._ending[uid] = loop.call_later(grace_s, self._end, pod)

    def _end(self, pod: Pod) -> None:
        self._ending.pop(pod.metadata.uid, None)
        with suppress(NotFoundError):  # Somebody may have been faster.
            self._cluster.finish_termination(pod.metadata.namespace, pod.metadata.name)

    def _patch_status(self, pod: Pod, status: dict[str, object]) -> None:
        with suppress(NotFoundError):  # The pod may have gone away meanwhile.
            self._cluster.patch(
                PODS,
                pod.metadata.namespace,
                pod.metadata.name,
                {"status": status},
                "merge",
                subresource="status",
            )
