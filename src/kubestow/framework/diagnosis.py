"""Why a pod fits nowhere: a verdict per node, and the text made of them (spec 04 §3.2, §14.2).

Verdicts are kept as numbers (which filter, which of its codes). Texts are made once per distinct
pair, never per node, so their cost does not depend on the number of nodes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IntArray, Rows, row_count, row_numbers
from kubestow.framework.answers import filter_status_answer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.faults import fault_status
from kubestow.framework.metrics import FILTER
from kubestow.framework.plugin import FilterPlugin
from kubestow.framework.profile import plugin_name
from kubestow.framework.status import Code, Status, wrapped_text

# Instead of the index of the filter that rejected a node.
PASSED = -1
UNKNOWN = -2  # not filtered, so the node has the status of absent nodes

# How many distinct verdicts are counted with one pass over the nodes for each.
PAIRS_FEW: Final = 16

NO_STATUS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

_NO_CODES: Final[IntArray] = np.empty(0, np.int64)


class Rejections:
    """Verdicts of filters on all nodes, none of which fits. They hold for many pods in a row.

    counts    how many nodes each filter rejects with each of its codes
    decoded   the statuses of these
    text      of the FitError, without the answer of PostFilter; empty until it is first needed
    """

    __slots__ = ("codes", "counts", "decoded", "failed_by", "text")

    def __init__(
        self, failed_by: IntArray, codes: IntArray, counts: dict[tuple[int, int], int]
    ) -> None:
        self.failed_by = failed_by
        self.codes = codes
        self.counts = counts
        self.decoded: dict[tuple[int, int], Status] = {}
        self.text = ""

    @classmethod
    def of(cls, failed_by: IntArray, codes: IntArray) -> "Rejections | None":
        """None if there are too many distinct verdicts, or a filter failed.

        The arrays are kept: they must not change before the diagnosis is dropped.
        """
        counts = count_distinct(failed_by, codes)
        if len(counts) > PAIRS_FEW or any(code < 0 for _, code in counts):
            return None
        return cls(failed_by, codes, counts)


class Rejected(NamedTuple):
    """The nodes that were rejected with one code.

    rows          in visiting order; a slice with both bounds if they are all nodes
    first_filter  the index of the first filter that rejected one of them: those before it have
                  passed them all; 0 if that is not known
    """

    rows: Rows
    first_filter: int


class Diagnosis:
    """The verdicts of one attempt.

    explicit    row → Status for the few nodes whose verdict did not come from a filter's array
    absent      status of every node without a verdict of its own
    error_row   the node at which a filter failed, which ended the attempt

    `state` and `filters` decode the codes of verdicts.
    """

    error_row: int | None = None

    def __init__(
        self,
        node_names: Sequence[str],
        state: CycleState | None = None,
        filters: Sequence[FilterPlugin] = (),
    ) -> None:
        self.node_names = node_names
        # How many nodes could have been chosen; fewer than there are for a group's placement.
        self.node_count = len(node_names)
        # int16[row], index of the filter that rejected the node, PASSED or UNKNOWN; and int64[row],
        # that filter's code for it. Made when first needed: most pods fit at once.
        self._failed_by: npt.NDArray[np.int16] | None = None
        self._codes: IntArray = _NO_CODES
        self.explicit: dict[int, Status] = {}
        self.absent = NO_STATUS
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.pre_filter_message = ""
        self.post_filter_message = ""
        self._state = state
        self._filters = filters
        self._decoded: dict[tuple[int, int], Status] = {}
        # The answer of `_distinct`, until a verdict is added.
        self._counted: dict[tuple[int, int], int] | None = None
        # Set while they are all there is.
        self._rejections: Rejections | None = None
        self._pending: list[tuple[Rows, IntArray, IntArray]] = []
        self._pending_failed_count = 0

    def _entered(self) -> tuple[npt.NDArray[np.int16], IntArray]:
        """`_failed_by` and `_codes` with everything recorded so far."""
        if self._failed_by is None:
            self._failed_by = np.full(len(self.node_names), UNKNOWN, np.int16)
            self._codes = np.zeros(len(self.node_names), np.int64)
        if self._pending:
            for rows, failed_by, codes in self._pending:
                self._failed_by[rows] = failed_by
                self._codes[rows] = codes
            self._pending.clear()
            self._pending_failed_count = 0
        return self._failed_by, self._codes

    def record(self, rows: Rows, failed_by: IntArray, codes: IntArray) -> None:
        """Record the filters' verdicts on nodes that were not filtered before.

        They are entered on demand. The arrays may be overwritten by the next cycle, so a diagnosis
        is valid within its cycle only (see `Decision.freeze`).
        """
        self._counted = self._rejections = None
        self._pending.append((rows, failed_by, codes))
        self._pending_failed_count += int(np.count_nonzero(failed_by >= 0))
        if self.explicit:
            for row in self.explicit.keys() & set(row_numbers(rows).tolist()):
                del self.explicit[row]

    def reject_all(self, rejections: Rejections) -> Status | None:
        """Record verdicts on all nodes; an error if a filter cannot say why it rejects."""
        count = len(self.node_names)
        self.explicit.clear()
        self._failed_by = None
        self._pending = [(slice(0, count), rejections.failed_by, rejections.codes)]
        self._pending_failed_count = count
        self._counted, self._decoded = rejections.counts, rejections.decoded
        self._rejections = rejections
        error = self.note_rejecting_plugins()
        if error is not None:
            rejections.decoded = {}  # The next pod may get another answer.
        return error

    @property
    def failed_count(self) -> int:
        """How many nodes have a verdict of their own that is not a pass."""
        count = self._pending_failed_count
        if self._failed_by is not None:
            count += int(np.count_nonzero(self._failed_by >= 0))
        return count + len(self.explicit)

    @property
    def _has_verdicts(self) -> bool:
        return self._failed_by is not None or bool(self._pending)

    def rejected_counts(self) -> Mapping[int, int]:
        """How many nodes each filter rejected, by its index."""
        if self._counted is not None:
            counted: dict[int, int] = {}
            for (filter_index, _), count in self._counted.items():
                counted[filter_index] = counted.get(filter_index, 0) + count
            return counted
        failed_count = self.failed_count - len(self.explicit)
        if failed_count == 0:
            return {}
        parts: list[npt.NDArray[np.signedinteger[Any]]]
        parts = [failed_by for _, failed_by, _ in self._pending]
        if self._failed_by is not None:
            parts = [self._entered()[0]]
        failed_by = parts[0] if len(parts) == 1 else np.concatenate(parts)
        last = failed_by.item(failed_by.argmax())
        if np.count_nonzero(failed_by == last) == failed_count:
            return {last: failed_count}  # Mostly one filter rejects all of them.
        # UNKNOWN, PASSED and the indexes become 0, 1, 2 and so on.
        counts: list[int] = np.bincount(failed_by - UNKNOWN).tolist()
        return {
            filter_index: count
            for filter_index, count in enumerate(counts, UNKNOWN)
            if count and filter_index > PASSED
        }

    def add_plugin_of(self, status: Status) -> None:
        if not status.plugin:
            return
        if status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
        if status.code == Code.PENDING:
            self.pending_plugins.add(status.plugin)

    def note_rejecting_plugins(self) -> Status | None:
        """Add every filter that rejected some node; the first error if one cannot say why."""
        found: Status | None = None
        for filter_index, code in self._distinct():
            status = self._decode(filter_index, code)
            self.add_plugin_of(status)
            if found is None and not status.is_rejected:
                found = status
        return found

    def set_explicit(self, row: int, status: Status) -> None:
        self._counted = self._rejections = None
        self.explicit[row] = status
        self._entered()[0][row] = UNKNOWN

    def status_of(self, row: int) -> Status | None:
        """The verdict on one node; None when it passed."""
        explicit = self.explicit.get(row)
        if explicit is not None:
            return explicit
        failed_by, codes = self._entered()
        filter_index = int(failed_by[row])
        if filter_index == PASSED:
            return None
        if filter_index == UNKNOWN:
            return self.absent
        return self._decode(filter_index, int(codes[row]))

    def rejected_with(self, code: Code) -> Rejected:
        """The nodes whose verdict has this code."""
        distinct = self._distinct()
        wanted = [pair for pair in distinct if self._decode(*pair).code == code]
        rows = self._rows_with(code, wanted, are_all=len(wanted) == len(distinct))
        return Rejected(rows, self._first_with(code, wanted))

    def count_with(self, code: Code) -> int:
        """How many nodes have a verdict with this code."""
        if self._rejections is None:
            return row_count(self.rejected_with(code).rows)
        distinct = self._distinct().items()
        return sum([count for pair, count in distinct if self._decode(*pair).code == code])

    def _rows_with(self, code: Code, wanted: Sequence[tuple[int, int]], *, are_all: bool) -> Rows:
        """`wanted` are the pairs with this code; `are_all` if there are no others."""
        if not wanted and not self.explicit and self.absent.code != code:
            return np.empty(0, np.intp)
        every = slice(0, len(self.node_names))
        if self._rejections is not None and are_all:
            return every
        failed_by, codes = self._entered()
        if are_all:
            matching = failed_by >= 0
        else:
            matching = np.zeros(len(self.node_names), np.bool_)
            for filter_index, verdict in wanted:
                matching |= (failed_by == filter_index) & (codes == verdict)
        if self.absent.code == code:
            matching |= failed_by == UNKNOWN
        for row, status in self.explicit.items():
            matching[row] = status.code == code
        found = np.flatnonzero(matching)
        return every if len(found) == len(matching) else found

    def _first_with(self, code: Code, wanted: Sequence[tuple[int, int]]) -> int:
        if self.absent.code == code:
            return 0
        found = [filter_index for filter_index, _ in wanted]
        if self.explicit:
            indexes = {plugin_name(plugin): index for index, plugin in enumerate(self._filters)}
            found += [
                indexes.get(status.plugin, 0)
                for status in self.explicit.values()
                if status.code == code
            ]
        return min(found, default=0)

    def statuses(self) -> Mapping[str, Status]:
        """Every node with a verdict of its own that is not a pass, by name."""
        result: dict[str, Status] = {}
        for status, rows in self.rows_by_status():
            numbers: list[int] = rows.tolist()
            result |= dict.fromkeys([self.node_names[row] for row in numbers], status)
        return result

    def rows_by_status(self) -> list[tuple[Status, npt.NDArray[np.intp]]]:
        """The rows of each distinct verdict that is not a pass, in the order of their first row."""
        found: dict[Status, list[npt.NDArray[np.intp]]] = {}
        if self._has_verdicts:
            failed_by, codes = self._entered()
            rows = np.flatnonzero(failed_by >= 0)
            rows = rows[np.lexsort((codes[rows], failed_by[rows]))]
            pairs = np.stack((failed_by[rows], codes[rows]))
            starts = np.flatnonzero((np.diff(pairs) != 0).any(axis=0)) + 1
            for same in np.split(rows, starts) if len(rows) else ():
                status = self._decode(int(failed_by[same[0]]), int(codes[same[0]]))
                found.setdefault(status, []).append(same)
        for row, status in self.explicit.items():
            found.setdefault(status, []).append(np.array([row], np.intp))
        groups = [(status, np.sort(np.concatenate(parts))) for status, parts in found.items()]
        return sorted(groups, key=lambda group: int(group[1][0]))

    def reason_counts(self) -> Mapping[str, int]:
        """How many nodes have each reason, those without a verdict of their own included."""
        counts: dict[str, int] = {}
        own_count = len(self.explicit)
        for (filter_index, code), node_count in self._distinct().items():
            own_count += node_count
            for reason in self._decode(filter_index, code).all_reasons:
                counts[reason] = counts.get(reason, 0) + node_count
        for status in self.explicit.values():
            for reason in status.all_reasons:
                counts[reason] = counts.get(reason, 0) + 1
        absent_count = self.node_count - own_count
        if absent_count > 0:
            for reason in self.absent.all_reasons:
                counts[reason] = counts.get(reason, 0) + absent_count
        return counts

    def message(self) -> str:
        """The FitError text."""
        rejections = self._rejections
        if rejections is not None:
            text = rejections.text = rejections.text or fit_error_text(
                self.node_count, self.reason_counts()
            )
            return f"{text} {self.post_filter_message}" if self.post_filter_message else text
        return fit_error_text(
            self.node_count,
            self.reason_counts() if not self.pre_filter_message else {},
            pre_filter_message=self.pre_filter_message,
            post_filter_message=self.post_filter_message,
        )

    def _distinct(self) -> dict[tuple[int, int], int]:
        """Distinct (filter, code) pairs among the rejected nodes, with how many nodes have each."""
        if self._counted is None:
            self._counted = count_distinct(*self._entered()) if self._has_verdicts else {}
        return self._counted

    def _decode(self, filter_index: int, code: int) -> Status:
        status = self._decoded.get((filter_index, code))
        if status is None:
            assert self._state is not None
            status = decode_status(self._filters[filter_index], self._state, code)
            self._decoded[(filter_index, code)] = status
        return status


def count_distinct(
    filters: npt.NDArray[np.signedinteger[Any]], codes: npt.NDArray[np.signedinteger[Any]]
) -> dict[tuple[int, int], int]:
    """Distinct (filter, code) pairs among the rejected nodes, with how many nodes have each."""
    if len(filters) and (filters == filters[0]).all() and (codes == codes[0]).all():
        # The usual result for a pod that is too large.
        return {(int(filters[0]), int(codes[0])): len(filters)} if filters[0] >= 0 else {}
    rejected = np.flatnonzero(filters >= 0)
    filters, codes = filters[rejected], codes[rejected]
    distinct: dict[tuple[int, int], int] = {}
    # Mostly there are few pairs: each is counted and taken out. Sorting pairs is far slower.
    for _ in range(PAIRS_FEW):
        if len(codes) == 0:
            return distinct
        pair = (int(filters[0]), int(codes[0]))
        others = np.flatnonzero((filters != pair[0]) | (codes != pair[1]))
        distinct[pair] = len(codes) - len(others)
        filters, codes = filters[others], codes[others]
    pairs: Iterable[tuple[int, int]] = zip(filters.tolist(), codes.tolist(), strict=True)
    return distinct | Counter(pairs)


def decode_status(plugin: FilterPlugin, state: CycleState, code: int) -> Status:
    """The status of a filter's code, with the plugin's name; failures get a prefix."""
    name = plugin_name(plugin)
    try:
        status = filter_status_answer(plugin.filter_status(state, code), name, code)
        if status.is_rejected:
            return status.with_plugin(name)
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        status = fault_status(error, name, FILTER)
    return filter_failure(name, status)


def filter_failure(plugin_name: str, status: Status) -> Status:
    """An Error of a Filter plugin as the attempt reports it (spec 04 §2.2)."""
    text = f'running "{plugin_name}" filter plugin: {wrapped_text(status)}'
    return Status(Code.ERROR, error=FilterFailure(text), plugin=plugin_name)


class FilterFailure(Exception):
    """A Filter plugin failed; ends the attempt."""


def fit_error_text(
    node_count: int,
    reasons: Mapping[str, int],
    *,
    pre_filter_message: str = "",
    post_filter_message: str = "",
) -> str:
    """`0/N nodes are available: …` (spec 04 §14.2)."""
    text = f"0/{node_count} nodes are available:"
    if pre_filter_message:
        text += f" {pre_filter_message}."
    elif items := sorted_reasons(reasons.items()):
        text += f" {', '.join(items)}."
    if post_filter_message:
        text += f" {post_filter_message}"
    return text


def sorted_reasons(counts: Iterable[tuple[str, int]]) -> list[str]:
    # Sorted as text together with the count, so "10 x" comes before "2 y": upstream sorts the same
    # way. Byte order equals code point order in UTF-8, which is how Python compares strings.
    return sorted(f"{count} {reason}" for reason, count in counts)
