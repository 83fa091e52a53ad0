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
    return (*_requested(filter(is_sidecar, spec.init_containers)), *_requested(spec.containers))


class UsedPorts:
    """The host ports in use on one node.

    A set, with no count of holders: once two pods hold the same triple (which only happens when
    something else placed them), removing one frees it.
    """

    __slots__ = ("_ips",)

    def __init__(self, ports: Iterable[HostPort] = ()) -> None:
        # A port is looked up by protocol and number; the addresses holding it are few.
        self._ips: dict[tuple[str, int], set[str]] = {}
        for port in ports:
            self.add(port)

    def add(self, port: HostPort) -> None:
        if port.port <= 0:
            return
        ip, protocol, number = port.normalized()
        self._ips.setdefault((protocol, number), set()).add(ip)

    def remove(self, port: HostPort) -> None:
        """Free the port; one that is not in use is no error."""
        ip, protocol, number = port.normalized()
        ips = self._ips.get((protocol, number))
        if ips is None:
            return
        ips.discard(ip)
        if not ips:
            del self._ips[protocol, number]

    def conflicts(self, port: HostPort) -> bool:
        """Whether the port is in use for a pod that requests it."""
        if not self._ips:
            return False
        ip, protocol, number = port.normalized()
        ips = self._ips.get((protocol, number))
        if ips is None:
            return False
        return ip == ANY_IP or ip in ips or ANY_IP in ips

    def overlaps(self, wanted: "UsedPorts") -> bool:
        """Whether one of these ports is in use for a pod that requests them."""
        first, second = self._ips, wanted._ips
        if len(first) > len(second):
            first, second = second, first
        for key, ips in first.items():
            others = second.get(key)
            if others and (ANY_IP in ips or ANY_IP in others or not ips.isdisjoint(others)):
                return True
        return False

    def copy(self) -> "UsedPorts":
        clone = UsedPorts()
        clone._ips = {key: set(ips) for key, ips in self._ips.items()}
        return clone

    def __iter__(self) -> Iterator[HostPort]:
        for (protocol, number), ips in self._ips.items():
            for ip in ips:
                yield HostPort(ip, protocol, number)

    def __bool__(self) -> bool:
        return bool(self._ips)

    def __len__(self) -> int:
        return sum(len(ips) for ips in self._ips.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UsedPorts):
            return NotImplemented
        return self._ips == other._ips

    def __repr__(self) -> str:
        return f"UsedPorts({sorted(self)})"


def _requested(containers: Iterable[Container]) -> Iterator[HostPort]:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip, port.protocol, port.host_port).normalized()
