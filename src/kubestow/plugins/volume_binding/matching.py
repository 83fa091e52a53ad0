"""Finds existing volumes for the unbound claims of a pod (spec 07 §2.4 (2), §2.5).

Claims are matched smallest first, each with its smallest suitable volume, without backtracking: a
volume given to one claim may be missing for the next. What is suitable does not depend on the node,
apart from the volumes' node affinity; so the work is done once for all nodes that can reach the
same volumes.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from kubestow.api.labels import EVERYTHING, Selector, SelectorError, parse_label_selector
from kubestow.api.node_selector import CompiledNodeSelector
from kubestow.api.quantity import Quantity
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.volume_claims import (
    claim_class,
    is_claimed_by,
    offered_storage,
    requested_storage,
)
from kubestow.errors import PluginError
from kubestow.plugins.volume_binding.affinity import selector_of
from kubestow.plugins.volume_binding.free_volumes import ClassVolumes, VolumesByClass, rank_of

FILESYSTEM: Final = "Filesystem"


class ChosenVolume(NamedTuple):
    """A claim and the volume chosen for it."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


class Matching(NamedTuple):
    """Which claims get which volumes, and the positions of the claims that get none."""

    bindings: tuple[ChosenVolume, ...]
    unmatched: tuple[int, ...]


class VolumeReach(NamedTuple):
    """Which volumes can be reached from a group of nodes.

    `patterns` has, per claim, the positions of the reachable groups of free volumes of its class;
    `selectors` the satisfied selectors of volumes that are prebound to one of the claims.
    """

    patterns: tuple[tuple[int, ...], ...]
    selectors: frozenset[CompiledNodeSelector]


class ClaimDemand(NamedTuple):
    """What a claim requires of a free volume of its class; equal for claims of one workload."""

    requested: Quantity
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    selector: Selector

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> "ClaimDemand":
        """Raises PluginError if the claim's selector does not parse."""
        spec = claim.spec
        return cls(
            requested_storage(claim),
            spec.access_modes,
            spec.volume_mode or FILESYSTEM,
            spec.volume_attributes_class_name or "",
            _selector_of(claim),
        )

    def has_form(self, volume: PersistentVolume) -> bool:
        """Whether size, mode and attributes class are right; nothing else is checked."""
        spec = volume.spec
        return (
            offered_storage(volume) >= self.requested
            and (spec.volume_mode or FILESYSTEM) == self.volume_mode
            and (spec.volume_attributes_class_name or "") == self.attributes_class
        )

    def suits(self, volume: PersistentVolume) -> bool:
        """Whether a free volume of the claim's class meets all requirements."""
        offered_modes = volume.spec.access_modes
        return (
            self.has_form(volume)
            and self.selector.matches(volume.metadata.labels)
            and all(mode in offered_modes for mode in self.access_modes)
        )


class ClaimMatcher:
    """Matches a pod's claims, for any group of nodes."""

    def __init__(self, claims: Iterable[PersistentVolumeClaim], volumes: VolumesByClass) -> None:
        """Raises PluginError if a claim's selector does not parse."""
        # Sorting is stable: claims of equal size stay in the order of the pod's volumes.
        ordered = sorted(claims, key=lambda claim: requested_storage(claim).nano)
        self.unbound = [
            UnboundClaim(claim, volumes.of_class(claim_class(claim)), other_count=len(ordered) - 1)
            for claim in ordered
        ]

    @property
    def prebound_selectors(self) -> list[CompiledNodeSelector]:
        """Selectors of volumes that are prebound to one of the claims."""
        selectors = (
            selector_of(volume.spec.node_affinity)
            for each in self.unbound
            for volume in each.prebound
        )
        return list(dict.fromkeys(selector for selector in selectors if selector is not None))

    def match(self, reach: VolumeReach) -> Matching:
        chosen = set[str]()
        bindings: list[ChosenVolume] = []
        unmatched: list[int] = []
        for position, each in enumerate(self.unbound):
            volume = each.find(reach.patterns[position], reach.selectors, chosen)
            if volume is None:
                unmatched.append(position)
            else:
                chosen.add(volume.metadata.name)
                bindings.append(ChosenVolume(each.claim, volume))
        return Matching(tuple(bindings), tuple(unmatched))


class UnboundClaim:
    """One claim and its suitable volumes."""

    def __init__(
        self, claim: PersistentVolumeClaim, volumes: ClassVolumes, *, other_count: int
    ) -> None:
        """`other_count` is how many volumes other claims may take before."""
        self.claim = claim
        self.volumes = volumes
        self.demand = ClaimDemand.of(claim)
        self._other_count = other_count
        # Spec 07 §2.5: for these, neither phase nor selector nor access modes matter.
        self.prebound = [
            volume
            for volume in volumes.prebound_to(claim)
            if is_claimed_by(volume, claim)
            and volume.metadata.deletion_timestamp is None
            and self.demand.has_form(volume)
        ]
        self._suitable: dict[int, list[PersistentVolume]] = {}

    def find(
        self, pattern: tuple[int, ...], selectors: frozenset[CompiledNodeSelector], chosen: set[str]
    ) -> PersistentVolume | None:
        """The volume for the claim where these groups and selectors are in reach."""
        for volume in self.prebound:
            if volume.metadata.name not in chosen:
                # Spec 07 §2.5: a prebound volume is the only choice, in reach or not.
                selector = selector_of(volume.spec.node_affinity)
                return volume if selector is None or selector in selectors else None
        best: PersistentVolume | None = None
        for position in pattern:
            volume = self._first_in(position, chosen)
            if volume is not None and (best is None or rank_of(volume) < rank_of(best)):
                best = volume
        return best

    def _first_in(self, position: int, chosen: set[str]) -> PersistentVolume | None:
        """The smallest suitable volume of a group that is not chosen yet."""
        suitable = self._suitable.get(position)
        if suitable is None:
            suitable = self._suitable[position] = self._suitable_in(position)
        for volume in suitable:
            if volume.metadata.name not in chosen:
                return volume
        return None

    def _suitable_in(self, position: int) -> list[PersistentVolume]:
        """The smallest suitable volumes of a group, as many as may be needed."""
        group = self.volumes.groups.get(position)
        if group is None:
            return []
        suitable = filter(self.demand.suits, group.at_least(self.demand.requested.nano))
        return list(islice(suitable, self._other_count + 1))


def _selector_of(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return parse_label_selector(claim.spec.selector)
    except SelectorError as error:
        path = f"{claim.metadata.namespace}/{claim.metadata.name}"
        raise PluginError(
            f"error creating internal label selector for claim: {path}: {error}"
        ) from error
