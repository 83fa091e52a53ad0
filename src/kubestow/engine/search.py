"""Filters nodes in visiting order until enough fit (spec 04 §6.3)."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, Rows, row_numbers, smallest
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decision import Decision
from kubestow.engine.evaluation import Evaluation
from kubestow.framework.diagnosis import PASSED, UNKNOWN, decode_status
from kubestow.framework.profile import Profile
from kubestow.framework.runner import FilterError, nominated_ahead, run_filters_with
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode


class FeasibleSearch:
    """One search, stretch by stretch.

    A stretch is evaluated as a whole, and the verdicts behind the node at which upstream stops are
    dropped. Upstream stops at the first feasible node beyond `nodes_to_find`, so rejections before
    that node count.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile,
        decision: Decision,
        evaluation: Evaluation,
        nominated: Mapping[int, Sequence[PodInfo]],
    ) -> None:
        self._snapshot = snapshot
        self._profile = profile
        self._decision = decision
        self._evaluation = evaluation
        self._nominated = nominated
        self._wanted = decision.nodes_to_find
        # A stretch in which every node fits stays a slice, so that nothing is copied.
        self._found: list[slice | npt.NDArray[np.intp]] = []
        self._found_count = 0

    def conclude(self) -> Status | None:
        """Enter what was found into the decision; an error if a filter cannot say why it rejects.

        The texts are made only where no node fits.
        """
        decision, diagnosis = self._decision, self._decision.diagnosis
        decision.set_feasible(_joined(self._found))
        decision.evaluated_count = self._found_count + diagnosis.failed_count
        if decision.evaluated_count:
            self._evaluation.note_search(self._found_count, decision.evaluated_count)
        return None if self._found_count else diagnosis.note_rejecting_plugins()

    def run(self, candidates: range | npt.NDArray[np.intp], start: int) -> Status | None:
        if len(candidates) == 0:
            return None
        first = _first_at_or_after(candidates, start)
        if not self._profile.filter:
            rows = np.roll(np.asarray(candidates, np.intp), -first)[: self._wanted]
            self._take(rows, len(rows))
            return None
        for rows in self._stretches(candidates, first):
            error, is_done = self._filter_stretch(rows)
            if error is not None or is_done:
                return error
        return None

    def _stretches(
        self, candidates: range | npt.NDArray[np.intp], start: int
    ) -> Iterator[slice | npt.NDArray[np.intp]]:
        """The candidates from `start` on, wrapping round, in pieces of about the needed length."""
        count = len(candidates)
        share = self._evaluation.passing_share()
        size = self._wanted + 1 if share == 1 else self._enough(self._wanted, share)
        position = 0
        while position < count:
            first = (start + position) % count
            length = min(size, count - position, count - first)
            if isinstance(candidates, range):
                yield slice(candidates.start + first, candidates.start + first + length)
            else:
                yield candidates[first : first + length]
            position += length
            found = self._found_count
            enough = self._enough(self._wanted - found, found / position)
            # A stretch that only the end of the list cut short needs no more than its rest.
            size = enough if found == position else max(2 * size, enough)

    @staticmethod
    def _enough(wanted: int, share: float) -> int:
        """How many nodes to filter if this share of them fits, with a margin."""
        return int(1.1 * wanted / max(share, 0.01)) + 16

    def _filter_stretch(self, rows: slice | npt.NDArray[np.intp]) -> tuple[Status | None, bool]:
        """Returns an error that ends the attempt, and whether enough nodes were found."""
        try:
            failed_by, codes = self._evaluation.verdicts(rows)
        except FilterError as error:
            return error.status, True
        explicit = self._filter_nominated(rows) if self._nominated else {}
        if explicit:
            failed_by = _with_explicit(failed_by, explicit)
        passed = failed_by == PASSED
        missing = self._wanted - self._found_count
        if isinstance(rows, slice) and not explicit and np.count_nonzero(passed) == len(failed_by):
            return None, self._take_all(rows, len(failed_by), missing)
        positions = passed.nonzero()[0]
        end = len(failed_by) if len(positions) <= missing else int(positions[missing])
        taken = positions[:missing]
        error, error_at = self._first_error(failed_by, codes, explicit, end)
        if error is not None:
            end = error_at
            taken = taken[taken < end]
        if isinstance(rows, slice):
            self._take(taken + rows.start, len(taken))
            visited: Rows = slice(rows.start, rows.start + end)
        else:
            self._take(rows[taken], len(taken))
            visited = rows[:end]
        if error is not None:
            self._decision.diagnosis.error_row = int(row_numbers(rows)[end])
        self._record(visited, failed_by[:end], codes[:end], explicit)
        return error, end < len(failed_by)

    def _take_all(self, rows: slice, count: int, missing: int) -> bool:
        """Every node of the stretch fits; returns whether there are more than needed."""
        taken = min(count, missing)
        self._take(slice(rows.start, rows.start + taken), taken)
        return taken < count

    def _filter_nominated(self, rows: slice | npt.NDArray[np.intp]) -> dict[int, Status]:
        """The rejected ones of the nodes that have pods nominated ahead, by position in the
        stretch."""
        verdicts: dict[int, Status] = {}
        state, pod = self._decision.state, self._decision.pod
        for row, pods in self._nominated.items():
            ahead = nominated_ahead(pod, pods)
            position = _position(rows, row) if ahead else None
            if position is not None:
                node = SimulatedNode(self._snapshot, row)
                status = run_filters_with(self._profile, state, pod, node, ahead)
                if status is None:
                    # The same as its verdict in the stretch. It is found again, since filters store
                    # what they found last, and that has to be without these pods.
                    status = self._evaluation.status_on(row)
                if status is not None:
                    verdicts[position] = status
        return verdicts

    def _first_error(
        self,
        failed_by: IntArray,
        codes: IntArray,
        explicit: Mapping[int, Status],
        end: int,
    ) -> tuple[Status | None, int]:
        """The status and position of the first filter error in the stretch, if before `end`."""
        position = end
        if smallest(codes) < 0:
            failed = np.flatnonzero((codes[:end] < 0) & (failed_by[:end] >= 0))
            position = int(failed[0]) if len(failed) else end
        for place, status in explicit.items():
            if not status.is_rejected:
                position = min(position, place)
        if position == end:
            return None, end
        status = explicit.get(position)
        if status is None:
            plugin = self._profile.filter[int(failed_by[position])]
            status = decode_status(plugin, self._decision.state, int(codes[position]))
        return status, position

    def _take(self, rows: slice | npt.NDArray[np.intp], count: int) -> None:
        if count:
            self._found.append(rows)
            self._found_count += count

    def _record(
        self,
        rows: Rows,
        failed_by: IntArray,
        codes: IntArray,
        explicit: Mapping[int, Status],
    ) -> None:
        diagnosis = self._decision.diagnosis
        diagnosis.record(rows, failed_by, codes)
        for position, status in explicit.items():
            if position < len(failed_by):
                row = rows.start + position if isinstance(rows, slice) else int(rows[position])
                diagnosis.set_explicit(row, status)
                # Unlike for the pod's own nominated node, Pending is recorded here (§5).
                diagnosis.add_plugin_of(status)


def _with_explicit(failed_by: IntArray, explicit: Mapping[int, Status]) -> IntArray:
    failed_by = failed_by.copy()
    failed_by[list(explicit)] = UNKNOWN
    return failed_by


def _position(rows: slice | npt.NDArray[np.intp], row: int) -> int | None:
    """Where in the stretch a row is."""
    if isinstance(rows, slice):
        return row - rows.start if rows.start <= row < rows.stop else None
    places = np.flatnonzero(rows == row)
    return int(places[0]) if len(places) else None


def _joined(found: Sequence[slice | npt.NDArray[np.intp]]) -> slice | npt.NDArray[np.intp]:
    if len(found) == 1:
        return found[0]
    if not found:
        return np.empty(0, np.intp)
    return np.concatenate([row_numbers(rows) for rows in found])


def _first_at_or_after(candidates: range | npt.NDArray[np.intp], start: int) -> int:
    """The position in the candidates at which the search from row `start` begins.

    Upstream visits candidates that PreFilter restricted in the random order of a map.
    """
    if isinstance(candidates, range):
        return start % len(candidates)
    return int(np.searchsorted(candidates, start)) % len(candidates)
