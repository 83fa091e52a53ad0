"""The volumes of one pod against all nodes (spec 07 §2.4).

Made in PreFilter, used by Filter, Score and Reserve of the same attempt. What depends on the pod
alone is computed when it is made; nodes are then distinguished only by what matters to the volumes.
"""

from collections.abc import Sequence
from enum import IntFlag
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.attempt_timer import NO_TIMER
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.plugins.volume_binding.affinity import (
    MigratedNodes,
    VolumeAffinity,
    affinity_of,
    nodes_matching,
)
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.plugins.volume_binding.delayed import NOTHING_TO_DO, DelayedClaims, VolumePlan
from kubestow.plugins.volume_binding.free_volumes import VolumesByClass
from kubestow.plugins.volume_binding.matching import Timer
from kubestow.plugins.volume_binding.provisioning import Provisioning


class Failure(IntFlag):
    """Why a node is rejected; there can be several reasons."""

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

_NOT_FILTERED: Final = -(2**62)
_NOTHING_FILTERED: Final[IntArray] = np.zeros(0, np.int64)


class VolumeSources(NamedTuple):
    """What a search reads."""

    volumes: AssumeCache[PersistentVolume]
    by_class: VolumesByClass
    provisioning: Provisioning
    migrated: MigratedNodes


class VolumeSearch:
    """The bound and the unbound claims of a pod, in the order of its volumes."""

    def __init__(
        self,
        bound: Sequence[PersistentVolumeClaim],
        delayed: Sequence[PersistentVolumeClaim],
        sources: VolumeSources,
    ) -> None:
        self._sources = sources
        self._errors = StatusCodes()
        # Of the volumes that not every node reaches. None: the volume does not exist.
        self._bound: list[VolumeAffinity | None] = []
        for claim in bound:
            volume = sources.volumes.get("", claim.spec.volume_name)
            affinity = None if volume is None else affinity_of(volume)
            if affinity is None or not affinity.is_anywhere:
                self._bound.append(affinity)
        self._delayed: DelayedClaims | None = None
        self._delayed_error = 0
        if delayed:
            self._delayed = DelayedClaims(
                delayed,
                sources.by_class,
                sources.provisioning,
                nothing_to_bind=int(Failure.NOTHING_TO_BIND),
            )
            self._delayed_error = self._error_code(self._delayed.error)
        self._passes_everywhere = False
        self._snapshot: Snapshot | None = None
        self._verdicts: IntArray = _NOTHING_FILTERED

    def passes_everywhere(self) -> bool:
        """Whether every node passes; all of them are filtered by this, if so."""
        self._passes_everywhere = not self._bound and self._delayed is None
        return self._passes_everywhere

    def codes(self, nodes: Nodes, timer: Timer = NO_TIMER) -> IntArray | None:
        """int64[node]: the sum of its failures, below 0 for an error; None if all nodes pass."""
        if self.passes_everywhere():
            return None
        codes = self._check_bound(nodes, timer)
        if self._delayed is not None:
            delayed = self._delayed.codes(nodes, timer, error_code=self._delayed_error)
            codes = delayed if codes is None else _combined(codes, delayed)
        self._store(nodes, codes)
        return codes

    def status(self, code: int) -> Status:
        if code < 0:
            return self._errors.status_of(code)
        return Status.unresolvable(
            *(reason for failure, reason in REASONS.items() if failure & code)
        )

    def plan_for(self, node_name: str) -> VolumePlan | None:
        """The plan for a node; None if it was not filtered or did not pass."""
        if self._passes_everywhere:
            return NOTHING_TO_DO
        snapshot = self._snapshot
        row = None if snapshot is None else snapshot.row_of(node_name)
        if snapshot is None or row is None or self._verdicts[row] != 0:
            return None
        return NOTHING_TO_DO if self._delayed is None else self._delayed.plan_for(snapshot, row)

    def _store(self, nodes: Nodes, codes: IntArray | None) -> None:
        snapshot = nodes.snapshot
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._verdicts = np.full(len(snapshot), _NOT_FILTERED, np.int64)
        self._verdicts[nodes.rows] = 0 if codes is None else codes

    def _check_bound(self, nodes: Nodes, timer: Timer) -> IntArray | None:
        """Like `codes`, for the bound claims alone: up to the first that fails."""
        codes: IntArray | None = None
        for affinity in self._bound:
            timer.pause()
            if codes is None:
                codes = np.zeros(len(nodes), np.int64)
            passing = codes == 0
            if affinity is None:
                codes[passing] = Failure.VOLUME_MISSING
                break
            self._check_reach(nodes, affinity, codes, passing)
        return codes

    def _check_reach(
        self, nodes: Nodes, affinity: VolumeAffinity, codes: IntArray, passing: BoolArray
    ) -> None:
        """Give a code to the nodes that do not reach a volume."""
        reached = nodes_matching(nodes, affinity.selector)
        if affinity.plugin and (affinity.error or affinity.selector != affinity.migrated):
            is_migrated = self._sources.migrated.mask(nodes, affinity.plugin)
            if affinity.error:
                error = PluginError(f"could not translate pv: {affinity.error}")
                codes[passing & is_migrated] = self._error_code(error)
                passing = passing & ~is_migrated
            else:
                reached = np.where(is_migrated, nodes_matching(nodes, affinity.migrated), reached)
        codes[passing & ~reached] = Failure.AFFINITY

    def _error_code(self, error: PluginError | None) -> int:
        return 0 if error is None else self._errors.code_of(Status.from_error(error))


def _combined(bound: IntArray, delayed: IntArray) -> IntArray:
    # An error ends the check of a node, and bound claims are checked first.
    return np.where(bound < 0, bound, np.where(delayed < 0, delayed, bound | delayed))
