"""The address of a service. Nothing listens there; it only has to be unique.

A service with an address of its own, or with `clusterIP: None`, keeps it.
"""

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import replaced_at, value_at

NETWORK: Final = IPv4Network("10.96.0.0/16")
_WITHOUT_ADDRESS: Final = "ExternalName"


def with_cluster_address(document: JsonObject, services: Iterable[JsonObject]) -> JsonObject:
    """The service with the first address that none of the services has."""
    if value_at(document, "spec", "clusterIP"):
        return document
    if value_at(document, "spec", "type") == _WITHOUT_ADDRESS:
        return document
    taken = {value_at(service, "spec", "clusterIP") for service in services}
    address = next(text for host in NETWORK.hosts() if (text := str(host)) not in taken)
    document = replaced_at(document, ("spec", "clusterIP"), address)
    return replaced_at(document, ("spec", "clusterIPs"), [address])
