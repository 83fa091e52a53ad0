"""The one reader of a snapshot's changes: the base of everything derived from a snapshot.

A follower is brought up to date when it is read, not when the snapshot changes: what no cycle reads
costs nothing. `catch_up` reads the log from where it last ended and calls, in this order:

    rows_moved(sources)   nodes were added or deleted: row i is what was row `source[i]`, or new
                          where that is -1; one source for each reordering, oldest first
    rows_moved(None)      the log does not reach back that far: everything has to be read again
    nodes_changed(rows)   Node objects of these rows changed
    pods_changed(rows)    what nodes count of their pods changed on these rows, or with
                          `Depends.PODS` anything; the Node objects included

Rows that are new after `rows_moved` are among the changed ones. A row is listed once per change.
A call that raised is repeated by the next `catch_up`.
"""

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.cache.change_log import ChangeLog, Depends

_COUNTS: Final = Depends.COUNTS
_PODS: Final = Depends.PODS

Sources = Sequence[npt.NDArray[np.intp]]


class Follower:
    """Base of what follows a snapshot, derived from Node objects alone or from more (`Depends`).

    A new one counts as up to date: its constructor has to read everything once.
    """

    __slots__ = ("_depends", "_end", "_epoch", "_log", "_node_end")

    def __init__(self, log: ChangeLog, depends: Depends) -> None:
        self._log = log
        self._depends = depends
        self._skip_to_end()

    # --- what followers do about changes ---

    def rows_moved(self, sources: Sources | None) -> None:
        """Rows were reordered; with None everything has to be read again."""
        raise NotImplementedError

    def nodes_changed(self, rows: "array[int]") -> None:
        """Node objects changed."""

    def pods_changed(self, rows: "array[int]") -> None:
        """More than Node objects changed. Not called on what is derived from these alone."""

    # --- reading ---

    def catch_up(self) -> None:
        log = self._log
        if self._epoch != log.epoch or self._node_end != log.node_end:
            self._follow_nodes(log)
        if self._depends is _COUNTS:
            end = log.count_end
            if self._end == end:
                return
            rows = log.counts_since(self._end)
        elif self._depends is _PODS:
            end = log.pod_end
            if self._end == end:
                return
            rows = log.pods_since(self._end)
        else:
            return
        if rows is None:
            self._start_over()
            return
        self.pods_changed(rows)
        self._end = end

    def _follow_nodes(self, log: ChangeLog) -> None:
        if self._epoch != log.epoch:
            sources = log.reorders_since(self._epoch)
            if sources is None:
                self._start_over()
                return
            self.rows_moved(sources)
            self._epoch = log.epoch
        if self._node_end != log.node_end:
            rows = log.nodes_since(self._node_end)
            if rows is None:
                self._start_over()
                return
            self.nodes_changed(rows)
            self._node_end = log.node_end

    def _start_over(self) -> None:
        self.rows_moved(None)
        self._skip_to_end()

    def _skip_to_end(self) -> None:
        """All of the log that is followed has been read."""
        log = self._log
        ends = {_COUNTS: log.count_end, _PODS: log.pod_end}
        self._epoch, self._node_end = log.epoch, log.node_end
        self._end = ends.get(self._depends, 0)
