"""Whether volumes can be provisioned for claims without a match (spec 07 §2.6)."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.labels import Requirement, SelectorError, parse_requirement
from kubestow.api.node import Node
from kubestow.api.storage import (
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from kubestow.api.volume_claims import STORAGE, claim_class
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.objects import ClusterObjects
from kubestow.errors import PluginError
from kubestow.index.node_match import labels_match
from kubestow.index.nodes import Nodes
from kubestow.plugins.volume_binding.capacity import NodeCapacities, StorageCapacities

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

_COMPILED_MAX: Final = 1024


class Provision(NamedTuple):
    """A claim to provision for, and the capacity object that allows it."""

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None


class Provisioning:
    """Checks a list of claims on all nodes.

    `no_place` and `no_space` are the codes for nodes where a claim's class provisions nothing, and
    for those where not enough is left.
    """

    def __init__(self, objects: ClusterObjects, *, no_place: int, no_space: int) -> None:
        self._classes = objects.storage_classes
        self._drivers = objects.csi_drivers
        self._capacities = StorageCapacities(objects.csi_storage_capacities)
        self._no_place = no_place
        self._no_space = no_space

    def on(self, nodes: Nodes) -> "NodeProvisioning":
        """The checks on these nodes: claims of one class share what they read of them."""
        return NodeProvisioning(self, nodes)

    def classes_codes(self, storage_class: StorageClass, nodes: Nodes) -> IntArray | int:
        """int64[node]: where the class provisions nothing, else 0; one number if all are equal."""
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return self._no_place
        topologies = storage_class.allowed_topologies
        if not topologies:
            return 0
        return np.where(nodes_in(nodes, topologies), 0, self._no_place)

    def with_space(
        self, codes: IntArray | int, storage_class: StorageClass, size: int, nodes: Nodes
    ) -> IntArray:
        """The codes, and that of nodes where less than this size is left."""
        largest = self._capacities.of_class(storage_class.metadata.name).largest(nodes)
        return np.where((codes == 0) & (largest < size), self._no_space, codes)

    def provisions(
        self, claims: Iterable[PersistentVolumeClaim], node: Node
    ) -> tuple[Provision, ...]:
        """The claims, each with the object that has enough capacity on a node that passed."""
        by_class: dict[str, NodeCapacities] = {}
        found: list[Provision] = []
        for claim in claims:
            storage_class = self.class_of(claim)
            size = self.size_to_check(claim, storage_class)
            if size is None:
                found.append(Provision(claim, None))
                continue
            name = storage_class.metadata.name
            capacities = by_class.get(name)
            if capacities is None:
                capacities = NodeCapacities(self._capacities.of_class(name), node)
                by_class[name] = capacities
            found.append(Provision(claim, capacities.first_sufficient(size)))
        return tuple(found)

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass:
        name = claim_class(claim)
        if not name:
            meta = claim.metadata
            raise PluginError(f'no class for claim "{meta.namespace}/{meta.name}"')
        storage_class = self._classes.get(name)
        if storage_class is None:
            raise PluginError(f'failed to find storage class "{name}"')
        return storage_class

    def size_to_check(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> int | None:
        """The size to compare with what is left; None if the driver does not report that."""
        requested = (claim.spec.resources.requests or {}).get(STORAGE)
        if requested is None:
            return None
        driver = self._drivers.get(storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        return requested.value()


class NodeProvisioning:
    """Checks claims on some nodes."""

    def __init__(self, provisioning: Provisioning, nodes: Nodes) -> None:
        self._provisioning = provisioning
        self._nodes = nodes
        self._of_class: dict[str, IntArray | int] = {}
        # The size that was checked last, and its codes: most claims of a class are of one size.
        self._with_space: dict[str, tuple[int, IntArray]] = {}

    def codes(self, claim: PersistentVolumeClaim) -> IntArray | int:
        """int64[node]: the code of nodes where the claim cannot be provisioned, else 0; one number
        if all are equal. Raises PluginError if the claim cannot be checked."""
        provisioning = self._provisioning
        storage_class = provisioning.class_of(claim)
        name = storage_class.metadata.name
        codes = self._of_class.get(name)
        if codes is None:
            codes = self._of_class[name] = provisioning.classes_codes(storage_class, self._nodes)
        size = provisioning.size_to_check(claim, storage_class)
        if size is None or (isinstance(codes, int) and codes):
            return codes
        kept = self._with_space.get(name)
        if kept is None or kept[0] != size:
            checked = provisioning.with_space(codes, storage_class, size, self._nodes)
            kept = self._with_space[name] = size, checked
        return kept[1]


def nodes_in(nodes: Nodes, topologies: tuple[TopologySelectorTerm, ...]) -> BoolArray:
    """bool[node]: which nodes match a term of `allowedTopologies`."""
    mask = np.zeros(len(nodes), np.bool_)
    for requirements in _compiled(topologies):
        mask |= labels_match(nodes, requirements)
    return mask


@lru_cache(_COMPILED_MAX)
def _compiled(topologies: tuple[TopologySelectorTerm, ...]) -> tuple[tuple[Requirement, ...], ...]:
    """The terms that can match at all: those with expressions, all of them valid."""
    compiled: list[tuple[Requirement, ...]] = []
    for term in topologies:
        try:
            requirements = tuple(
                parse_requirement(expression.key, "In", expression.values)
                for expression in term.match_label_expressions
            )
        except SelectorError:
            continue
        if requirements:
            compiled.append(requirements)
    return tuple(compiled)
