"""Whether volumes can be provisioned for claims without a match (spec 07 §2.6)."""

from collections.abc import Sequence
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
from kubestow.plugins.volume_binding.capacity import StorageCapacities

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

    def codes(self, claims: Sequence[PersistentVolumeClaim], nodes: Nodes) -> IntArray:
        """int64[node]: the code of the first claim that cannot be provisioned there, or 0.

        Raises PluginError if a claim cannot be checked on some node that passed so far.
        """
        codes = np.zeros(len(nodes), np.int64)
        for claim in claims:
            passing = codes == 0
            if not passing.any():
                break
            storage_class = self._class_of(claim)
            if storage_class.provisioner in ("", NO_PROVISIONER):
                codes[passing] = self._no_place
                break
            topologies = storage_class.allowed_topologies
            if topologies:
                codes[passing & ~nodes_in(nodes, topologies)] = self._no_place
                passing = codes == 0
            size = self._size_to_check(claim, storage_class)
            if size is not None:
                largest = self._capacities.of_class(storage_class.metadata.name).largest(nodes)
                codes[passing & (largest < size)] = self._no_space
        return codes

    def capacity_for(self, claim: PersistentVolumeClaim, node: Node) -> CSIStorageCapacity | None:
        """The object that has enough capacity for the claim on a node that passed."""
        storage_class = self._class_of(claim)
        size = self._size_to_check(claim, storage_class)
        if size is None:
            return None
        return self._capacities.of_class(storage_class.metadata.name).first_sufficient(node, size)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass:
        name = claim_class(claim)
        if not name:
            meta = claim.metadata
            raise PluginError(f'no class for claim "{meta.namespace}/{meta.name}"')
        storage_class = self._classes.get(name)
        if storage_class is None:
            raise PluginError(f'failed to find storage class "{name}"')
        return storage_class

    def _size_to_check(
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
