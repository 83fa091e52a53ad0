"""Finds existing volumes for the unbound claims of a pod (spec 07 §2.4 (2), §2.5).

A claim to which volumes are prebound gets these and no other; all others get free volumes of their
class (`free_matching`). So no claim of one class takes a volume from one of another, and each class
is matched by itself.

A pod may use a claim twice. With one prebound volume the second use needs a free one, on nodes that
reach the prebound one; on others there is nothing for both.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.node_selector import CompiledNodeSelector
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.volume_claims import claim_class, is_claimed_by, requested_storage
from kubestow.arrays import BoolArray, IntpArray
from kubestow.framework.attempt_timer import AttemptTimer, NoTimer
from kubestow.index.nodes import Nodes
from kubestow.index.selector_patterns import Pattern
from kubestow.plugins.volume_binding.affinity import nodes_matching, selector_of
from kubestow.plugins.volume_binding.demand import ClaimDemand
from kubestow.plugins.volume_binding.free_matching import FreeMatcher
from kubestow.plugins.volume_binding.free_volumes import ClassVolumes, VolumesByClass

Timer = AttemptTimer | NoTimer


class ChosenVolume(NamedTuple):
    """A claim and the volume chosen for it."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


class UnboundClaim:
    """One claim, and the volumes that are prebound to it."""

    __slots__ = ("claim", "demand", "prebound", "volumes")

    def __init__(self, claim: PersistentVolumeClaim, volumes: ClassVolumes) -> None:
        """Raises PluginError if the claim's selector does not parse."""
        self.claim = claim
        self.volumes = volumes
        self.demand = ClaimDemand.of(claim)
        # Spec 07 §2.5: for these, neither phase nor selector nor access modes matter.
        self.prebound = [
            volume
            for volume in volumes.prebound_to(claim)
            if is_claimed_by(volume, claim)
            and volume.metadata.deletion_timestamp is None
            and self.demand.suits_prebound(volume)
        ]


class _Use(NamedTuple):
    """One use of a claim. `prebound` is the volume it gets, None for a free one; `conditions` are
    the affinities of the prebound volumes that have to be in reach."""

    position: int
    prebound: PersistentVolume | None
    conditions: tuple[CompiledNodeSelector, ...]


class ClaimMatcher:
    """Matches a pod's claims on any nodes.

    claims   smallest first
    """

    def __init__(self, claims: Iterable[PersistentVolumeClaim], volumes: VolumesByClass) -> None:
        """Raises PluginError if a claim's selector does not parse."""
        # Sorting is stable: claims of equal size stay in the order of the pod's volumes.
        self.claims = sorted(claims, key=lambda claim: requested_storage(claim).nano)
        unbound = [
            UnboundClaim(claim, volumes.of_class(claim_class(claim))) for claim in self.claims
        ]
        self._prebound: list[_Use] = []
        by_class: dict[ClassVolumes, list[_Use]] = {}
        for use, each in zip(_uses(unbound), unbound, strict=True):
            if use.prebound is not None:
                self._prebound.append(use)
            else:
                by_class.setdefault(each.volumes, []).append(use)
        demands = [each.demand for each in unbound]
        self._classes = [_ClassClaims(each, uses, demands) for each, uses in by_class.items()]

    def matched(self, nodes: Nodes, timer: Timer) -> list[BoolArray]:
        """For each claim, bool[node]: whether there is a volume for it."""
        matched = [_NOWHERE] * len(self.claims)
        for use in self._prebound:
            timer.pause()
            matched[use.position] = _in_reach(nodes, use.conditions)
        for each in self._classes:
            each.put_matched(nodes, timer, matched)
        return matched

    def bindings(self, nodes: Nodes) -> list[ChosenVolume | None]:
        """For each claim, its volume on the only node of this view."""
        found: list[PersistentVolume | None] = [None] * len(self.claims)
        for use in self._prebound:
            if _in_reach(nodes, use.conditions).all():
                found[use.position] = use.prebound
        for each in self._classes:
            for position, volume in each.volumes_on(nodes):
                found[position] = volume
        return [
            None if volume is None else ChosenVolume(claim, volume)
            for claim, volume in zip(self.claims, found, strict=True)
        ]


# In place of an array: there is no volume for the claim on any node.
_NOWHERE: Final[BoolArray] = np.zeros(1, np.bool_)


class _ClassClaims:
    """The claims that need free volumes of one class."""

    def __init__(
        self, volumes: ClassVolumes, uses: Sequence[_Use], demands: Sequence[ClaimDemand]
    ) -> None:
        """`demands` are those of all claims of the pod."""
        self._volumes = volumes
        self._uses = uses
        self._demands = demands
        self._conditions = list(dict.fromkeys(use.conditions for use in uses if use.conditions))
        self._matchers: dict[tuple[int, ...], FreeMatcher] = {}

    def put_matched(self, nodes: Nodes, timer: Timer, matched: list[BoolArray]) -> None:
        if not self._conditions:
            self._put(nodes, [use.position for use in self._uses], timer, matched)
            return
        for places, positions in self._parts(nodes):
            part = [_NOWHERE] * len(matched)
            self._put(nodes.subset(places), positions, timer, part)
            for use in self._uses:
                if matched[use.position] is _NOWHERE:
                    matched[use.position] = np.zeros(len(nodes), np.bool_)
                matched[use.position][places] = part[use.position]

    def volumes_on(self, nodes: Nodes) -> Iterator[tuple[int, PersistentVolume]]:
        """The positions of claims, and their volumes on the only node of this view."""
        for _, positions in self._parts(nodes):
            number = int(self._volumes.patterns.numbers(nodes)[0])
            matches = self._matcher(positions).match(self._volumes.patterns.pattern(number))
            for position, volume in matches:
                yield positions[position], volume

    def _parts(self, nodes: Nodes) -> Iterator[tuple[IntpArray, list[int]]]:
        """The places of nodes on which the same claims need a free volume, and these claims."""
        columns = [_in_reach(nodes, conditions) for conditions in self._conditions]
        if not columns:
            yield np.arange(len(nodes), dtype=np.intp), [use.position for use in self._uses]
            return
        keys, indexes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        for number, key in enumerate(keys.tolist()):
            met = {
                conditions
                for conditions, is_met in zip(self._conditions, key, strict=True)
                if is_met
            }
            positions = [
                use.position for use in self._uses if not use.conditions or use.conditions in met
            ]
            yield np.flatnonzero(indexes.reshape(-1) == number), positions

    def _put(
        self, nodes: Nodes, positions: list[int], timer: Timer, matched: list[BoolArray]
    ) -> None:
        volumes = self._volumes
        table = volumes.table(tuple([self._demands[position] for position in positions]))

        def compute(pattern: Pattern) -> tuple[int, ...]:
            return tuple([match.position for match in self._matcher(positions).match(pattern)])

        indexes = table.look_up(
            volumes.patterns.numbers(nodes), volumes.patterns, compute, timer.may_interrupt
        )
        for position, is_matched in table.by_claim(len(positions)):
            matched[positions[position]] = is_matched[indexes]

    def _matcher(self, positions: list[int]) -> FreeMatcher:
        key = tuple(positions)
        matcher = self._matchers.get(key)
        if matcher is None:
            demands = [self._demands[position] for position in positions]
            matcher = self._matchers[key] = FreeMatcher(self._volumes, demands)
        return matcher


def _uses(unbound: Iterable[UnboundClaim]) -> Iterator[_Use]:
    """What each use of a claim gets, in order."""
    counts: dict[tuple[str, str], int] = {}
    for position, each in enumerate(unbound):
        if not each.prebound:
            yield _Use(position, None, ())
            continue
        key = each.claim.metadata.namespace, each.claim.metadata.name
        count = counts[key] = counts.get(key, 0) + 1
        # Where one is out of reach it is not taken, and the next use comes to it again.
        selectors = [selector_of(volume.spec.node_affinity) for volume in each.prebound[:count]]
        conditions = tuple([selector for selector in selectors if selector is not None])
        prebound = each.prebound[count - 1] if count <= len(each.prebound) else None
        yield _Use(position, prebound, conditions)


def _in_reach(nodes: Nodes, conditions: Sequence[CompiledNodeSelector]) -> BoolArray:
    """bool[node]: where all of these hold."""
    mask = np.ones(len(nodes), np.bool_)
    for selector in conditions:
        mask &= nodes_matching(nodes, selector)
    return mask
