"""The columns of kinds about networks: ingresses, policies, endpoints, addresses."""

from collections.abc import Iterable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    joined,
    name_of,
    selector_text,
    text,
)
from kubestow.apiserver.http.table import Column, TableColumns
from kubestow.cluster.documents import as_list, as_object, objects_in, value_at

_SHOWN_MAX: Final = 3  # of a list in a cell
_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_ADDRESS_WIDTH: Final = 16


def _first_ones(texts: Iterable[str], missing: str) -> str:
    found = list(texts)
    if not found:
        return missing
    shown = ",".join(found[:_SHOWN_MAX])
    more = len(found) - _SHOWN_MAX
    return f"{shown} + {more} more..." if more > 0 else shown


def _hosts(ingress: JsonObject, _now_ns: int) -> str:
    rules = objects_in(value_at(ingress, "spec", "rules"))
    return _first_ones((rule["host"] for rule in rules if rule.get("host")), "*")


def _addresses(ingress: JsonObject, _now_ns: int) -> str:
    entries = objects_in(value_at(ingress, "status", "loadBalancer", "ingress"))
    found = {str(entry.get("ip") or entry.get("hostname") or "") for entry in entries}
    shown = ",".join(sorted(filter(None, found)))
    return shown if len(shown) <= _ADDRESS_WIDTH else f"{shown[: _ADDRESS_WIDTH - 3]}..."


def _ingress_ports(ingress: JsonObject, _now_ns: int) -> str:
    return "80, 443" if value_at(ingress, "spec", "tls") else "80"


def _class_name(ingress_class: JsonObject, now_ns: int) -> str:
    annotations = as_object(value_at(ingress_class, "metadata", "annotations"))
    is_default = annotations.get(_DEFAULT_CLASS) == "true"
    return name_of(ingress_class, now_ns) + (" (default)" if is_default else "")


def _parameters(ingress_class: JsonObject, _now_ns: int) -> str:
    found = as_object(value_at(ingress_class, "spec", "parameters"))
    if not found:
        return NONE
    group = found.get("apiGroup")
    return f"{found.get('kind', '')}{f'.{group}' if group else ''}/{found.get('name', '')}"


def _pod_selector(policy: JsonObject, _now_ns: int) -> str:
    return selector_text(value_at(policy, "spec", "podSelector"))


def _slice_ports(slice: JsonObject, _now_ns: int) -> str:
    ports = objects_in(slice.get("ports"))
    return _first_ones((str(port.get("port") or port.get("name") or "*") for port in ports), UNSET)


def _slice_endpoints(slice: JsonObject, _now_ns: int) -> str:
    endpoints = objects_in(slice.get("endpoints"))
    return _first_ones(
        (str(address) for one in endpoints for address in as_list(one.get("addresses"))), UNSET
    )


def _endpoints(endpoints: JsonObject, _now_ns: int) -> str:
    found: list[str] = []
    for subset in objects_in(endpoints.get("subsets")):
        hosts = [str(address.get("ip", "")) for address in objects_in(subset.get("addresses"))]
        ports = objects_in(subset.get("ports"))
        found += [f"{host}:{port.get('port')}" for port in ports for host in hosts]
        found += [] if ports else hosts
    return _first_ones(found, NONE)


def _cidrs(service_cidr: JsonObject, _now_ns: int) -> str:
    return joined(as_list(value_at(service_cidr, "spec", "cidrs")), "")


def _parent(address: JsonObject, _now_ns: int) -> str:
    parent = as_object(value_at(address, "spec", "parentRef"))
    if not parent:
        return NONE
    group, namespace = parent.get("group"), parent.get("namespace")
    plural = f"{parent.get('resource', '')}{f'.{group}' if group else ''}".lower()
    return "/".join(filter(None, (plural, namespace, parent.get("name", ""))))


NETWORK_COLUMNS: Final[dict[str, TableColumns]] = {
    "ingresses.networking.k8s.io": (
        NAME,
        Column("Class", text("spec", "ingressClassName", missing=NONE)),
        Column("Hosts", _hosts),
        Column("Address", _addresses),
        Column("Ports", _ingress_ports),
        AGE,
    ),
    "ingressclasses.networking.k8s.io": (
        Column("Name", _class_name, format="name"),
        Column("Controller", text("spec", "controller")),
        Column("Parameters", _parameters),
        AGE,
    ),
    "networkpolicies.networking.k8s.io": (NAME, Column("Pod-Selector", _pod_selector), AGE),
    "endpointslices.discovery.k8s.io": (
        NAME,
        Column("AddressType", text("addressType")),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_endpoints),
        AGE,
    ),
    "endpoints": (NAME, Column("Endpoints", _endpoints), AGE),
    "servicecidrs.networking.k8s.io": (NAME, Column("CIDRs", _cidrs), AGE),
    "ipaddresses.networking.k8s.io": (NAME, Column("ParentRef", _parent)),
}
