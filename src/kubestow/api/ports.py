"""Host ports: those a pod requests and those in use on a node (spec 01 §6).

A port is a triple of texts and a number; nothing parses the address, and only `0.0.0.0` is a
wildcard. Not here: the answer for all nodes at once (plugin NodePorts).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kubestow.api.pod import Container, Pod
from kubestow.api.requests import is_sidecar

ANY_IP: Final = "0.0.0.0"
DEFAULT_PROTOCOL: Final = "TCP"


class HostPort(NamedTuple):
    """A port on the node's own address. Empty `ip` and `protocol` mean their defaults."""

    ip: str
    protocol: str
    port: int

    def normalized(self) -> "HostPort":
        if self.ip and self.protocol:
            return self
        return HostPort(self.ip or ANY_IP, self.protocol or DEFAULT_PROTOCOL, self.port)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports the pod requests, normalized: those of sidecars first, then of its containers.

    Ports of other init containers are left out, and one requested twice is listed twice.
    """
    spec = pod.spec
    return tuple(_requested((*filter(is_sidecar, spec.init_containers), *spec.containers)))


class UsedPorts:
    """The host ports in use on one node.

    A set, with no count of holders: once two pods hold the same triple (which only happens when
    something else placed them), removing one frees it.
    """

    __slots__ = ("_addressed", "_any_ip", "_ports")

    def __init__(self, ports: Iterable[HostPort] = ()) -> None:
        self._ports: set[HostPort] = set()
        # Protocol and number: on how many addresses, and those that are in use on all of them.
        self._addressed: dict[tuple[str, int], int] = {}
        self._any_ip: set[tuple[str, int]] = set()
        for port in ports:
            self.add(port)

    def add(self, port: HostPort) -> None:
        port = port.normalized()
        if port.port <= 0 or port in self._ports:
            return
        self._ports.add(port)
        key = (port.protocol, port.port)
        self._addressed[key] = self._addressed.get(key, 0) + 1
        if port.ip == ANY_IP:
            self._any_ip.add(key)

    def remove(self, port: HostPort) -> None:
        """Free the port; one that is not in use is no error."""
        port = port.normalized()
        if port not in self._ports:
            return
        self._ports.discard(port)
        key = (port.protocol, port.port)
        self._addressed[key] -= 1
        if not self._addressed[key]:
            del self._addressed[key]
        if port.ip == ANY_IP:
            self._any_ip.discard(key)

    def conflicts(self, port: HostPort) -> bool:
        """Whether the port is in use for a pod that requests it."""
        if not self._ports:
            return False
        port = port.normalized()
        key = (port.protocol, port.port)
        return (
            port in self._ports
            or key in self._any_ip
            or (port.ip == ANY_IP and key in self._addressed)
        )

    def overlaps(self, wanted: "UsedPorts") -> bool:
        """Whether one of these ports is in use for a pod that requests them.

        Whole sets are compared: both may have thousands of ports, on many nodes.
        """
        return not (
            self._ports.isdisjoint(wanted._ports)
            and _are_apart(self._any_ip, wanted._addressed)
            and _are_apart(wanted._any_ip, self._addressed)
        )

    def copy(self) -> "UsedPorts":
        clone = UsedPorts()
        clone._ports = set(self._ports)
        clone._addressed = dict(self._addressed)
        clone._any_ip = set(self._any_ip)
        return clone

    def __iter__(self) -> Iterator[HostPort]:
        return iter(self._ports)

    def __bool__(self) -> bool:
        return bool(self._ports)

    def __len__(self) -> int:
        return len(self._ports)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UsedPorts):
            return NotImplemented
        return self._ports == other._ports

    def __repr__(self) -> str:
        return f"UsedPorts({sorted(self)})"


def _are_apart(keys: set[tuple[str, int]], others: dict[tuple[str, int], int]) -> bool:
    if len(keys) < len(others):
        return not any(map(others.__contains__, keys))
    return keys.isdisjoint(others)


def _requested(containers: Iterable[Container]) -> Iterator[HostPort]:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip, port.protocol, port.host_port).normalized()
