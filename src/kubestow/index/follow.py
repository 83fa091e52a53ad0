"""The one reader of a snapshot's changes: the base of everything derived from a snapshot.

A follower is brought up to date when it is read, not when the snapshot changes: what no cycle reads
costs nothing. `catch_up` reads the log from where it last ended and calls, in this order:

    rows_moved(sources)   nodes were added or deleted: row i is what was row `source[i]`, or new
                          where that is -1; one source for each reordering, oldest first
    rows_moved(None)      the log does not reach back that far: everything has to be read again
    nodes_changed(rows)   Node objects of these rows changed
    pods_changed(rows)    anything on these rows changed, the Node objects included

Rows that are new after `rows_moved` are among the changed ones. A row is listed once per change.
A call that raised is repeated by the next `catch_up`.
"""

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kubestow.cache.change_log import ChangeLog, Depends

Sources = Sequence[npt.NDArray[np.intp]]


class Follower:
    """Base of what follows a snapshot, derived from Node objects alone or from pods as well.

    A new one counts as up to date: its constructor has to read everything once.
    """

    __slots__ = ("_epoch", "_log", "_node_end", "_pod_end", "_reads_pods")

    def __init__(self, log: ChangeLog, depends: Depends) -> None:
        self._log = log
        self._reads_pods = depends is Depends.PODS
        self._skip_to_end()

    # --- what followers do about changes ---

    def rows_moved(self, sources: Sources | None) -> None:
        """Rows were reordered; with None everything has to be read again."""
        raise NotImplementedError

    def nodes_changed(self, rows: "array[int]") -> None:
        """Node objects changed."""

    def pods_changed(self, rows: "array[int]") -> None:
        """Pods or Node objects changed. Not called on what is derived from Node objects alone."""

    # --- reading ---

    @property
    def read_end(self) -> int:
        """How many changes have been read."""
        return self._pod_end

    def unread(self) -> "array[int] | None":
        """The rows with changes yet to read; None if nodes were reordered, or they are not known
        any more."""
        log = self._log
        return log.pods_since(self._pod_end) if self._epoch == log.epoch else None

    def read_with(self, other: "Follower") -> None:
        """The changes that `other` has read have been read for this one, too."""
        if self._epoch == other._epoch and self._pod_end < other._pod_end:
            self._pod_end = other._pod_end

    def catch_up(self) -> None:
        log = self._log
        if self._epoch != log.epoch or self._node_end != log.node_end:
            self._read(log)
        elif self._reads_pods and self._pod_end != log.pod_end:
            self._read_changed_pods(log)

    def _read(self, log: ChangeLog) -> None:
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
        if self._reads_pods and self._pod_end != log.pod_end:
            self._read_changed_pods(log)

    def _read_changed_pods(self, log: ChangeLog) -> None:
        rows = log.pods_since(self._pod_end)
        if rows is None:
            self._start_over()
            return
        self.pods_changed(rows)
        self._pod_end = log.pod_end

    def _start_over(self) -> None:
        self.rows_moved(None)
        self._skip_to_end()

    def _skip_to_end(self) -> None:
        log = self._log
        self._epoch, self._node_end, self._pod_end = log.epoch, log.node_end, log.pod_end
