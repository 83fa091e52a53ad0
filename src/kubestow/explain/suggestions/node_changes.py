"""Changes of one node: uncordon it, remove a taint, add a label, raise a limit.

Only nodes on which nothing else is in the way are changed. Where the same change helps on many
nodes it is one suggestion: `others` says on how many more.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node, Taint
from kubestow.api.pod import NodeSelectorRequirement, Pod
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import PODS
from kubestow.api.storage import CSINode, VolumeNodeResources
from kubestow.api.taints import UNSCHEDULABLE_TAINT, taint_text
from kubestow.explain.suggestions.corrections import misspelt_keys
from kubestow.explain.suggestions.pod_rules import SYSTEM_PREFIX
from kubestow.explain.suggestions.remedy import (
    ADD_LABEL,
    RAISE_POD_LIMIT,
    RAISE_VOLUME_LIMIT,
    REMOVE_TAINT,
    UNCORDON,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.plugins.node_resources_fit.shortage import TOO_MANY_PODS

TAINTS: Final = ("NodeUnschedulable", "TaintToleration")
# How many nodes are tried for the same change, and how many different ones of a kind.
NODES_TRIED: Final = 3
KINDS_TRIED: Final = 12


class _Options:
    """Rows by what would be done to them, in visiting order."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}

    def add(self, text: str, row: int) -> None:
        self._rows.setdefault(text, []).append(row)

    def changes(
        self, stuck: StuckPod, kind: str, changed: Callable[[str, int], ApiObject | None]
    ) -> Iterator[Remedy]:
        """One remedy for each thing to do: on the first node on which it helps."""
        for what, rows in list(self._rows.items())[:KINDS_TRIED]:
            for row in rows[:NODES_TRIED]:
                new = changed(what, row)
                if new is None or not stuck.fits_with(new):
                    continue
                text = what.format(node=stuck.snapshot.names[row])
                others = 0 if stuck.is_member else len(rows) - 1
                yield make_remedy(kind, text, stuck.pod, objects=(new,), others=others)
                if not stuck.is_member:
                    break


def change_nodes(stuck: StuckPod) -> Iterator[Remedy]:
    """All of the below."""
    yield from uncordon(stuck)
    yield from remove_taint(stuck)
    yield from add_label(stuck)
    yield from raise_pod_limit(stuck)
    yield from raise_volume_limit(stuck)


def uncordon(stuck: StuckPod) -> Iterator[Remedy]:
    options = _Options()
    if stuck.is_blocked_by("NodeUnschedulable"):
        for row in stuck.rows_blocked_by(*TAINTS):
            if stuck.snapshot.nodes[row].spec.unschedulable:
                keys = {taint.key for taint in stuck.untolerated(row)}
                if UNSCHEDULABLE_TAINT.key in keys and len(keys) <= stuck.slack:
                    options.add("uncordon {node}", row)
    yield from options.changes(
        stuck, UNCORDON, lambda _, row: uncordoned(stuck.snapshot.nodes[row])
    )


def uncordoned(node: Node) -> Node:
    """The node without the mark and the taint of a cordon."""
    taints = (taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT.key)
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=tuple(taints))
    return msgspec.structs.replace(node, spec=spec)


def remove_taint(stuck: StuckPod) -> Iterator[Remedy]:
    """Taints of the control plane are left: it would set them again."""
    options = _Options()
    taint_of: dict[str, Taint] = {}
    if stuck.is_blocked_by("TaintToleration"):
        for row in stuck.rows_blocked_by(*TAINTS):
            taints = stuck.untolerated(row)
            for taint in taints if len(taints) <= stuck.slack else ():
                if not taint.key.startswith(SYSTEM_PREFIX):
                    what = f"remove the taint {_taint_text(taint)} from {{node}}"
                    taint_of[what] = taint
                    options.add(what, row)

    def untainted(what: str, row: int) -> Node:
        return without_taint(stuck.snapshot.nodes[row], taint_of[what])

    yield from options.changes(stuck, REMOVE_TAINT, untainted)


def without_taint(node: Node, gone: Taint) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint != gone)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))


def _taint_text(taint: Taint) -> str:
    return _plain(taint_text(taint))


# --- Labels -------------------------------------------------------------------------------------


def add_label(stuck: StuckPod) -> Iterator[Remedy]:
    """A label that the pod's selector requires and the node does not have."""
    options = _Options()
    label_of: dict[str, tuple[str, str]] = {}
    if stuck.is_blocked_by("NodeAffinity"):
        misspelt = misspelt_keys(stuck)
        wanted = [
            label for label in dict.fromkeys(wanted_labels(stuck.pod)) if label[0] not in misspelt
        ]
        for row in stuck.rows_blocked_by("NodeAffinity"):
            for label in _missing_labels(stuck, stuck.snapshot.nodes[row], wanted):
                what = f"label {{node}} with {_plain('='.join(label))}"
                label_of[what] = label
                options.add(what, row)

    def labelled(what: str, row: int) -> Node:
        return with_label(stuck.snapshot.nodes[row], *label_of[what])

    yield from options.changes(stuck, ADD_LABEL, labelled)


def with_label(node: Node, key: str, value: str) -> Node:
    labels = {**node.metadata.labels, key: value}
    return msgspec.structs.replace(
        node, metadata=msgspec.structs.replace(node.metadata, labels=labels)
    )


def wanted_labels(pod: Pod) -> Iterator[tuple[str, str]]:
    """Labels with which a node satisfies one requirement of the pod."""
    yield from (pod.spec.node_selector or {}).items()
    affinity = pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    required = None if node_affinity is None else node_affinity.required
    for term in () if required is None else required.node_selector_terms:
        for expression in term.match_expressions:
            value = _satisfying(expression)
            if value is not None:
                yield expression.key, value


def _satisfying(expression: NodeSelectorRequirement) -> str | None:
    match expression.operator:
        case "In" if expression.values:
            return expression.values[0]
        case "Exists":
            return ""
        case _:
            return None


def _missing_labels(
    stuck: StuckPod, node: Node, wanted: list[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """The wanted labels that the node lacks, and that make it match."""
    labels, required = node.metadata.labels, stuck.attempt.pod.required_node_affinity
    for key, value in wanted:
        if key in labels:
            continue
        # Where another change may follow, the label need not be all that is missing.
        if stuck.slack > 1 or required.matches({**labels, key: value}, node.metadata.name):
            yield key, value


# --- Limits -------------------------------------------------------------------------------------


def raise_pod_limit(stuck: StuckPod) -> Iterator[Remedy]:
    options = _Options()
    if stuck.is_blocked_by(FIT):
        for row in stuck.rows_blocked_by(FIT):
            code = stuck.blockers.code(FIT, row)
            if code & TOO_MANY_PODS and code.bit_count() <= stuck.slack:
                count = len(stuck.snapshot.node_infos[row].pods)
                options.add(f"raise the pod limit of {{node}} to {count + 1}", row)

    def raised(_: str, row: int) -> Node:
        return with_pod_limit(
            stuck.snapshot.nodes[row], len(stuck.snapshot.node_infos[row].pods) + 1
        )

    yield from options.changes(stuck, RAISE_POD_LIMIT, raised)


def with_pod_limit(node: Node, limit: int) -> Node:
    allocatable = {**node.status.allocatable, PODS: parse_quantity(limit)}
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, allocatable=allocatable)
    )


def raise_volume_limit(stuck: StuckPod) -> Iterator[Remedy]:
    """A higher limit of one CSI driver on a node, the lowest with which the pod fits."""
    if not stuck.is_blocked_by("NodeVolumeLimits"):
        return
    rows = stuck.rows_blocked_by("NodeVolumeLimits")
    for row in rows[:NODES_TRIED]:
        found = _lowest_volume_limit(stuck, stuck.snapshot.names[row])
        if found is not None:
            csi_node, driver, limit = found
            yield make_remedy(
                RAISE_VOLUME_LIMIT,
                f"raise the limit of volumes of {driver} on {stuck.snapshot.names[row]} to {limit}",
                stuck.pod,
                objects=(csi_node,),
                others=len(rows) - 1,
            )
            return


def _lowest_volume_limit(stuck: StuckPod, node_name: str) -> tuple[CSINode, str, int] | None:
    csi_node = stuck.cluster.objects.csi_nodes.get(node_name)
    if csi_node is None:
        return None
    # A pod adds at most one attachment per volume, and a node may have more than its limit.
    highest = len(stuck.pod.spec.volumes) + len(stuck.cluster.objects.persistent_volumes) + 1
    for index, driver in enumerate(csi_node.spec.drivers):
        limit = None if driver.allocatable is None else driver.allocatable.count
        if limit is None:
            continue

        def raised(count: int, index: int = index) -> CSINode:
            return with_volume_limit(csi_node, index, count)

        if not stuck.fits_with(raised(limit + highest)):
            continue
        failing, fitting = limit, limit + highest
        while fitting - failing > 1:
            middle = (fitting + failing) // 2
            if stuck.fits_with(raised(middle)):
                fitting = middle
            else:
                failing = middle
        return raised(fitting), driver.name, fitting
    return None


def with_volume_limit(csi_node: CSINode, index: int, count: int) -> CSINode:
    drivers = list(csi_node.spec.drivers)
    drivers[index] = msgspec.structs.replace(
        drivers[index], allocatable=VolumeNodeResources(count=count)
    )
    spec = msgspec.structs.replace(csi_node.spec, drivers=tuple(drivers))
    return msgspec.structs.replace(csi_node, spec=spec)


def _plain(text: str) -> str:
    """A text in which braces stand for themselves."""
    return text.replace("{", "{{").replace("}", "}}")
