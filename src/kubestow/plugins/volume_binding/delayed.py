"""The unbound claims of one pod against all nodes (spec 07 §2.4, step 2).

On a node each claim gets an existing volume or one to be provisioned. Nodes that reach the same
volumes get the same answer; where no claim has a prebound volume, answers are kept for the next pod
with claims of the same demands.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.storage import PersistentVolumeClaim, StorageClass
from kubestow.api.volume_claims import (
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    mode_not_set,
)
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.objects import ObjectStore
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.index.node_match import name_matches
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.volume_binding.free_volumes import VolumesByClass
from kubestow.plugins.volume_binding.matching import ChosenVolume, ClaimMatcher, Timer
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

    def codes(self, nodes: Nodes, timer: Timer, *, error_code: int) -> IntArray:
        """int64[node]: 0 where every claim gets a volume, `error_code` if `error` is set."""
        if not self._node_names:
            return self._codes_where_selected(nodes, timer, error_code)
        codes = np.full(len(nodes), self._nothing_to_bind, np.int64)
        if len(self._node_names) == 1:
            # The claims have one selected node; no other is checked any further.
            positions = np.flatnonzero(name_matches(nodes, next(iter(self._node_names)) or ""))
            selected = nodes.subset(positions)
            codes[positions] = self._codes_where_selected(selected, timer, error_code)
        return codes

    def plan_for(self, snapshot: Snapshot, row: int) -> VolumePlan:
        """The plan for a node that passed."""
        node = snapshot.nodes[row]
        view = nodes_of(snapshot, np.array([row], np.intp))
        bindings = self._matcher.bindings(view)
        unmatched = [
            claim
            for claim, chosen in zip(self._matcher.claims, bindings, strict=True)
            if chosen is None
        ]
        return VolumePlan(
            tuple([chosen for chosen in bindings if chosen is not None]),
            # Those with a selected node come first.
            self._provisioning.provisions((*self._selected, *unmatched), node),
        )

    def _codes_where_selected(self, nodes: Nodes, timer: Timer, error_code: int) -> IntArray:
        if self.error is not None:
            return np.full(len(nodes), error_code, np.int64)
        matched = self._matcher.matched(nodes, timer)
        codes = np.zeros(len(nodes), np.int64)
        provisioning = self._provisioning.on(nodes)
        claims: Iterable[tuple[PersistentVolumeClaim, BoolArray | None]] = chain(
            ((claim, None) for claim in self._selected),
            zip(self._matcher.claims, matched, strict=True),
        )
        for claim, is_matched in claims:
            timer.pause()
            open_ = codes == 0
            if is_matched is not None:
                open_ &= ~is_matched
            # The code of the first claim that cannot be provisioned stays.
            if open_.any():
                np.copyto(codes, provisioning.codes(claim), where=open_)
        return codes


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
