"""Add a node: one like a node of the cluster, or of a shape that was given.

A copy has what the node offers, its labels and its taints; neither pods, nor a cordon, nor taints
that the control plane sets. A label whose value is the node's name gets the new name. Of several
kinds of nodes that would do, the smallest is copied.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec

from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.node import Node, NodeSpec, NodeStatus
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import Resources
from kubestow.api.storage import CSINode
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.arrays import pick
from kubestow.cache.objects import ObjectStore
from kubestow.explain.suggestions.case import Case
from kubestow.explain.suggestions.change import ADD_NODE, Change, make_change
from kubestow.explain.suggestions.pod_rules import SYSTEM_PREFIX

NODE_KINDS_TRIED: Final = 8
SUFFIX: Final = "-new"
# Filters that may reject a node because of the pods on it, or its state.
_OF_STATE: Final = frozenset(
    (
        "InterPodAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeRestrictions",
    )
)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A node that can be added: what it offers and its labels."""

    capacity: Mapping[str, str]
    labels: Mapping[str, str] = {}


def add_node(case: Case, shape: Shape | None) -> Iterator[Change]:
    """A node of the shape if it helps, and one like the smallest node that does."""
    if case.rejected_early:
        return
    if shape is not None:
        node = node_of(shape, free_name(case.cluster.objects.nodes, f"node{SUFFIX}"))
        if case.fits_with(node):
            yield make_change(
                ADD_NODE, f"add a node with {_offer(shape)}", case.pod, objects=(node,)
            )
    copies = list(_copies(case))
    # All at once first: adding a node moves the rows of all others.
    with case.cluster.changed(*chain.from_iterable(copies)):
        rows = case.feasible(case.pod)
        fitting = pick(case.snapshot.names, rows)
    for copy in copies:
        node = copy[0]
        if node.metadata.name in fitting and case.fits_with(*copy):
            text = f"add a node like {node.metadata.name.removesuffix(SUFFIX)}"
            yield make_change(ADD_NODE, text, case.pod, objects=copy)
            if not case.is_member:
                return


def _copies(case: Case) -> Iterator[tuple[ApiObject, ...]]:
    for row in _kinds(case):
        like = case.snapshot.nodes[row]
        node = copied(like, free_name(case.cluster.objects.nodes, f"{like.metadata.name}{SUFFIX}"))
        yield node, *_copied_csi_node(case, like, node)


def _kinds(case: Case) -> list[int]:
    """A row of each kind of node, the smallest first."""
    rows: list[int] = case.blockers.rows_within(_OF_STATE).tolist()
    snapshot = case.snapshot
    smallest = sorted(
        rows,
        key=lambda row: (
            _size(snapshot.node_infos[row].allocatable),
            snapshot.nodes[row].spec.unschedulable,
            row,
        ),
    )
    kinds: dict[bytes, int] = {}
    for row in smallest:
        if len(kinds) == NODE_KINDS_TRIED:
            break
        kinds.setdefault(msgspec.msgpack.encode(_signature(snapshot.nodes[row])), row)
    return list(kinds.values())


def _size(allocatable: Resources) -> tuple[int, int, int]:
    return sum(allocatable.scalar.values()), allocatable.milli_cpu, allocatable.memory


def _signature(node: Node) -> object:
    """Equal for nodes that only differ in their names."""
    copy = copied(node, "")
    taints = [(taint.key, taint.value, taint.effect) for taint in copy.spec.taints]
    offered = sorted((name, str(offer)) for name, offer in copy.status.allocatable.items())
    return offered, sorted(copy.metadata.labels.items()), taints


def copied(like: Node, name: str) -> Node:
    """A node of the same kind without pods."""
    labels = {
        key: name if value == like.metadata.name or key == HOSTNAME_LABEL else value
        for key, value in like.metadata.labels.items()
    }
    taints = (taint for taint in like.spec.taints if not taint.key.startswith(SYSTEM_PREFIX))
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(
            capacity=like.status.capacity,
            allocatable=like.status.allocatable,
            declared_features=like.status.declared_features,
        ),
    )


def _copied_csi_node(case: Case, like: Node, node: Node) -> Iterator[CSINode]:
    csi_node = case.cluster.objects.csi_nodes.get(like.metadata.name)
    if csi_node is not None:
        drivers = (
            msgspec.structs.replace(driver, node_id=node.metadata.name)
            for driver in csi_node.spec.drivers
        )
        yield CSINode(
            api_version="storage.k8s.io/v1",
            kind="CSINode",
            metadata=ObjectMeta(name=node.metadata.name),
            spec=msgspec.structs.replace(csi_node.spec, drivers=tuple(drivers)),
        )


def node_of(shape: Shape, name: str) -> Node:
    offered = {key: parse_quantity(value) for key, value in shape.capacity.items()}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels={HOSTNAME_LABEL: name, **shape.labels}),
        status=NodeStatus(capacity=offered, allocatable=offered),
    )


def free_name(nodes: ObjectStore[Node], name: str) -> str:
    """The name, with a number if there is such a node."""
    number, free = 1, name
    while nodes.get(free) is not None:
        number += 1
        free = f"{name}-{number}"
    return free


def _offer(shape: Shape) -> str:
    labels = (f"label {key}={value}" for key, value in shape.labels.items())
    return ", ".join((*(f"{name} {value}" for name, value in shape.capacity.items()), *labels))
