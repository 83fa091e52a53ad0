"""The least that any node of a snapshot has left of cpu, memory, ephemeral storage and pods.

Where no node is full, a pod that requests less than this fits on every node, whatever it requests:
then no node has to be looked at.
"""

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np

from kubestow.cache.change_log import Depends
from kubestow.cache.columns import ALLOCATABLE, REQUESTED
from kubestow.cache.snapshot import Snapshot
from kubestow.index.follow import Follower, Sources

# All nodes are read again at most once for this many changes, and for this share of the nodes: it
# takes as long as some changes do.
_RECOUNT_MIN: Final = 16
_RECOUNT_SHARE: Final = 1 / 64


class LeastFree(Follower):
    """Lower bounds, which fall with each pod that is placed: `snapshot.derived(LeastFree)`.

    They may be too low after pods have left. All nodes are then read again.
    """

    __slots__ = ("_bounds", "_changed_count", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.log, Depends.COUNTS)
        self._snapshot = snapshot
        self._recount()

    def covers(self, amounts: Sequence[int | None]) -> bool:
        """Whether every node has this much left of cpu, memory and ephemeral storage, and takes one
        more pod. A node has enough for no request (None), also if it has less than nothing."""
        self.catch_up()
        if self._is_enough(amounts):
            return True
        if self._changed_count < max(_RECOUNT_MIN, len(self._snapshot) * _RECOUNT_SHARE):
            return False
        self._recount()
        return self._is_enough(amounts)

    def _is_enough(self, amounts: Sequence[int | None]) -> bool:
        cpu, memory, storage, pods = self._bounds
        cpu_wanted, memory_wanted, storage_wanted = amounts
        return (
            pods > 0
            and (cpu_wanted is None or cpu_wanted <= cpu)
            and (memory_wanted is None or memory_wanted <= memory)
            and (storage_wanted is None or storage_wanted <= storage)
        )

    def rows_moved(self, sources: Sources | None) -> None:
        self._recount()

    def pods_changed(self, rows: "array[int]") -> None:
        self._changed_count += len(rows)
        if len(rows) > _RECOUNT_MIN:
            self._recount()
            return
        cpu, memory, storage, pods = self._bounds
        for row in rows:
            info = self._snapshot.node_infos[row]
            offered, used = info.allocatable, info.requested
            cpu = min(cpu, offered.milli_cpu - used.milli_cpu)
            memory = min(memory, offered.memory - used.memory)
            storage = min(storage, offered.ephemeral_storage - used.ephemeral_storage)
            pods = min(pods, offered.allowed_pods - len(info.pods))
        self._bounds = cpu, memory, storage, pods

    def _recount(self) -> None:
        columns = self._snapshot.columns
        free = columns.block[ALLOCATABLE] - columns.block[REQUESTED]
        pods = columns.allowed_pods - columns.pod_count
        cpu, memory, storage = free.min(axis=1, initial=_NONE).tolist()
        self._bounds: tuple[int, int, int, int] = (
            cpu,
            memory,
            storage,
            int(pods.min(initial=_NONE)),
        )
        self._changed_count = 0


_NONE: Final = np.iinfo(np.int64).max
