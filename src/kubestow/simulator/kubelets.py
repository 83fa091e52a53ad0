"""Fake kubelets: pods that were bound start, pods that are being deleted end.

One task simulates the kubelets of all nodes. It follows the pods and writes what a kubelet would
report to the API server; there are no containers.

    bound ──start delay──► Running ──its run is over──► Succeeded, Failed, or started again
                              └──────deleted──► grace period (or less) ──► gone

The kubelet of a node can be stopped (`kubelet_switch`): the node's pods then neither start nor end
until it runs again.

Not here: how long a pod runs (`pretended_process`), the content of its status (`kubelet_status`),
the nodes themselves (`node_registration`, `heartbeats`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, is_terminal, is_terminating
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.clock import Clock
from kubestow.cluster.documents import objects_in, value_at, whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ApiError, NotFoundError
from kubestow.simulator import kubelet_status
from kubestow.simulator.event_log import EventLog
from kubestow.simulator.kubelet_switch import is_stopped
from kubestow.simulator.pretended_process import Run, run_of
from kubestow.simulator.standing import NOTHING_STANDS, StandingObjects

POD_NETWORK: Final = IPv4Network("10.244.0.0/16")
RESTART_S: Final = 10.0
RESTART_S_MAX: Final = 300.0


class FakeKubelets:
    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        *,
        starts_pods: bool = True,
        start_delay_s: float = 0.0,
        stop_s: float | None = None,
        log: EventLog | None = None,
        standing: StandingObjects = NOTHING_STANDS,
    ) -> None:
        """Without `starts_pods` pods stay Pending on their node until they are deleted.

        `stop_s` is how long containers take to stop; None means their whole grace period. Nothing
        is done for pods among `standing`.
        """
        self._cluster = cluster
        self._clock = clock
        self._starts_pods = starts_pods
        self._start_delay_s = start_delay_s
        self._stop_s = stop_s
        self._log = log
        self._standing = standing
        self._started_count = 0
        self._guard = Guard("kubelet")
        # Names of nodes whose kubelet was stopped at their last event.
        self._stopped: set[str] = set()
        # Timers by pod UID: the next step of its run, and the end of its termination.
        self._next: dict[str, asyncio.TimerHandle] = {}
        self._ending: dict[str, asyncio.TimerHandle] = {}

    @property
    def is_busy(self) -> bool:
        """Whether some pod will start or end by itself, or is terminating."""
        return bool(self._next or self._ending)

    async def run(self) -> None:
        pods = self._cluster.watch(PODS, concerns=self._concerns)
        group = WatchGroup((self._cluster.watch(NODES), pods))
        try:
            while not group.is_closed:
                await group.wait()
                for event in group.events_nowait():
                    if event.stored.resource is NODES:
                        self._guard.run(event.stored, partial(self._after_node, event))
                    else:
                        self._guard.run(event.stored, partial(self._after_pod, event))
        finally:
            group.close()
            self._guard.close()
            for timer in (*self._next.values(), *self._ending.values()):
                timer.cancel()

    def _concerns(self, event: WatchEvent) -> bool:
        """Whether a kubelet acts on this state of a pod. Most events are about pods without one."""
        pod = event.stored.typed
        assert isinstance(pod, Pod), pod
        return (
            event.type == "DELETED"
            or pod.metadata.deletion_timestamp is not None
            or (self._starts_pods and pod.spec.node_name != "")
        )

    def _after_node(self, event: WatchEvent) -> None:
        name = event.stored.name
        if event.type != "DELETED" and is_stopped(event.stored.document):
            self._stopped.add(name)
        elif name in self._stopped:
            self._stopped.discard(name)
            self._resume(name)

    def _resume(self, node_name: str) -> None:
        """Continue with the pods of a node whose kubelet runs again."""
        for stored in list(self._cluster.objects_of(PODS)):
            if value_at(stored.document, "spec", "nodeName") == node_name:
                self._guard.run(stored, partial(self._resume_pod, stored))

    def _resume_pod(self, stored: StoredObject) -> None:
        status = kubelet_status.ready_again(stored.document, now=self._now())
        if status is not None:
            self._patch_status(stored, status)
        if (newest := self._newest(stored)) is not None:
            self._handle(newest)

    def _after_pod(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self._forget(event.stored.uid)
        elif (newest := self._newest(event.stored)) is not None:
            # An older state would start a pod that has been started since.
            self._handle(newest)

    def _is_stopped(self, node_name: str) -> bool:
        node = self._cluster.find(NODES, "", node_name)
        return node is not None and is_stopped(node.document)

    def _newest(self, stored: StoredObject) -> StoredObject | None:
        """The pod as it is now; None if it is gone."""
        newest = self._cluster.find(PODS, *stored.key)
        return newest if newest is not None and newest.uid == stored.uid else None

    def _handle(self, stored: StoredObject) -> None:
        pod = stored.typed
        assert isinstance(pod, Pod), pod
        is_ending = is_terminating(pod)
        if pod in self._standing:
            return
        if not pod.spec.node_name or not (is_ending or self._starts_pods):
            return
        if self._is_stopped(pod.spec.node_name):
            return
        if is_ending:
            self._end_later(pod)
        elif not is_terminal(pod) and stored.uid not in self._next:
            if pod.status.start_time is None:
                self._later(stored, self._start_delay_s, self._start)
            elif pod.status.phase == "Running":
                self._await_end(stored)

    # --- A pod's run --------------------------------------------------------------------------

    def _later(
        self, stored: StoredObject, delay_s: float, work: Callable[[StoredObject], None]
    ) -> None:
        """Call `work` with the newest state of a pod after a delay; without one, at once."""
        if delay_s <= 0:
            work(stored)
            return
        loop = asyncio.get_running_loop()
        self._next[stored.uid] = loop.call_later(delay_s, self._do, stored, work)

    def _do(self, stored: StoredObject, work: Callable[[StoredObject], None]) -> None:
        self._next.pop(stored.uid, None)
        newest = self._newest(stored)
        if newest is None or "deletionTimestamp" in newest.metadata:
            return
        if not self._is_stopped(value_at(newest.document, "spec", "nodeName")):
            self._guard.run(newest, partial(work, newest))

    def _start(self, stored: StoredObject) -> None:
        restarts = kubelet_status.restart_count(stored.document)
        self._run_containers(stored, restarts)

    def _restart(self, stored: StoredObject) -> None:
        self._run_containers(stored, kubelet_status.restart_count(stored.document) + 1)

    def _run_containers(self, stored: StoredObject, restarts: int) -> None:
        document = stored.document
        status = kubelet_status.running(
            document,
            now=self._now(),
            pod_ip=value_at(document, "status", "podIP") or self._new_address(),
            host_ip=self._host_address(value_at(document, "spec", "nodeName")),
            restarts=restarts,
        )
        self._patch_status(stored, status)
        for container in objects_in(value_at(document, "spec", "containers")):
            self._record(stored, "Started", f"Started container {container.get('name', '')}")

    def _await_end(self, stored: StoredObject) -> None:
        run = run_of(stored.document)
        if run is None:
            return
        # Even a run of no length takes some time, so that watchers see the pod running.
        self._later(stored, max(run.seconds, 0.001), lambda newest: self._finish(newest, run))

    def _finish(self, stored: StoredObject, run: Run) -> None:
        document, now = stored.document, self._now()
        policy = value_at(document, "spec", "restartPolicy")
        if policy == "Never" or (policy == "OnFailure" and run.exit_code == 0):
            status = kubelet_status.ended(document, now=now, exit_code=run.exit_code)
            self._patch_status(stored, status)
            return
        restarts = kubelet_status.restart_count(document)
        waiting = kubelet_status.waiting_for_restart(document, now=now, exit_code=run.exit_code)
        # The timer first: this task also handles the event of the write below.
        self._later(stored, min(RESTART_S * 2**restarts, RESTART_S_MAX), self._restart)
        self._patch_status(stored, waiting)
        self._record(stored, "BackOff", "Back-off restarting failed container", is_warning=True)

    # --- A pod's end --------------------------------------------------------------------------

    def _end_later(self, pod: Pod) -> None:
        """Containers take the pod's whole grace period to end, or at most `stop_s`."""
        uid = pod.metadata.uid
        if uid not in self._ending:
            grace_s = pod.metadata.deletion_grace_period_seconds or 0
            delay_s = grace_s if self._stop_s is None else min(grace_s, self._stop_s)
            loop = asyncio.get_running_loop()
            self._ending[uid] = loop.call_later(delay_s, self._end, pod)

    def _end(self, pod: Pod) -> None:
        self._forget(pod.metadata.uid)
        if self._is_stopped(pod.spec.node_name):
            return
        with suppress(NotFoundError):  # It may be gone already.
            self._cluster.finish_termination(pod.metadata.namespace, pod.metadata.name)

    def _forget(self, uid: str) -> None:
        for timers in (self._next, self._ending):
            if (timer := timers.pop(uid, None)) is not None:
                timer.cancel()

    # --- Parts --------------------------------------------------------------------------------

    def _now(self) -> str:
        return whole_seconds(self._clock.now_ns())

    def _new_address(self) -> str:
        """An address for a pod. Nothing listens there; in a large cluster addresses repeat."""
        self._started_count += 1
        host_count = POD_NETWORK.num_addresses - 2
        return str(POD_NETWORK[1 + (self._started_count - 1) % host_count])

    def _host_address(self, node_name: str) -> str:
        node = self._cluster.find(NODES, "", node_name)
        if node is not None:
            for address in objects_in(value_at(node.document, "status", "addresses")):
                if address.get("type") == "InternalIP":
                    return address.get("address", "")
        return "127.0.0.1"

    def _patch_status(self, stored: StoredObject, status: JsonObject) -> None:
        with suppress(ApiError):  # The pod may have been deleted or replaced meanwhile.
            patch: JsonObject = {"metadata": {"uid": stored.uid}, "status": status}
            self._cluster.patch(PODS, *stored.key, patch, "merge", subresource="status")

    def _record(
        self, stored: StoredObject, reason: str, note: str, *, is_warning: bool = False
    ) -> None:
        if self._log is not None:
            kind = "Warning" if is_warning else "Normal"
            self._log.record(stored, reporter="kubelet", reason=reason, note=note, type=kind)
