"""The volumes of one pod against all nodes (spec 07 §2.4).

Made in PreFilter, asked by Filter, Score and Reserve of the same attempt. What depends on the pod
alone is settled when it is made; nodes are then told apart only by what matters to the volumes.

    bound claims      one mask over the nodes per node affinity
    unbound claims    nodes that reach the same volumes get the same answer (`matching`);
                      what is missing is checked by mask again (`provisioning`)
"""

from collections.abc import Sequence
from enum import IntFlag
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.nodes import Nodes
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.status import Status
from kubestow.plugins._shared.node_match import name_matches
from kubestow.plugins._shared.volume_claims import SELECTED_NODE_ANNOTATION
from kubestow.plugins.volume_binding.affinity import (
    MigratedNodes,
    VolumeAffinity,
    affinity_of,
    nodes_matching,
)
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.plugins.volume_binding.free_volumes import VolumesByClass
from kubestow.plugins.volume_binding.matching import Binding, ClaimMatcher, Matching, Reach
from kubestow.plugins.volume_binding.provisioning import Provision, Provisioning


class Failure(IntFlag):
    """What is wrong with a node; several things can be."""

    NONE = 0
    AFFINITY = 1
    NOTHING_TO_BIND = 2
    NO_SPACE = 4
    VOLUME_MISSING = 8


# In the order in which a status lists them.
REASONS: Final = {
    Failure.AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    Failure.NOTHING_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    Failure.NO_SPACE: "node(s) did not have enough free storage",
    Failure.VOLUME_MISSING: (
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ),
}

_NOT_ASKED: Final = -(2**62)


class VolumeSources(NamedTuple):
    """Where a search looks."""

    volumes: AssumeCache[PersistentVolume]
    by_class: VolumesByClass
    provisioning: Provisioning
    migrated: MigratedNodes


class Decision(NamedTuple):
    """What is done about a pod's unbound claims on a node that passed."""

    bindings: tuple[Binding, ...]
    provisions: tuple[Provision, ...]


class VolumeSearch:
    """The bound and the unbound claims of a pod, in the order of its volumes."""

    def __init__(
        self,
        bound: Sequence[PersistentVolumeClaim],
        delayed: Sequence[PersistentVolumeClaim],
        sources: VolumeSources,
    ) -> None:
        self._sources = sources
        volumes = (sources.volumes.get("", claim.spec.volume_name) for claim in bound)
        # None: the volume is not there.
        self._bound = [None if volume is None else affinity_of(volume) for volume in volumes]
        self._selected = [claim for claim in delayed if _selected_node(claim) is not None]
        self._node_names = {_selected_node(claim) for claim in self._selected}
        self._errors = StatusCodes()
        self._matcher: ClaimMatcher | None = None
        self._matching_error = 0
        unselected = [claim for claim in delayed if _selected_node(claim) is None]
        try:
            self._matcher = ClaimMatcher(unselected, sources.by_class)
        except PluginError as error:
            self._matching_error = self._errors.code_of(Status.from_error(error))
        self._has_delayed = bool(delayed)
        self._matchings: dict[Reach, Matching] = {}
        self._snapshot: Snapshot | None = None
        self._verdicts: IntArray = np.zeros(0, np.int64)

    # --- all nodes ---

    def codes(self, nodes: Nodes) -> IntArray | None:
        """int64[node]: the sum of its failures, below 0 for an error; None if all nodes pass."""
        bound = self._check_bound(nodes)
        delayed = self._check_delayed(nodes) if self._has_delayed else None
        if bound is None or delayed is None:
            codes = bound if delayed is None else delayed
        else:
            # An error ends the check of a node, so that of the bound claims comes first.
            codes = np.where(bound < 0, bound, np.where(delayed < 0, delayed, bound | delayed))
        self._remember(nodes, codes)
        return codes

    def status(self, code: int) -> Status:
        if code < 0:
            return self._errors.status_of(code)
        return Status.unresolvable(
            *(reason for failure, reason in REASONS.items() if failure & code)
        )

    def decision_for(self, node_name: str) -> Decision | None:
        """What is to be done on a node; None if it was not asked about or did not pass."""
        snapshot = self._snapshot
        row = None if snapshot is None else snapshot.row_of(node_name)
        if snapshot is None or row is None or self._verdicts[row] != 0:
            return None
        if not self._has_delayed:
            return _NOTHING_TO_DO
        node = snapshot.nodes[row]
        matching = self._matchings_of(snapshot.view(np.array([row], np.intp)))[0][0]
        claims = (*self._selected, *matching.unmatched)
        capacity_for = self._sources.provisioning.capacity_for
        return Decision(
            matching.bindings,
            tuple(Provision(claim, capacity_for(claim, node)) for claim in claims),
        )

    def _remember(self, nodes: Nodes, codes: IntArray | None) -> None:
        snapshot = nodes.snapshot
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._verdicts = np.full(len(snapshot), _NOT_ASKED, np.int64)
        self._verdicts[nodes.rows] = 0 if codes is None else codes

    # --- bound claims ---

    def _check_bound(self, nodes: Nodes) -> IntArray | None:
        codes: IntArray | None = None
        for affinity in self._bound:
            if affinity is not None and affinity.is_anywhere:
                continue
            if codes is None:
                codes = np.zeros(len(nodes), np.int64)
            passing = codes == 0
            if affinity is None:
                codes[passing] = Failure.VOLUME_MISSING
                break
            failed, error = self._out_of_reach(nodes, affinity)
            codes[passing & failed] = Failure.AFFINITY
            if error is not None:
                codes[passing & error] = self._translation_error(affinity)
        return codes

    def _out_of_reach(
        self, nodes: Nodes, affinity: VolumeAffinity
    ) -> tuple[BoolArray, BoolArray | None]:
        """Which nodes cannot reach the volume, and on which that cannot even be said."""
        reached = nodes_matching(nodes, affinity.selector)
        if not affinity.plugin or (affinity.selector == affinity.migrated and not affinity.error):
            return ~reached, None
        is_migrated = self._sources.migrated.mask(nodes, affinity.plugin)
        if affinity.error:
            return ~reached & ~is_migrated, is_migrated
        return ~np.where(is_migrated, nodes_matching(nodes, affinity.migrated), reached), None

    def _translation_error(self, affinity: VolumeAffinity) -> int:
        error = PluginError(f"could not translate pv: {affinity.error}")
        return self._errors.code_of(Status.from_error(error))

    # --- unbound claims ---

    def _check_delayed(self, nodes: Nodes) -> IntArray:
        """Like `codes`, for the unbound claims alone."""
        if not self._node_names:
            return self._check_unselected(nodes)
        codes = np.full(len(nodes), int(Failure.NOTHING_TO_BIND), np.int64)
        if len(self._node_names) == 1:
            # The claims are promised to one node; no other is looked at any further.
            positions = np.flatnonzero(name_matches(nodes, next(iter(self._node_names)) or ""))
            codes[positions] = self._check_unselected(nodes.subset(positions))
        return codes

    def _check_unselected(self, nodes: Nodes) -> IntArray:
        if self._matching_error:
            return np.full(len(nodes), self._matching_error, np.int64)
        codes = np.zeros(len(nodes), np.int64)
        matchings, indexes = self._matchings_of(nodes)
        # Matchings that leave the same claims without a volume are checked together.
        by_names: dict[tuple[str, ...], list[int]] = {}
        for index, matching in enumerate(matchings):
            names = tuple(claim.metadata.name for claim in matching.unmatched)
            by_names.setdefault(names, []).append(index)
        for chosen in by_names.values():
            claims = (*self._selected, *matchings[chosen[0]].unmatched)
            if claims:
                verdicts = self._sources.provisioning.codes(claims, nodes)
                codes = np.where(np.isin(indexes, chosen), verdicts, codes)
        return codes

    def _matchings_of(self, nodes: Nodes) -> tuple[list[Matching], npt.NDArray[np.intp]]:
        """The distinct matchings on these nodes, and which of them each node has."""
        assert self._matcher is not None
        wishes = self._matcher.wishes
        selectors = list(self._matcher.meant_selectors)
        columns = [wish.volumes.patterns.numbers(nodes) for wish in wishes]
        columns += [nodes_matching(nodes, selector).astype(np.int64) for selector in selectors]
        keys, indexes = _distinct_rows(columns, len(nodes))
        matchings: list[Matching] = []
        for key in keys:
            numbers, flags = key[: len(wishes)], key[len(wishes) :]
            reach = Reach(
                tuple(
                    wish.volumes.patterns.patterns[number]
                    for wish, number in zip(wishes, numbers, strict=True)
                ),
                frozenset(
                    selector for selector, flag in zip(selectors, flags, strict=True) if flag
                ),
            )
            matchings.append(self._matching(reach))
        return matchings, indexes

    def _matching(self, reach: Reach) -> Matching:
        matching = self._matchings.get(reach)
        if matching is None:
            assert self._matcher is not None
            matching = self._matchings[reach] = self._matcher.match(reach)
        return matching


_NOTHING_TO_DO: Final = Decision((), ())


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)


def _distinct_rows(
    columns: Sequence[IntArray], count: int
) -> tuple[list[tuple[int, ...]], npt.NDArray[np.intp]]:
    """The distinct combinations of values in the columns, and which of them each row has."""
    if not columns:
        return [()], np.zeros(count, np.intp)
    if len(columns) == 1:
        values, indexes = np.unique(columns[0], return_inverse=True)
        return [(value,) for value in values.tolist()], indexes
    rows, indexes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return [tuple(row) for row in rows.tolist()], indexes.reshape(-1)
