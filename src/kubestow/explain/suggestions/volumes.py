"""Changes of the volumes of a pod: another class for a claim, less storage, another place.

A claim without a volume can get another class, or request less. A claim that is bound keeps the pod
where its volume is; then the volume has to be somewhere else, or the claim gets a new volume of
another class. Its data do not move by themselves: the texts say so.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from kubestow.api.meta import ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import NodeSelector, NodeSelectorRequirement
from kubestow.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.api.volume_claims import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    CLASS_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    is_fully_bound,
    named_claims,
    volume_class,
)
from kubestow.explain.evidence.amounts import quantity_of
from kubestow.explain.suggestions.remedy import (
    CHANGE_STORAGE_CLASS,
    LOWER_STORAGE_REQUEST,
    MOVE_VOLUME,
    NEW_VOLUME,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.plugins.volume_zone import TOPOLOGY_LABELS

PLUGINS: Final = ("VolumeBinding", "VolumeZone")
# Classes, sizes and places that are tried for one claim.
CLASSES_TRIED: Final = 8
SIZES_TRIED: Final = 16
PLACES_TRIED: Final = 3

_OF_BINDING: Final = frozenset(
    (
        BIND_COMPLETED_ANNOTATION,
        BOUND_BY_CONTROLLER_ANNOTATION,
        CLASS_ANNOTATION,
        SELECTED_NODE_ANNOTATION,
    )
)


def change_volumes(stuck: StuckPod) -> Iterator[Remedy]:
    """Changes of each claim that the pod names."""
    if stuck.rejected_early not in PLUGINS and not stuck.is_blocked_by(*PLUGINS):
        return
    claims = stuck.cluster.objects.persistent_volume_claims
    for name in dict.fromkeys(named_claims(stuck.pod)):
        claim = claims.get(stuck.pod.metadata.namespace, name)
        if claim is None:
            continue
        if is_fully_bound(claim):
            yield from _move_volume(stuck, claim)
        else:
            yield from _lower_storage(stuck, claim)
        yield from _change_class(stuck, claim)


# --- Classes ------------------------------------------------------------------------------------


def _change_class(stuck: StuckPod, claim: PersistentVolumeClaim) -> Iterator[Remedy]:
    """The first class by name with which the pod fits, of those that wait for their first pod."""
    current, name = claim_class(claim), claim.metadata.name
    classes = sorted(
        (each for each in stuck.cluster.objects.storage_classes if _waits(each)),
        key=lambda each: each.metadata.name,
    )
    others = [each.metadata.name for each in classes if each.metadata.name != current]
    for other in others[:CLASSES_TRIED]:
        new = with_class(claim, other)
        if not stuck.fits_with(new):
            continue
        text, amount = f"give the claim {name} the storage class {other}", 0
        if claim.spec.volume_name:
            text += f" and a new volume, to which the data of {claim.spec.volume_name} is copied"
            amount = NEW_VOLUME
        yield make_remedy(CHANGE_STORAGE_CLASS, text, stuck.pod, objects=(new,), amount=amount)
        return


def _waits(storage_class: StorageClass) -> bool:
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def with_class(claim: PersistentVolumeClaim, name: str) -> PersistentVolumeClaim:
    """The claim as it would be if it were made again with this class: not bound."""
    annotations = {
        key: value for key, value in claim.metadata.annotations.items() if key not in _OF_BINDING
    }
    return msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, annotations=annotations),
        spec=msgspec.structs.replace(claim.spec, storage_class_name=name, volume_name=""),
        status=PersistentVolumeClaimStatus(phase="Pending")
        if claim.spec.volume_name
        else claim.status,
    )


# --- Sizes --------------------------------------------------------------------------------------


def _lower_storage(stuck: StuckPod, claim: PersistentVolumeClaim) -> Iterator[Remedy]:
    """The largest size of a free volume, or of what a driver can make, with which the pod fits."""
    requests = claim.spec.resources.requests or {}
    wanted = requests.get(STORAGE)
    if wanted is None:
        return
    sizes = {size for size in _sizes(stuck, claim_class(claim)) if 0 < size < wanted.value()}
    for size in sorted(sizes, reverse=True)[:SIZES_TRIED]:
        lower = quantity_of(STORAGE, size)
        new = with_requests(claim, {**requests, STORAGE: lower})
        if stuck.fits_with(new):
            given_up = -(-100 * (wanted.value() - size) // wanted.value())
            text = f"lower the storage request of claim {claim.metadata.name} from {wanted}"
            yield make_remedy(
                LOWER_STORAGE_REQUEST,
                f"{text} to {lower}",
                stuck.pod,
                objects=(new,),
                amount=given_up,
            )
            return


def with_requests(claim: PersistentVolumeClaim, requests: ResourceList) -> PersistentVolumeClaim:
    resources = msgspec.structs.replace(claim.spec.resources, requests=requests)
    spec = msgspec.structs.replace(claim.spec, resources=resources)
    return msgspec.structs.replace(claim, spec=spec)


def _sizes(stuck: StuckPod, class_name: str) -> Iterator[int]:
    objects = stuck.cluster.objects
    for volume in objects.persistent_volumes:
        if volume_class(volume) == class_name and STORAGE in volume.spec.capacity:
            yield volume.spec.capacity[STORAGE].value()
    for capacity in objects.csi_storage_capacities:
        largest = capacity.maximum_volume_size or capacity.capacity
        if capacity.storage_class_name == class_name and largest is not None:
            yield largest.value()


# --- Places -------------------------------------------------------------------------------------


def _move_volume(stuck: StuckPod, claim: PersistentVolumeClaim) -> Iterator[Remedy]:
    """The volume in the zone, or another topology, of a node that it alone keeps the pod from."""
    volume = stuck.cluster.objects.persistent_volumes.get(claim.spec.volume_name)
    if volume is None:
        return
    places: Counter[tuple[tuple[str, str], ...]] = Counter()
    for row in stuck.rows_blocked_by(*PLUGINS):
        place = _place(volume, stuck.snapshot.nodes[row])
        if place:
            places[place] += 1
    for place, _ in places.most_common(PLACES_TRIED):
        new = moved(volume, dict(place))
        if stuck.fits_with(new):
            where = ", ".join(f"{key}={value}" for key, value in place)
            text = f"move the volume {volume.metadata.name} of claim {claim.metadata.name}"
            yield make_remedy(MOVE_VOLUME, f"{text} to {where}", stuck.pod, objects=(new,))
            return


def _place(volume: PersistentVolume, node: Node) -> tuple[tuple[str, str], ...]:
    """Where the volume would have to be for the node; empty if it cannot be said in labels."""
    keys = [expression.key for expression in _expressions(volume)]
    keys += [key for key in TOPOLOGY_LABELS if key in volume.metadata.labels]
    labels = node.metadata.labels
    if HOSTNAME_LABEL in keys or any(key not in labels for key in keys):
        return ()
    return tuple((key, labels[key]) for key in dict.fromkeys(keys))


def _expressions(volume: PersistentVolume) -> tuple[NodeSelectorRequirement, ...]:
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms
    return tuple(expression for term in terms for expression in term.match_expressions)


def moved(volume: PersistentVolume, place: dict[str, str]) -> PersistentVolume:
    """The volume in another place, given by labels of nodes."""
    labels = {key: place.get(key, value) for key, value in volume.metadata.labels.items()}
    volume = msgspec.structs.replace(
        volume, metadata=msgspec.structs.replace(volume.metadata, labels=labels)
    )
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return volume
    terms = tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                msgspec.structs.replace(each, operator="In", values=(place[each.key],))
                for each in term.match_expressions
            ),
        )
        for term in affinity.required.node_selector_terms
    )
    node_affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    return msgspec.structs.replace(
        volume, spec=msgspec.structs.replace(volume.spec, node_affinity=node_affinity)
    )
