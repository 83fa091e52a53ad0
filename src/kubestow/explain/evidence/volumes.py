"""Which claim, class, volume or zone (VolumeBinding, VolumeZone, VolumeRestrictions)."""

import re
from collections.abc import Hashable, Iterator
from typing import Final

from kubestow.api.labels import Requirement, SelectorError, parse_label_selector
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledNodeSelector
from kubestow.api.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubestow.api.volume_claims import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name,
    is_claimed_by,
    is_fully_bound,
    requested_storage,
    volume_class,
)
from kubestow.close_names import close_names
from kubestow.errors import PluginError
from kubestow.explain.evidence.amounts import amount_text
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import (
    LISTED_MAX,
    Claim,
    Disk,
    Fact,
    FreeVolumes,
    Missing,
    StorageCapacity,
    VolumePlace,
)
from kubestow.explain.evidence.selection import wanted_values
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.plugins.volume_binding.affinity import MigratedNodes, affinity_of, selector_of
from kubestow.plugins.volume_binding.capacity import limit_of
from kubestow.plugins.volume_binding.demand import ClaimDemand
from kubestow.plugins.volume_binding.provisioning import NO_PROVISIONER
from kubestow.plugins.volume_restrictions import READ_WRITE_ONCE_POD, disks_of
from kubestow.plugins.volume_zone import TOPOLOGY_LABELS, successor_of, topology_entries

_AVAILABLE: Final = ("", "Available")
_QUOTED: Final = re.compile(r'"([^"]*)"')
_CLAIM: Final = "PersistentVolumeClaim"


# --- volumes that exist ---


def unreachable_volumes(view: NodeView, _: str) -> list[VolumePlace]:
    """The bound volumes that the node does not reach, each with the labels that do not match."""
    found: list[VolumePlace] = []
    for claim, volume in _bound(view.context):
        selector = _affinity(view.context, volume, view.name)
        if selector is not None and not selector.matches(view.node.metadata.labels, ""):
            found += _unmatched(claim, volume, selector, view.node)
    return found


def missing_volumes(view: NodeView, _: str) -> list[Missing]:
    context = view.context
    return [
        _missing(context, "PersistentVolume", "", claim.spec.volume_name)
        for claim in _claims(context)
        if claim.spec.volume_name and _volume(context, claim.spec.volume_name) is None
    ]


def other_zone(view: NodeView, _: str) -> list[VolumePlace]:
    """The zone labels of volumes that are not those of the node."""
    labels = view.node.metadata.labels
    found: list[VolumePlace] = []
    for claim, volume in _bound(view.context):
        for key, values in topology_entries(volume):
            if _zone_value(labels, key) not in values:
                place = VolumePlace(
                    claim=claim.metadata.name,
                    volume=volume.metadata.name,
                    key=key,
                    operator="In",
                    wanted=tuple(sorted(values)),
                    actual=_zone_value(labels, key),
                )
                found.append(place)
    return found


def same_places(context: EvidenceContext, node: Node) -> Hashable:
    """The node's values of the labels that volumes and classes read."""
    labels = node.metadata.labels
    keys = context.once("volume keys", lambda: sorted({*_label_keys(context), *TOPOLOGY_LABELS}))
    csi_node = context.objects.csi_nodes.get(node.metadata.name)
    migrated = "" if csi_node is None else str(csi_node.metadata.annotations)
    return migrated, *[labels.get(key) for key in keys]


# --- volumes that are needed ---


def nothing_to_bind(view: NodeView, _: str) -> list[FreeVolumes]:
    """The claims without a volume that no class makes here; all of them if they compete."""
    facts = [_free_volumes(view, claim) for claim in _delayed(view.context)]
    lacking = [each for each in facts if not each.in_reach and not each.allowed_here]
    return lacking or facts


def too_little_storage(view: NodeView, _: str) -> list[StorageCapacity]:
    objects, found = view.context.objects, list[StorageCapacity]()
    for claim in _delayed(view.context):
        storage_class = objects.storage_classes.get(claim_class(claim))
        if storage_class is None:
            continue
        driver = objects.csi_drivers.get(storage_class.provisioner)
        wanted, largest = requested_storage(claim).value(), _largest(view, storage_class)
        if driver is not None and driver.spec.storage_capacity and largest < wanted:
            found.append(
                StorageCapacity(
                    claim=claim.metadata.name,
                    storage_class=storage_class.metadata.name,
                    wanted=amount_text(STORAGE, wanted),
                    free=amount_text(STORAGE, largest),
                    missing=amount_text(STORAGE, wanted - largest),
                )
            )
    return found


def _largest(view: NodeView, storage_class: StorageClass) -> int:
    """The largest volume that the class can make on the node."""
    limits = [
        limit.value()
        for capacity in view.context.objects.csi_storage_capacities
        if capacity.storage_class_name == storage_class.metadata.name
        and _applies(capacity, view.node)
        and (limit := limit_of(capacity)) is not None
    ]
    return max(limits, default=0)


def _applies(capacity: CSIStorageCapacity, node: Node) -> bool:
    if capacity.node_topology is None:
        return False
    try:
        selector = parse_label_selector(capacity.node_topology)
    except SelectorError:
        return False
    return selector.matches(node.metadata.labels)


def _free_volumes(view: NodeView, claim: PersistentVolumeClaim) -> FreeVolumes:
    objects, name = view.context.objects, claim_class(claim)
    storage_class = objects.storage_classes.get(name)
    provisioner = "" if storage_class is None else storage_class.provisioner
    of_class, suitable = _candidates(view.context, claim)
    labels = view.node.metadata.labels
    in_reach = [
        volume
        for volume in suitable
        if (selector := selector_of(volume.spec.node_affinity)) is None
        or selector.matches(labels, "")
    ]
    return FreeVolumes(
        claim=claim.metadata.name,
        storage_class=name,
        wanted=str(requested_storage(claim)),
        of_class=of_class,
        suitable=len(suitable),
        in_reach=len(in_reach),
        provisioner="" if provisioner == NO_PROVISIONER else provisioner,
        allowed_here=provisioner not in ("", NO_PROVISIONER)
        and storage_class is not None
        and _is_allowed(storage_class, view.node),
    )


def _candidates(
    context: EvidenceContext, claim: PersistentVolumeClaim
) -> tuple[int, list[PersistentVolume]]:
    """How many volumes of the claim's class are free, and those of them that suit it."""

    def find() -> tuple[int, list[PersistentVolume]]:
        name, volumes = claim_class(claim), list(_volumes(context))
        prebound = [each for each in volumes if is_claimed_by(each, claim)]
        free = [
            each
            for each in volumes
            if volume_class(each) == name
            and each.spec.claim_ref is None
            and each.status.phase in _AVAILABLE
        ]
        try:
            demand = ClaimDemand.of(claim)
        except PluginError:
            return len(free), []
        if prebound:
            return len(prebound), [each for each in prebound if demand.suits_prebound(each)]
        return len(free), [each for each in free if demand.suits(each)]

    return context.once(("candidates", claim.metadata.name), find)


def _is_allowed(storage_class: StorageClass, node: Node) -> bool:
    topologies = storage_class.allowed_topologies
    labels = node.metadata.labels
    return not topologies or any(
        term.match_label_expressions
        and all(labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in topologies
    )


# --- claims ---


def missing_claim(view: NodeView, reason: str) -> list[Missing]:
    """The claims of the pod that do not exist."""
    context, namespace = view.context, view.pod.namespace
    stored = context.objects.persistent_volume_claims
    return [
        _missing(context, _CLAIM, namespace, name)
        for name in dict.fromkeys(_claim_names(view))
        if stored.get(namespace, name) is None
    ]


def missing_class(view: NodeView, _: str) -> list[Missing]:
    context = view.context
    names = {claim_class(claim) for claim in _claims(context) if not claim.spec.volume_name}
    return [
        _missing(context, "StorageClass", "", name)
        for name in sorted(names)
        if name and context.objects.storage_classes.get(name) is None
    ]


def unbound_claims(view: NodeView, _: str) -> list[Fact]:
    """Claims that a controller binds, and has not bound; a class that does not exist first."""
    context, found = view.context, list[Fact]()
    for claim in _claims(context):
        if is_fully_bound(claim) or _waits_for_pod(context, claim):
            continue
        name = claim_class(claim)
        if name and context.objects.storage_classes.get(name) is None:
            found.append(_missing(context, "StorageClass", "", name))
        if claim.spec.volume_name:
            detail = f"names the volume {claim.spec.volume_name}, but no controller has bound it"
        else:
            detail = (
                "not bound, and its class binds at once" if name else "not bound, without a class"
            )
        found.append(_claim(claim, "ClaimNotBound", detail))
    return found


def claim_problem(view: NodeView, reason: str) -> list[Claim]:
    """A claim that cannot be used; the reason says why, and names it."""
    quoted = _QUOTED.findall(reason)
    known = [claim for claim in _claims(view.context) if claim.metadata.name in reason]
    names = [claim.metadata.name for claim in known] or quoted[:1] or list(_claim_names(view))
    return [
        Claim(kind=_CLAIM, claim=name, problem="Unusable", detail=reason)
        for name in names[:LISTED_MAX]
    ]


def claims_in_use(view: NodeView, _: str) -> list[Claim]:
    """The ReadWriteOncePod claims that another pod uses, and these pods."""
    found: list[Claim] = []
    for claim in _claims(view.context):
        if READ_WRITE_ONCE_POD not in claim.spec.access_modes:
            continue
        users = _users(view, claim)
        if users:
            found.append(
                Claim(
                    kind=_CLAIM,
                    claim=claim.metadata.name,
                    problem="ClaimInUse",
                    detail="ReadWriteOncePod",
                    pods=tuple(users[:LISTED_MAX]),
                    pod_count=len(users),
                )
            )
    return found


def disks_in_use(view: NodeView, _: str) -> list[Disk]:
    wanted = disks_of((view.pod.pod,))
    users: dict[tuple[str, ...], list[str]] = {}
    for pod in view.info.pods:
        for disk, is_exclusive in disks_of((pod.pod,)).items():
            if disk in wanted and (is_exclusive or wanted[disk]):
                users.setdefault(disk, []).append(pod.key)
    return [
        Disk(disk="/".join(disk), pods=tuple(pods[:LISTED_MAX]), count=len(pods))
        for disk, pods in users.items()
    ]


# --- objects ---


def _users(view: NodeView, claim: PersistentVolumeClaim) -> list[str]:
    key = f"{claim.metadata.namespace}/{claim.metadata.name}"
    infos = view.context.snapshot.node_infos
    placed = [
        pod.key
        for info in infos
        if key in info.pvc_ref_counts
        for pod in info.pods
        if key in pod.pvc_keys
    ]
    return [*placed, *(pod.key for pod in view.ahead if key in pod.pvc_keys)]


def _claim_names(view: NodeView) -> Iterator[str]:
    pod = view.pod.pod
    return (name for each in pod.spec.volumes if (name := claim_name(pod, each)))


def _claims(context: EvidenceContext) -> list[PersistentVolumeClaim]:
    """The claims of the pod that exist, each once, as the scheduler has them."""

    def find() -> list[PersistentVolumeClaim]:
        pod, stored = context.pod.pod, context.objects.persistent_volume_claims
        plugin = context.plugin(VolumeBinding)
        assumed = (
            {}
            if plugin is None
            else {
                (each.metadata.namespace, each.metadata.name): each
                for each in plugin.assumed_claims()
            }
        )
        found: dict[str, PersistentVolumeClaim] = {}
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if not name:
                continue
            key = pod.metadata.namespace, name
            claim = assumed.get(key) or stored.get(*key)
            if claim is not None:
                found[name] = claim
        return list(found.values())

    return context.once("claims", find)


def _volumes(context: EvidenceContext) -> Iterator[PersistentVolume]:
    assumed = _assumed_volumes(context)
    for volume in context.objects.persistent_volumes:
        yield assumed.get(volume.metadata.name, volume)


def _volume(context: EvidenceContext, name: str) -> PersistentVolume | None:
    return _assumed_volumes(context).get(name) or context.objects.persistent_volumes.get(name)


def _assumed_volumes(context: EvidenceContext) -> dict[str, PersistentVolume]:
    def find() -> dict[str, PersistentVolume]:
        plugin = context.plugin(VolumeBinding)
        assumed = () if plugin is None else plugin.assumed_volumes()
        return {each.metadata.name: each for each in assumed}

    return context.once("assumed volumes", find)


def _bound(context: EvidenceContext) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume]]:
    for claim in _claims(context):
        volume = _volume(context, claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            yield claim, volume


def _delayed(context: EvidenceContext) -> list[PersistentVolumeClaim]:
    return [
        claim
        for claim in _claims(context)
        if not is_fully_bound(claim) and _waits_for_pod(context, claim)
    ]


def _waits_for_pod(context: EvidenceContext, claim: PersistentVolumeClaim) -> bool:
    storage_class = context.objects.storage_classes.get(claim_class(claim))
    return (
        storage_class is not None
        and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        and not claim.spec.volume_name
    )


def _affinity(
    context: EvidenceContext, volume: PersistentVolume, node_name: str
) -> CompiledNodeSelector | None:
    """What the volume requires of this node; in-tree volumes have a rule for migrated nodes."""
    affinity = affinity_of(volume)
    migrated = MigratedNodes(context.objects.csi_nodes)
    if affinity.plugin and migrated.is_migrated(node_name, affinity.plugin):
        return affinity.migrated
    return affinity.selector


def _unmatched(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    selector: CompiledNodeSelector,
    node: Node,
) -> Iterator[VolumePlace]:
    for term in selector.terms:
        for requirement in term.labels:
            if not requirement.matches(node.metadata.labels):
                yield _place(claim, volume, requirement, node)
    if not selector.terms:
        yield VolumePlace(
            claim=claim.metadata.name,
            volume=volume.metadata.name,
            key="",
            operator="no valid term",
            wanted=(),
            actual=None,
        )


def _place(
    claim: PersistentVolumeClaim, volume: PersistentVolume, requirement: Requirement, node: Node
) -> VolumePlace:
    return VolumePlace(
        claim=claim.metadata.name,
        volume=volume.metadata.name,
        key=requirement.key,
        operator=requirement.operator,
        wanted=wanted_values(requirement),
        actual=node.metadata.labels.get(requirement.key),
    )


def _label_keys(context: EvidenceContext) -> Iterator[str]:
    for _, volume in _bound(context):
        affinity = affinity_of(volume)
        for selector in (affinity.selector, affinity.migrated):
            for term in () if selector is None else selector.terms:
                yield from (each.key for each in term.labels)
    names = {claim_class(claim) for claim in _delayed(context)}
    for name in names:
        yield from _class_keys(context, name)


def _class_keys(context: EvidenceContext, name: str) -> Iterator[str]:
    """Labels that say where volumes of a class are, or can be made."""
    objects = context.objects
    storage_class = objects.storage_classes.get(name)
    for topology in () if storage_class is None else storage_class.allowed_topologies or ():
        yield from (each.key for each in topology.match_label_expressions)
    for capacity in objects.csi_storage_capacities:
        if capacity.storage_class_name == name and capacity.node_topology is not None:
            yield from capacity.node_topology.match_labels
            yield from (each.key for each in capacity.node_topology.match_expressions)
    for volume in _volumes(context):
        selector = selector_of(volume.spec.node_affinity) if volume_class(volume) == name else None
        for term in () if selector is None else selector.terms:
            yield from (each.key for each in term.labels)


def _zone_value(labels: dict[str, str], key: str) -> str | None:
    """The node's value; an older label that it lacks is read under the newer name."""
    return labels.get(key, labels.get(successor_of(key)))


def _missing(context: EvidenceContext, kind: str, namespace: str, name: str) -> Missing:
    objects = context.objects
    match kind:
        case "PersistentVolumeClaim":
            known = [
                each.metadata.name
                for each in objects.persistent_volume_claims.list_namespace(namespace)
            ]
        case "StorageClass":
            known = [each.metadata.name for each in objects.storage_classes]
        case _:
            known = [each.metadata.name for each in objects.persistent_volumes]
    return Missing(kind=kind, namespace=namespace, name=name, similar=close_names(name, known))


def _claim(claim: PersistentVolumeClaim, problem: str, detail: str) -> Claim:
    return Claim(
        kind=_CLAIM,
        claim=claim.metadata.name,
        problem=problem,
        storage_class=claim_class(claim),
        detail=detail,
    )
