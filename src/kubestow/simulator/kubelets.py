"""Fake kubelets: pods that were bound start, pods that are being deleted end.

One task simulates the kubelets of all nodes. It follows the pods and writes what a kubelet would
report to the API server; there are no containers. Most events of a pod only set or end a timer:
that is done as they are written, and takes no turn of the task.

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
from contextvars import Context, copy_context
from functools import partial
from ipaddress import IPv4Network
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod, PodStatus, is_terminal, is_terminating
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.traits import ACTIVE, ENDING, GONE
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.apiserver.writes.patch import merge_patch
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, objects_in, value_at, whole_seconds
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
        self._pods = cluster.objects_by_key(PODS)
        self._nodes = cluster.objects_by_key(NODES)
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
        # What is read from the documents of nodes, by their names.
        self._hosts: dict[str, _Host] = {}
        # Timers by pod UID: the next step of its run, and the end of its termination.
        self._next: dict[str, asyncio.TimerHandle] = {}
        self._ending: dict[str, asyncio.TimerHandle] = {}
        # Of the task.
        self._loop: asyncio.AbstractEventLoop
        self._context: Context

    @property
    def is_busy(self) -> bool:
        """Whether some pod will start or end by itself, or is terminating."""
        return bool(self._next or self._ending)

    async def run(self) -> None:
        # Most events are about pods without a kubelet that would act on them.
        traits = GONE | ENDING | ACTIVE if self._starts_pods else GONE | ENDING
        self._loop, self._context = asyncio.get_running_loop(), copy_context()
        pods = self._cluster.watch(PODS, traits=traits, concerns=self._needs_turn)
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

    def _needs_turn(self, event: WatchEvent) -> bool:
        """Whether an event needs a turn of the task: there may be something to write, or a fault.

        What else there is to do after it is done.
        """
        stored = event.stored
        if self._guard.failed:
            return True
        pod = _pod_of(stored)
        if event.type == "DELETED":
            self._forget(pod.metadata.uid)
            return False
        if pod.metadata.deletion_timestamp is not None or (
            pod.status.start_time is None and self._start_delay_s <= 0
        ):
            return True
        try:
            self._handle(stored, pod)
        except Exception:
            return True  # The task meets it again, and reports it.
        return False

    def _after_node(self, event: WatchEvent) -> None:
        name = event.stored.name
        if event.type == "DELETED":
            self._hosts.pop(name, None)
        if event.type != "DELETED" and is_stopped(event.stored.document):
            self._stopped.add(name)
        elif name in self._stopped:
            self._stopped.discard(name)
            self._resume(name)

    def _resume(self, node_name: str) -> None:
        """Continue with the pods of a node whose kubelet runs again."""
        for stored in list(self._pods.values()):
            if _pod_of(stored).spec.node_name == node_name:
                self._guard.run(stored, partial(self._resume_pod, stored))

    def _resume_pod(self, stored: StoredObject) -> None:
        status = kubelet_status.ready_again(stored.document, now=self._now())
        if status is not None:
            self._patch_status(stored, status)
        if (newest := self._newest(stored)) is not None:
            self._handle(newest, _pod_of(newest))

    def _after_pod(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self._forget(event.stored.uid)
        elif (newest := self._newest(event.stored)) is not None:
            # An older state would start a pod that has been started since.
            self._handle(newest, _pod_of(newest))

    def _host(self, node_name: str) -> "_Host":
        """The node as it is now."""
        node = self._nodes.get(("", node_name))
        if node is None:
            return _NO_HOST
        known = self._hosts.get(node_name)
        if known is None or known.node is not node:
            known = self._hosts[node_name] = _Host(
                node, is_stopped(node.document), _address_of(node.document)
            )
        return known

    def _newest(self, stored: StoredObject) -> StoredObject | None:
        """The pod as it is now; None if it is gone."""
        newest = self._pods.get(stored.key)
        if newest is stored:
            return stored
        return newest if newest is not None and newest.uid == stored.uid else None

    def _handle(self, stored: StoredObject, pod: Pod) -> None:
        is_ending, node_name = pod.metadata.deletion_timestamp is not None, pod.spec.node_name
        if not node_name or not (is_ending or self._starts_pods) or pod in self._standing:
            return
        if self._host(node_name).is_stopped:
            return
        if is_ending:
            self._end_later(pod)
        elif not is_terminal(pod) and pod.metadata.uid not in self._next:
            if pod.status.start_time is None:
                self._later(stored, self._start_delay_s, self._start)
            elif pod.status.phase == "Running":
                self._await_end(stored)

    # --- A pod's run --------------------------------------------------------------------------

    def _later(
        self, stored: StoredObject, delay_s: float, work: Callable[..., None], *args: object
    ) -> None:
        """Call `work` with the newest state of a pod after a delay; without one, at once."""
        if delay_s <= 0:
            work(stored, *args)
            return
        # Not in the context of what has written the pod, which may be another part.
        self._next[stored.uid] = self._loop.call_later(
            delay_s, self._do, stored, work, *args, context=self._context
        )

    def _do(self, stored: StoredObject, work: Callable[..., None], *args: object) -> None:
        self._next.pop(stored.uid, None)
        newest = self._newest(stored)
        if newest is None:
            return
        pod = _pod_of(newest)
        if not (is_terminating(pod) or self._host(pod.spec.node_name).is_stopped):
            self._guard.run(newest, partial(work, newest, *args))

    def _start(self, stored: StoredObject) -> None:
        self._run_containers(stored, 0)

    def _restart(self, stored: StoredObject) -> None:
        self._run_containers(stored, 1)

    def _run_containers(self, stored: StoredObject, more_restarts: int) -> None:
        pod, now_ns = _pod_of(stored), self._clock.now_ns()
        # Only kubelets write the statuses of containers, and with these all that is read here.
        document = stored.document if pod.status.container_statuses else stored.desired
        restarts = more_restarts
        if pod.status.container_statuses:
            restarts += kubelet_status.restart_count(document)
        pod_ip = value_at(document, "status", "podIP")
        if not pod_ip:
            self._started_count += 1
        host_ip = self._host(pod.spec.node_name).address
        started = _Started(now_ns, pod_ip or self._started_count, host_ip, restarts)
        self._write_status(stored, kubelet_status.running_status(pod, now_ns), started)
        if self._log is not None:
            for container in pod.spec.containers:
                self._record(stored, "Started", f"Started container {container.name}")

    def _await_end(self, stored: StoredObject) -> None:
        run = run_of(stored.desired)
        if run is None:
            return
        # Even a run of no length takes some time, so that watchers see the pod running.
        self._later(stored, max(run.seconds, 0.001), self._finish, run)

    def _finish(self, stored: StoredObject, run: Run) -> None:
        now_ns = self._clock.now_ns()
        policy = value_at(stored.desired, "spec", "restartPolicy")
        if policy == "Never" or (policy == "OnFailure" and run.exit_code == 0):
            typed = kubelet_status.ended_status(_pod_of(stored), now_ns, run.exit_code)
            self._write_status(stored, typed, _Ended(now_ns, run.exit_code))
            return
        document, now = stored.document, whole_seconds(now_ns)
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
            self._ending[uid] = self._loop.call_later(
                delay_s, self._end, pod, context=self._context
            )

    def _end(self, pod: Pod) -> None:
        self._forget(pod.metadata.uid)
        if self._host(pod.spec.node_name).is_stopped:
            return
        with suppress(NotFoundError):  # It may be gone already.
            self._cluster.finish_termination(pod.metadata.namespace, pod.metadata.name)

    def _forget(self, uid: str) -> None:
        if (timer := self._next.pop(uid, None)) is not None:
            timer.cancel()
        if (timer := self._ending.pop(uid, None)) is not None:
            timer.cancel()

    # --- Parts --------------------------------------------------------------------------------

    def _now(self) -> str:
        return whole_seconds(self._clock.now_ns())

    def _write_status(
        self, stored: StoredObject, typed: PodStatus, made: "_Started | _Ended"
    ) -> None:
        """Write the pod with another phase; `made` makes what changes in the document."""
        if self._pods.get(stored.key) is not stored:
            # A second try after a fault: the pod has changed since.
            self._patch_status(stored, made.status(stored.document))
            return
        self._cluster.write_status(stored, typed, made)

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


# What makes a document is kept as long as the pod, and most are never read. So these are objects
# with a few fields: a function with what it refers to would be ten of them.


class _Started:
    """The edit of a pod whose containers run from now on."""

    __slots__ = ("_host_ip", "_now_ns", "_pod_ip", "_restarts")

    def __init__(self, now_ns: int, pod_ip: str | int, host_ip: str, restarts: int) -> None:
        """`pod_ip` may be the how many-th pod it is that was started."""
        self._now_ns = now_ns
        self._pod_ip = pod_ip
        self._host_ip = host_ip
        self._restarts = restarts

    def status(self, document: JsonObject) -> JsonObject:
        pod_ip = self._pod_ip
        return kubelet_status.running(
            document,
            now=whole_seconds(self._now_ns),
            pod_ip=pod_ip if isinstance(pod_ip, str) else _pod_address(pod_ip),
            host_ip=self._host_ip,
            restarts=self._restarts,
        )

    def __call__(self, document: JsonObject) -> JsonObject:
        return _with_status(document, self.status(document))


class _Ended:
    """The edit of a pod whose containers have ended for good."""

    __slots__ = ("_exit_code", "_now_ns")

    def __init__(self, now_ns: int, exit_code: int) -> None:
        self._now_ns = now_ns
        self._exit_code = exit_code

    def status(self, document: JsonObject) -> JsonObject:
        now = whole_seconds(self._now_ns)
        return kubelet_status.ended(document, now=now, exit_code=self._exit_code)

    def __call__(self, document: JsonObject) -> JsonObject:
        return _with_status(document, self.status(document))


def _with_status(document: JsonObject, changed: JsonObject) -> JsonObject:
    return {**document, "status": merge_patch(as_object(document.get("status")), changed)}


class _Host(NamedTuple):
    """What kubelets read of a node."""

    node: StoredObject | None
    is_stopped: bool
    address: str


_NO_HOST: Final = _Host(None, False, "127.0.0.1")


def _address_of(node: JsonObject) -> str:
    for address in objects_in(value_at(node, "status", "addresses")):
        if address.get("type") == "InternalIP":
            return address.get("address", "")
    return _NO_HOST.address


def _pod_address(number: int) -> str:
    """The address of the pod that is started as the n-th.

    Nothing listens there; in a large cluster addresses repeat.
    """
    host_count = POD_NETWORK.num_addresses - 2
    return str(POD_NETWORK[1 + (number - 1) % host_count])


def _pod_of(stored: StoredObject) -> Pod:
    pod = stored.typed
    assert isinstance(pod, Pod), pod
    return pod
