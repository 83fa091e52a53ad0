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
from kubestow.api.owners import controller_of
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import CPU, MEMORY, PODS, Resources, amount_of
from kubestow.api.storage import CSINode
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.arrays import pick
from kubestow.cache.objects import ObjectStore
from kubestow.explain.evidence.amounts import quantity_of
from kubestow.explain.suggestions.node_changes import wanted_labels
from kubestow.explain.suggestions.pod_rules import SYSTEM_PREFIX
from kubestow.explain.suggestions.remedy import ADD_NODE, Remedy, make_remedy
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit

NODE_KINDS_TRIED: Final = 8
# A computed shape is a larger change than one more node of a known kind.
COMPUTED: Final = 10
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


class OfferedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that can be added: what it offers and its labels."""

    capacity: Mapping[str, str]
    labels: Mapping[str, str] = {}


def add_node(stuck: StuckPod, shape: OfferedNode | None) -> Iterator[Remedy]:
    """A node of the shape if it helps, and one like the smallest node that does."""
    if stuck.rejected_early:
        return
    if shape is not None:
        node = node_of(shape, free_name(stuck.cluster.objects.nodes, f"node{SUFFIX}"))
        if stuck.fits_with(node):
            yield make_remedy(
                ADD_NODE, f"add a node with {offer_text(shape)}", stuck.pod, objects=(node,)
            )
    copies = list(_copies(stuck))
    # All at once first: adding a node moves the rows of all others.
    with stuck.cluster.changed(*chain.from_iterable(copies)):
        rows = stuck.feasible(stuck.pod)
        fitting = pick(stuck.snapshot.names, rows)
    for copy in copies:
        node = copy[0]
        if node.metadata.name in fitting and stuck.fits_with(*copy):
            text = f"add a node like {node.metadata.name.removesuffix(SUFFIX)}"
            yield make_remedy(ADD_NODE, text, stuck.pod, objects=copy)
            if not stuck.is_member:
                return


def computed_node(stuck: StuckPod) -> Iterator[Remedy]:
    """The smallest node on which the pod fits: what it requests, and the daemons of most nodes.

    It has the labels that the pod selects by. For pods that no kind of node in the cluster suits.
    """
    plugin = stuck.attempt.profile.plugins.get(FIT)
    if stuck.rejected_early or not isinstance(plugin, NodeResourcesFit):
        return
    amounts = {each.name: each.amount for each in plugin.fit_request(stuck.attempt.state).demands}
    daemons = _common_daemons(stuck)
    for name in dict.fromkeys((*amounts, CPU, MEMORY)):
        shared = sum(amount_of(name, each.accounted.requested) for each in daemons)
        if name in amounts or shared:
            amounts[name] = amounts.get(name, 0) + shared
    capacity = {name: str(quantity_of(name, each)) for name, each in amounts.items()}
    labels = dict(wanted_labels(stuck.pod))
    shape = OfferedNode(capacity=capacity | {PODS: str(len(daemons) + 1)}, labels=labels)
    node = node_of(shape, free_name(stuck.cluster.objects.nodes, f"node{SUFFIX}"))
    if stuck.fits_with(node):
        offer = offer_text(OfferedNode(capacity=capacity, labels=labels)) or "anything"
        text = f"add a node with at least {offer}"
        yield make_remedy(ADD_NODE, text, stuck.pod, objects=(node,), amount=COMPUTED)


def _common_daemons(stuck: StuckPod) -> list[PodInfo]:
    """A pod of each DaemonSet that has pods on most nodes."""
    found: dict[str, list[PodInfo]] = {}
    for info in stuck.snapshot.node_infos:
        for pod in info.pods:
            owner = controller_of(pod.pod)
            if owner is not None and owner.kind == "DaemonSet":
                found.setdefault(owner.uid, []).append(pod)
    return [pods[0] for pods in found.values() if 2 * len(pods) > len(stuck.snapshot)]


def _copies(stuck: StuckPod) -> Iterator[tuple[ApiObject, ...]]:
    for row in _kinds(stuck):
        like = stuck.snapshot.nodes[row]
        node = copied(like, free_name(stuck.cluster.objects.nodes, f"{like.metadata.name}{SUFFIX}"))
        yield node, *_copied_csi_node(stuck, like, node)


def _kinds(stuck: StuckPod) -> list[int]:
    """A row of each kind of node, the smallest first."""
    rows: list[int] = stuck.blockers.rows_within(_OF_STATE).tolist()
    snapshot = stuck.snapshot
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


def _copied_csi_node(stuck: StuckPod, like: Node, node: Node) -> Iterator[CSINode]:
    csi_node = stuck.cluster.objects.csi_nodes.get(like.metadata.name)
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


def node_of(shape: OfferedNode, name: str) -> Node:
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


def offer_text(shape: OfferedNode) -> str:
    labels = (f"label {key}={value}" for key, value in shape.labels.items())
    return ", ".join((*(f"{name} {value}" for name, value in shape.capacity.items()), *labels))
