"""The first report of a new node's kubelet: conditions, addresses, node info.

Given values are kept. So `kubectl apply` of a node with only a capacity is enough for a node that
pods can run on.
"""

from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network
from typing import Final

from kubestow import __version__
from kubestow.api.meta import JsonObject
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import as_object, objects_in, value_at, whole_seconds
from kubestow.cluster.resources import NODES
from kubestow.errors import NotFoundError

NODE_NETWORK: Final = IPv4Network("172.18.0.0/16")
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


class NodeRegistration:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._guard = Guard("node-registration")
        self._count = 0

    async def run(self) -> None:
        """Register nodes until cancelled."""
        watch = self._cluster.watch(NODES)
        try:
            while batch := await watch.next_batch():
                for event in batch:
                    if event.type == "ADDED":
                        self._guard.run(event.stored, partial(self.register, event.stored))
        finally:
            watch.close()
            self._guard.close()

    def register(self, node: StoredObject) -> None:
        """Fill in what the node's status lacks."""
        conditions = objects_in(value_at(node.document, "status", "conditions"))
        if any(condition.get("lastHeartbeatTime") for condition in conditions):
            return
        status = as_object(node.document.get("status"))
        given = {condition.get("type", ""): condition for condition in conditions}
        now = whole_seconds(self._clock.now_ns())
        patch: JsonObject = {"conditions": reported_conditions(given, now=now)}
        if not status.get("addresses"):
            patch["addresses"] = [
                {"type": "InternalIP", "address": self._new_address()},
                {"type": "Hostname", "address": node.name},
            ]
        if not status.get("nodeInfo"):
            patch["nodeInfo"] = _node_info(f"{self._cluster.gates.edition.version}.0")
        with suppress(NotFoundError):
            if HOSTNAME_LABEL not in as_object(node.metadata.get("labels")):
                metadata = {"labels": {HOSTNAME_LABEL: node.name}}
                self._cluster.patch(NODES, "", node.name, {"metadata": metadata}, "merge")
            self._cluster.patch(
                NODES, "", node.name, {"status": patch}, "merge", subresource="status"
            )

    def _new_address(self) -> str:
        self._count += 1
        return str(NODE_NETWORK[1 + self._count % (NODE_NETWORK.num_addresses - 2)])


def reported_conditions(given: dict[str, JsonObject], *, now: str) -> list[JsonObject]:
    """The conditions of a healthy node, by a kubelet; given ones, by type, are kept."""
    wanted = {type: ("False", f"KubeletHasNo{type}") for type in _PRESSURES}
    wanted["Ready"] = ("True", "KubeletReady")
    found = dict(given)
    for type, (status, reason) in wanted.items():
        found[type] = {
            "type": type,
            "status": status,
            "reason": reason,
            "message": "reported for a kubelet that is not there",
            "lastTransitionTime": now,
            **given.get(type, {}),
            "lastHeartbeatTime": now,
        }
    return list(found.values())


def _node_info(kubelet_version: str) -> JsonObject:
    return {
        "kubeletVersion": kubelet_version,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "osImage": f"kubestow {__version__}",
        "kernelVersion": "none",
        "containerRuntimeVersion": "none://0",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }
