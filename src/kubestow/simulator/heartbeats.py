"""The heartbeats of simulated kubelets: one lease per node, renewed as real kubelets do.

The nodes are renewed in turns, a tenth of them every second, so that thousands of nodes cost a few
hundred small writes per second instead of a burst.

    node added ──► lease made ──► renewed every RENEW_S ──► node deleted: lease deleted
                       │ ▲
           stopped ────┘ └──── started again: renewed at once, and the node reported as ready

Without leases (`has_leases`) nothing is renewed, and only nodes that come back are reported: in a
virtual day thousands of nodes would renew tens of millions of times, without any effect.

Not here: what happens to a node without heartbeats (`controllers.node_lifecycle`).
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.watch import WatchEvent
from kubestow.clock import Clock
from kubestow.cluster.documents import microseconds_at, objects_in, value_at, whole_seconds
from kubestow.cluster.resources import LEASES, NODES
from kubestow.errors import NotFoundError
from kubestow.simulator.kubelet_switch import KUBELET, STOPPED, is_stopped
from kubestow.simulator.node_registration import reported_conditions

NAMESPACE: Final = "kube-node-lease"
LEASE_S: Final = 40
RENEW_S: Final = 10
# The loop handles other work after this many writes.
_BURST: Final = 100


class Heartbeats:
    def __init__(self, cluster: MemoryCluster, clock: Clock, *, has_leases: bool = True) -> None:
        self._cluster = cluster
        self._clock = clock
        self._has_leases = has_leases
        self._guard = Guard("kubelet heartbeats")
        # Nodes by name, in groups that are renewed in the same second.
        self._running: list[dict[str, StoredObject]] = [{} for _ in range(RENEW_S)]
        self._group_of: dict[str, int] = {}
        self._node_count = 0

    async def run(self) -> None:
        """Follow the nodes and renew their leases until cancelled."""
        watch = self._cluster.watch(NODES)
        renewing = asyncio.create_task(self._renew_in_turns()) if self._has_leases else None
        try:
            while batch := await watch.next_batch():
                for event in batch:
                    self._guard.run(event.stored, partial(self._handle, event))
        finally:
            if renewing is not None:
                renewing.cancel()
            watch.close()
            self._guard.close()

    async def _renew_in_turns(self) -> None:
        while True:
            for group in self._running:
                await asyncio.sleep(1)
                for number, node in enumerate(list(group.values())):
                    self._guard.run(node, partial(self._renew, node), "renew")
                    if number % _BURST == _BURST - 1:
                        await asyncio.sleep(0)

    # --- Nodes --------------------------------------------------------------------------------

    def _handle(self, event: WatchEvent) -> None:
        node = event.stored
        if event.type == "DELETED":
            self._stop(node.name)
            with suppress(NotFoundError):
                self._cluster.delete(LEASES, NAMESPACE, node.name)
            return
        if event.type == "ADDED" and _is_lost(node) and not is_stopped(node.document):
            # A node of another cluster that was lost there stays lost here.
            annotation: JsonObject = {"metadata": {"annotations": {KUBELET: STOPPED}}}
            self._cluster.patch(NODES, *node.key, annotation, "merge")
            return
        if is_stopped(node.document):
            self._stop(node.name)
            return
        if node.name not in self._group_of:
            self._start(node)
        if _is_lost(node):
            self._renew(node)
            self._report_ready(node)

    def _start(self, node: StoredObject) -> None:
        group = self._group_of[node.name] = self._node_count % RENEW_S
        self._node_count += 1
        self._running[group][node.name] = node
        self._renew(node)

    def _stop(self, node_name: str) -> None:
        if (group := self._group_of.pop(node_name, None)) is not None:
            del self._running[group][node_name]

    def _report_ready(self, node: StoredObject) -> None:
        """Replace the conditions of the time in which the node was lost."""
        known = objects_in(value_at(node.document, "status", "conditions"))
        kept = {one.get("type", ""): one for one in known if one.get("status") != "Unknown"}
        conditions = reported_conditions(kept, now=whole_seconds(self._clock.now_ns()))
        patch: JsonObject = {"status": {"conditions": conditions}}
        self._cluster.patch(NODES, *node.key, patch, "merge", subresource="status")

    # --- Leases -------------------------------------------------------------------------------

    def _renew(self, node: StoredObject) -> None:
        if not self._has_leases:
            return
        renewed = microseconds_at(self._clock.now_ns()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: JsonObject = {
            "holderIdentity": node.name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": renewed,
        }
        if self._cluster.find(LEASES, NAMESPACE, node.name) is not None:
            self._cluster.change(
                LEASES, NAMESPACE, node.name, lambda lease: {**lease, "spec": spec}
            )
            return
        owner: JsonObject = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": node.name,
            "uid": node.uid,
        }
        metadata = {"name": node.name, "namespace": NAMESPACE, "ownerReferences": [owner]}
        self._cluster.create(LEASES, {"metadata": metadata, "spec": spec})


def _is_lost(node: StoredObject) -> bool:
    """Whether the node is marked as one that sends no heartbeats."""
    return any(
        one.get("type") == "Ready" and one.get("status") == "Unknown"
        for one in objects_in(value_at(node.document, "status", "conditions"))
    )
