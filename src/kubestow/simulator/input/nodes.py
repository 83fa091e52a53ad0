"""Nodes that are added as copies of another, and nodes that are closed to new pods.

A copy has what a scheduler reads of a node, and the objects that drivers publish for it: its
CSINode (how many volumes it can attach) and its ResourceSlices (its devices). It is a new node in
good health: not cordoned, without images and without the taints of conditions.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.errors import InputError
from kubestow.simulator.defaults import NODES_PER_CLUSTER

_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
# Taints that say how a node is, which a controller keeps up to date.
_CONDITION_TAINT: Final = "node.kubernetes.io/"
# Parts of a node that a new one does not have yet, or has of its own.
_OWN_SPEC: Final = ("podCIDR", "podCIDRs", "providerID", "unschedulable", "taints")
_OWN_STATUS: Final = ("addresses", "images", "volumesAttached", "volumesInUse", "nodeInfo")


def require_node(documents: Sequence[Document], name: str) -> Document:
    """The node of this name; InputError if there is none."""
    nodes = {
        value_at(document.raw, "metadata", "name"): document
        for document in documents
        if document.raw.get("kind") == "Node"
    }
    if name in nodes:
        return nodes[name]
    similar = difflib.get_close_matches(name, [str(known) for known in nodes], n=1)
    hint = f'; did you mean "{similar[0]}"?' if similar else ""
    raise InputError(f'there is no node "{name}" among the {len(nodes)} of the cluster{hint}')


def cordoned(node: JsonObject) -> JsonObject:
    """The node as `kubectl cordon` and the controller of its taints leave it."""
    taints = objects_in(value_at(node, "spec", "taints"))
    if all(taint.get("key") != _UNSCHEDULABLE for taint in taints):
        taints = [*taints, {"key": _UNSCHEDULABLE, "effect": "NoSchedule"}]
    return {
        **node,
        "spec": {**as_object(node.get("spec")), "unschedulable": True, "taints": taints},
    }


def copies_of_node(documents: Sequence[Document], like: str, count: int) -> list[Document]:
    """New nodes `LIKE-copy-1`, …, each with copies of what belongs to the node."""
    if not 1 <= count <= NODES_PER_CLUSTER:
        raise InputError(f"cannot add {count} nodes, expected 1 to {NODES_PER_CLUSTER}")
    node = require_node(documents, like)
    taken = {
        value_at(one.raw, "metadata", "name") for one in documents if one.raw.get("kind") == "Node"
    }
    belonging = [one for one in documents if _belongs_to(one.raw, like)]
    made: list[Document] = []
    for name in _free_names(like, count, taken):
        source = f"{node.source} (copy {name})"
        made.append(Document(node_copy(node.raw, name), source))
        made += (Document(_copied(one.raw, like, name), source) for one in belonging)
    return made


def _free_names(like: str, count: int, taken: set[Any]) -> Iterator[str]:
    number = 0
    while count:
        number += 1
        name = f"{like}-copy-{number}"
        if name not in taken:
            count -= 1
            yield name


def _belongs_to(raw: JsonObject, node_name: str) -> bool:
    match raw.get("kind"):
        case "CSINode":
            return value_at(raw, "metadata", "name") == node_name
        case "ResourceSlice":
            return value_at(raw, "spec", "nodeName") == node_name
        case _:
            return False


def node_copy(node: JsonObject, name: str) -> JsonObject:
    """A new node like this one, in good health."""
    like = value_at(node, "metadata", "name")
    labels = as_object(value_at(node, "metadata", "labels"))
    # Some drivers have labels with the name of the node, as the host name label has it.
    own = {key: name if value == like else value for key, value in labels.items()}
    spec, status = as_object(node.get("spec")), as_object(node.get("status"))
    taints = [
        taint
        for taint in objects_in(spec.get("taints"))
        if not str(taint.get("key")).startswith(_CONDITION_TAINT)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, HOSTNAME_LABEL: name}},
        "spec": {
            **{key: value for key, value in spec.items() if key not in _OWN_SPEC},
            **({"taints": taints} if taints else {}),
        },
        "status": {key: value for key, value in status.items() if key not in _OWN_STATUS},
    }


def _copied(raw: JsonObject, like: str, name: str) -> JsonObject:
    if raw.get("kind") == "CSINode":
        drivers = [
            {**driver, "nodeID": name} for driver in objects_in(value_at(raw, "spec", "drivers"))
        ]
        return {**raw, "metadata": {"name": name}, "spec": {"drivers": drivers}}
    slice_name, pool = value_at(raw, "metadata", "name"), value_at(raw, "spec", "pool", "name")
    own_pool = name if pool == like else f"{pool}-{name}"
    spec = replaced_at({**as_object(raw.get("spec")), "nodeName": name}, ("pool", "name"), own_pool)
    return {**raw, "metadata": {"name": f"{slice_name}-{name}"}, "spec": spec}
