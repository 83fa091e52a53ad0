"""What kubelets do on a real API server where there are no machines: heartbeats, and the states of
pods. A kubelet stops with an annotation of its node, as in a simulation (`kubelet_switch`)."""

import asyncio
import contextlib

from tests.e2e.control_plane.mirrored_store import MirroredStore

from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition, is_terminal
from kubestow.apiserver.store import StoredObject
from kubestow.clock import SystemClock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ConflictError, NotFoundError
from kubestow.simulator.kubelet_switch import is_stopped

TURN_S = 0.1
HEARTBEAT_S = 1.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class PretendedKubelets:
    """Run `run` beside what follows the store."""

    def __init__(self, store: MirroredStore) -> None:
        self._store = store
        self._renewed_s: dict[str, float] = {}

    @property
    def is_busy(self) -> bool:
        """Whether something is to be done with a pod or a node."""
        running = self._running()
        return any(not _is_ready(node) for node in running.values()) or any(
            _is_to_end(pod) or _is_to_start(pod)
            for pod in self._store.objects_of(PODS)
            if _typed(pod).spec.node_name in running
        )

    async def run(self) -> None:
        while True:
            for name, node in self._running().items():
                self._renew(name)
                if not _is_ready(node):
                    self._write_ready(node)
            running = self._running()
            for pod in list(self._store.objects_of(PODS)):
                if _typed(pod).spec.node_name in running:
                    with contextlib.suppress(NotFoundError, ConflictError):
                        self._serve(pod)
            await asyncio.sleep(TURN_S)

    def _running(self) -> dict[str, StoredObject]:
        nodes = self._store.objects_of(NODES)
        return {node.name: node for node in nodes if not is_stopped(node.document)}

    def _renew(self, name: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._renewed_s.get(name, 0.0) < HEARTBEAT_S:
            return
        is_new = name not in self._renewed_s
        self._renewed_s[name] = now_s
        now = f"{self._now().removesuffix('Z')}.000000Z"
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
        if is_new:
            metadata = {"name": name, "namespace": "kube-node-lease"}
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": metadata,
                "spec": spec,
            }
            with contextlib.suppress(ConflictError):
                self._store.api.request("POST", LEASES, lease)
                return
        kind = "application/merge-patch+json"
        self._store.api.request("PATCH", f"{LEASES}/{name}", {"spec": spec}, kind)

    def _write_ready(self, node: StoredObject) -> None:
        status = {"conditions": [self._condition("Ready")]}
        with contextlib.suppress(NotFoundError):
            self._store.patch(NODES, "", node.name, {"status": status}, subresource="status")

    def _serve(self, pod: StoredObject) -> None:
        if _is_to_end(pod):
            self._store.delete(PODS, *pod.key, uid=pod.uid, grace_period_s=0)
        elif _is_to_start(pod):
            status: JsonObject = {
                "phase": "Running",
                "conditions": [self._condition("Ready"), self._condition("ContainersReady")],
            }
            self._store.patch(PODS, *pod.key, {"status": status}, subresource="status")

    def _condition(self, name: str) -> JsonObject:
        return {"type": name, "status": "True", "lastTransitionTime": self._now()}

    def _now(self) -> str:
        return whole_seconds(SystemClock().now_ns())


def _typed(stored: StoredObject) -> Pod:
    pod = stored.typed
    assert isinstance(pod, Pod), stored
    return pod


def _is_ready(node: StoredObject) -> bool:
    typed = node.typed
    assert isinstance(typed, Node), node
    ready = first_condition(typed.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def _is_to_end(stored: StoredObject) -> bool:
    return _typed(stored).metadata.deletion_timestamp is not None


def _is_to_start(stored: StoredObject) -> bool:
    pod = _typed(stored)
    if is_terminal(pod):
        return False
    ready = first_condition(pod.status.conditions, "Ready")
    return pod.status.phase != "Running" or ready is None or ready.status != "True"
