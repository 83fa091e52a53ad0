"""Finds existing volumes for the unbound claims of a pod (spec 07 §2.4 (2), §2.5).

Claims are served smallest first, each with the smallest volume that suits it, and nothing is taken
back: a volume given to one claim may be missing for the next. What suits a claim does not depend on
the node, apart from the volumes' node affinity; so the work is done once for all nodes that can
reach the same volumes.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from kubestow.api.labels import EVERYTHING, Selector, SelectorError, parse_label_selector
from kubestow.api.node_selector import CompiledNodeSelector
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.errors import PluginError
from kubestow.plugins._shared.volume_claims import (
    claim_class,
    is_claimed_by,
    offered_storage,
    requested_storage,
)
from kubestow.plugins.volume_binding.affinity import selector_of
from kubestow.plugins.volume_binding.free_volumes import (
    ClassVolumes,
    VolumesByClass,
    rank_of,
)

FILESYSTEM: Final = "Filesystem"


class Binding(NamedTuple):
    """A claim and the volume it is going to get."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


class Matching(NamedTuple):
    """Which claims get which volumes, and the claims for which there is none, in their order."""

    bindings: tuple[Binding, ...]
    unmatched: tuple[PersistentVolumeClaim, ...]


class Reach(NamedTuple):
    """Which volumes can be reached from a group of nodes.

    `patterns` has, per claim, the positions of the reachable groups of free volumes of its class;
    `selectors` the satisfied selectors of volumes that are meant for one of the claims.
    """

    patterns: tuple[tuple[int, ...], ...]
    selectors: frozenset[CompiledNodeSelector]


class ClaimMatcher:
    """Serves a pod's claims, for any group of nodes."""

    def __init__(self, claims: Iterable[PersistentVolumeClaim], volumes: VolumesByClass) -> None:
        """Raises PluginError if a claim's selector cannot be read."""
        # Sorting is stable: claims of equal size stay in the order of the pod's volumes.
        ordered = sorted(claims, key=lambda claim: requested_storage(claim).nano)
        self.wishes = [
            Wish(claim, volumes.of_class(claim_class(claim)), rivals=len(ordered) - 1)
            for claim in ordered
        ]

    @property
    def meant_selectors(self) -> set[CompiledNodeSelector]:
        """Selectors of volumes that are meant for one of the claims."""
        selectors = {selector_of(volume.spec.node_affinity) for volume in self._meant()}
        return {selector for selector in selectors if selector is not None}

    def match(self, reach: Reach) -> Matching:
        chosen = set[str]()
        bindings: list[Binding] = []
        unmatched: list[PersistentVolumeClaim] = []
        for wish, pattern in zip(self.wishes, reach.patterns, strict=True):
            volume = wish.find(pattern, reach.selectors, chosen)
            if volume is None:
                unmatched.append(wish.claim)
            else:
                chosen.add(volume.metadata.name)
                bindings.append(Binding(wish.claim, volume))
        return Matching(tuple(bindings), tuple(unmatched))

    def _meant(self) -> Iterable[PersistentVolume]:
        return (volume for wish in self.wishes for volume in wish.meant)


class Wish:
    """One claim and the volumes that suit it."""

    def __init__(self, claim: PersistentVolumeClaim, volumes: ClassVolumes, *, rivals: int) -> None:
        """`rivals` is how many volumes other claims may take away before."""
        self.claim = claim
        self.volumes = volumes
        self._rivals = rivals
        self._selector = _selector_of(claim)
        self._requested = requested_storage(claim)
        # Volumes meant for the claim need not be of its kind in every respect.
        self.meant = [
            volume
            for volume in volumes.meant_for(claim)
            if is_claimed_by(volume, claim)
            and volume.metadata.deletion_timestamp is None
            and offered_storage(volume) >= self._requested
            and _has_form(volume, claim)
        ]
        self._suiting: dict[int, list[PersistentVolume]] = {}

    def find(
        self,
        pattern: tuple[int, ...],
        selectors: frozenset[CompiledNodeSelector],
        chosen: set[str],
    ) -> PersistentVolume | None:
        """The volume for the claim where these groups and selectors are in reach."""
        for volume in self.meant:
            if volume.metadata.name not in chosen:
                # Spec 07 §2.5: a volume meant for the claim is the only one, in reach or not.
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
        suiting = self._suiting.get(position)
        if suiting is None:
            suiting = self._suiting[position] = self._suiting_in(position)
        for volume in suiting:
            if volume.metadata.name not in chosen:
                return volume
        return None

    def _suiting_in(self, position: int) -> list[PersistentVolume]:
        """The smallest volumes of a group that suit, as many as may be needed."""
        group = self.volumes.groups.get(position)
        if group is None:
            return []
        suiting = filter(self._suits, group.at_least(self._requested.nano))
        return list(islice(suiting, self._rivals + 1))

    def _suits(self, volume: PersistentVolume) -> bool:
        """Whether a free volume of sufficient size is of the kind the claim asks for."""
        offered_modes = volume.spec.access_modes
        return (
            _has_form(volume, self.claim)
            and self._selector.matches(volume.metadata.labels)
            and all(mode in offered_modes for mode in self.claim.spec.access_modes)
        )


def _has_form(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether volume and claim agree on the mode and on the class of attributes."""
    offered, wanted = volume.spec, claim.spec
    return (offered.volume_mode or FILESYSTEM) == (wanted.volume_mode or FILESYSTEM) and (
        (offered.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
    )


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
