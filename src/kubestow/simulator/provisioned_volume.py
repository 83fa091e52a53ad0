"""The volume a provisioner would make for a claim: of the requested size, for the selected node.

A pure function of the claim, its class, the node and the node's CSINode.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kubestow.api.csi_translation import IN_TREE_PLUGINS
from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.storage import (
    CSINode,
    CsiPersistentVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from kubestow.api.topology import ZONE_LABEL
from kubestow.api.volume_claims import STORAGE, claim_class, requested_storage
from kubestow.plugins.volume_binding.binding import reference_to
from kubestow.plugins.volume_binding.provisioning import NO_PROVISIONER

PROVISIONED_BY_ANNOTATION: Final = "pv.kubernetes.io/provisioned-by"


def can_provision(storage_class: StorageClass) -> bool:
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def provisioned_volume(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    node: Node | None,
    csi_node: CSINode | None,
) -> PersistentVolume:
    """The volume for the claim, with a reference to it; it must be reachable from `node`."""
    in_tree = IN_TREE_PLUGINS.get(storage_class.provisioner)
    driver = storage_class.provisioner if in_tree is None else in_tree.driver
    name = f"pvc-{claim.metadata.uid}"
    topology = (
        _first_allowed(storage_class)
        if node is None
        else _topology_of(node, storage_class, _topology_keys(driver, csi_node))
    )
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(
            name=name, annotations={PROVISIONED_BY_ANNOTATION: storage_class.provisioner}
        ),
        spec=PersistentVolumeSpec(
            capacity={STORAGE: requested_storage(claim)},
            access_modes=claim.spec.access_modes,
            claim_ref=reference_to(claim),
            storage_class_name=claim_class(claim),
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            csi=CsiPersistentVolume(driver=driver, volume_handle=name),
            node_affinity=_affinity(topology),
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )


def _topology_keys(driver: str, csi_node: CSINode | None) -> tuple[str, ...]:
    """The topology labels of the driver."""
    drivers = () if csi_node is None else csi_node.spec.drivers
    return next((found.topology_keys for found in drivers if found.name == driver), ())


def _topology_of(
    node: Node, storage_class: StorageClass, driver_keys: Iterable[str]
) -> Mapping[str, str]:
    """The volume's topology: the node's labels that the driver, or the class, names.

    Without either, the volume is in the node's zone, as with most drivers.
    """
    labels = node.metadata.labels
    class_keys = (
        expression.key
        for term in storage_class.allowed_topologies
        for expression in term.match_label_expressions
    )
    keys = tuple(driver_keys) or tuple(class_keys) or (ZONE_LABEL,)
    return {key: labels[key] for key in keys if key in labels}


def _first_allowed(storage_class: StorageClass) -> Mapping[str, str]:
    """The first topology that the class allows, for a volume that is made without a node."""
    for term in storage_class.allowed_topologies:
        expressions = term.match_label_expressions
        return {expression.key: expression.values[0] for expression in expressions}
    return {}


def _affinity(topology: Mapping[str, str]) -> VolumeNodeAffinity | None:
    if not topology:
        return None
    term = NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in topology.items()
        )
    )
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
