"""The unbound claims of one pod against all nodes (spec 07 §2.4, step 2).

On a node each claim gets an existing volume or one to be provisioned. Nodes that reach the same
volumes get the same answer; where no claim has a prebound volume, answers are kept for the next pod
with claims of the same demands.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.storage import PersistentVolumeClaim, StorageClass
from kubestow.api.volume_claims import (
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    mode_not_set,
)
from kubestow.arrays import IntArray
from kubestow.cache.objects import ObjectStore
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.index.node_match import name_matches
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.index.selector_patterns import Pattern
from kubestow.plugins.volume_binding.affinity import nodes_matching
from kubestow.plugins.volume_binding.free_volumes import VolumesByClass
from kubestow.plugins.volume_binding.matching import ChosenVolume, ClaimMatcher, VolumeReach
from kubestow.plugins.volume_binding.provisioning import Provision, Provisioning


def is_delayed(claim: PersistentVolumeClaim, classes: ObjectStore[StorageClass]) -> bool:
    """Whether the claim is bound only once a pod that uses it has a node."""
    name = claim_class(claim)
    storage_class = classes.get(name) if name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise PluginError(mode_not_set(name))
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


class VolumePlan(NamedTuple):
    """The volumes for a pod's unbound claims on a node that passed."""

    bindings: tuple[ChosenVolume, ...]
    provisions: tuple[Provision, ...]


NOTHING_TO_DO: Final = VolumePlan((), ())


class DelayedClaims:
    """Claims that wait for their pod to get a node, in the order of its volumes."""

    def __init__(
        self,
        claims: Sequence[PersistentVolumeClaim],
        by_class: VolumesByClass,
        provisioning: Provisioning,
        *,
        nothing_to_bind: int,
    ) -> None:
        """`nothing_to_bind` is the code for nodes where a claim gets no volume."""
        self._provisioning = provisioning
        self._nothing_to_bind = nothing_to_bind
        self._selected = [claim for claim in claims if _selected_node(claim) is not None]
        self._node_names = {_selected_node(claim) for claim in self._selected}
        unselected = [claim for claim in claims if _selected_node(claim) is None]
        # Why the claims cannot be bound on any node; None if they can.
        self.error: PluginError | None = None
        self._matcher = ClaimMatcher((), by_class)
        try:
            self._matcher = ClaimMatcher(unselected, by_class)
        except PluginError as error:
            self.error = error

    def codes(self, nodes: Nodes, *, error_code: int) -> IntArray:
        """int64[node]: 0 where every claim gets a volume, `error_code` if `error` is set."""
        if not self._node_names:
            return self._codes_where_selected(nodes, error_code)
        codes = np.full(len(nodes), self._nothing_to_bind, np.int64)
        if len(self._node_names) == 1:
            # The claims have one selected node; no other is checked any further.
            positions = np.flatnonzero(name_matches(nodes, next(iter(self._node_names)) or ""))
            codes[positions] = self._codes_where_selected(nodes.subset(positions), error_code)
        return codes

    def plan_for(self, snapshot: Snapshot, row: int) -> VolumePlan:
        """The plan for a node that passed."""
        node = snapshot.nodes[row]
        view = nodes_of(snapshot, np.array([row], np.intp))
        matching = self._matcher.match(self._reaches(view)[0][0])
        claims = self._to_provision(matching.unmatched)
        capacity_for = self._provisioning.capacity_for
        return VolumePlan(
            matching.bindings,
            tuple(Provision(claim, capacity_for(claim, node)) for claim in claims),
        )

    def _codes_where_selected(self, nodes: Nodes, error_code: int) -> IntArray:
        if self.error is not None:
            return np.full(len(nodes), error_code, np.int64)
        codes = np.zeros(len(nodes), np.int64)
        answers, indexes = self._unmatched(nodes)
        for index, unmatched in enumerate(answers):
            claims = self._to_provision(unmatched)
            if claims and (indexes == index).any():
                verdicts = self._provisioning.codes(claims, nodes)
                codes = np.where(indexes == index, verdicts, codes)
        return codes

    def _unmatched(self, nodes: Nodes) -> tuple[Sequence[tuple[int, ...]], IntArray]:
        """Lists of claims for which there is no volume, and the index of each node's list."""
        unbound = self._matcher.unbound
        if not unbound:
            return [()], np.zeros(len(nodes), np.int64)
        volumes = unbound[0].volumes
        if all(each.volumes is volumes and not each.prebound for each in unbound):
            table = volumes.table(tuple(each.demand for each in unbound))
            indexes = table.look_up(
                volumes.patterns.numbers(nodes), volumes.patterns, self._match_pattern
            )
            return table.answers, indexes
        reaches, indexes = self._reaches(nodes)
        return [self._matcher.match(reach).unmatched for reach in reaches], indexes

    def _match_pattern(self, pattern: Pattern) -> tuple[int, ...]:
        reach = VolumeReach((pattern,) * len(self._matcher.unbound), frozenset())
        return self._matcher.match(reach).unmatched

    def _to_provision(self, unmatched: tuple[int, ...]) -> list[PersistentVolumeClaim]:
        """Claims to provision for: those with a selected node come first."""
        unbound = self._matcher.unbound
        return [*self._selected, *(unbound[position].claim for position in unmatched)]

    def _reaches(self, nodes: Nodes) -> tuple[list[VolumeReach], IntArray]:
        """The distinct sets of volumes in reach of these nodes, and the index of each node's."""
        unbound = self._matcher.unbound
        selectors = self._matcher.prebound_selectors
        columns = [each.volumes.patterns.numbers(nodes) for each in unbound]
        columns += [nodes_matching(nodes, selector).astype(np.int64) for selector in selectors]
        if not columns:
            return [VolumeReach((), frozenset())], np.zeros(len(nodes), np.int64)
        keys, indexes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        distinct: list[list[int]] = keys.tolist()
        reaches = [
            VolumeReach(
                tuple(
                    each.volumes.patterns.patterns[number]
                    for each, number in zip(unbound, key, strict=False)
                ),
                frozenset(
                    selector
                    for selector, is_matched in zip(selectors, key[len(unbound) :], strict=True)
                    if is_matched
                ),
            )
            for key in distinct
        ]
        return reaches, indexes.reshape(-1)


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
