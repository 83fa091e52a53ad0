"""A follower gets every change of the rows, once and in order."""

from array import array
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kubestow.cache.change_log import REORDERS_KEPT, ChangeLog, Depends
from kubestow.index.follow import Follower, Sources

Call = tuple[str, list[int] | list[list[int]] | None]


class Recording(Follower):
    def __init__(self, log: ChangeLog, depends: Depends = Depends.PODS) -> None:
        super().__init__(log, depends)
        self.calls: list[Call] = []
        self.fails = False

    def rows_moved(self, sources: Sources | None) -> None:
        given = None if sources is None else [source.tolist() for source in sources]
        self._record("rows_moved", given)

    def nodes_changed(self, rows: Sequence[int]) -> None:
        self._record("nodes", list(rows))

    def pods_changed(self, rows: Sequence[int]) -> None:
        self._record("pods", list(rows))

    def _record(self, name: str, given: list[int] | list[list[int]] | None) -> None:
        if self.fails:
            raise ValueError(name)
        self.calls.append((name, given))

    def received(self) -> list[Call]:
        self.catch_up()
        calls, self.calls = self.calls, []
        return calls


def test_earlier_changes_are_not_reported() -> None:
    log = ChangeLog()
    log.note_node(1)
    assert Recording(log).received() == []


def test_changed_nodes_are_among_the_changed_rows() -> None:
    log = ChangeLog()
    follower = Recording(log)
    log.note_pods(3)
    log.note_node(1)
    log.note_pods(3)
    assert follower.received() == [("nodes", [1]), ("pods", [3, 1, 3])]
    assert follower.received() == []


def test_what_is_derived_from_nodes_gets_no_changes_of_pods() -> None:
    log = ChangeLog()
    follower = Recording(log, Depends.NODE)
    log.note_pods(3)
    assert follower.received() == []
    log.note_node(2)
    assert follower.received() == [("nodes", [2])]


@pytest.mark.parametrize(("depends", "rows"), [(Depends.COUNTS, [3, 1]), (Depends.PODS, [3, 2, 1])])
def test_statuses_are_read_by_what_is_derived_from_pods_themselves(
    depends: Depends, rows: list[int]
) -> None:
    log = ChangeLog()
    follower = Recording(log, depends)
    log.note_pods(3)
    log.note_statuses(2)
    log.note_node(1)
    assert follower.received() == [("nodes", [1]), ("pods", rows)]
    log.note_statuses(0)
    assert follower.received() == ([("pods", [0])] if depends is Depends.PODS else [])


def test_re_orderings_come_first_and_rows_are_in_the_new_numbering() -> None:
    log = ChangeLog()
    follower = Recording(log)
    log.note_pods(0)
    log.reorder(np.array([1, 0], np.intp), 2)
    log.reorder(np.array([1, 0, -1], np.intp), 2)
    log.note_node(2)
    assert follower.received() == [
        ("rows_moved", [[1, 0], [1, 0, -1]]),
        ("nodes", [2]),
        ("pods", [0, 2]),
    ]


def missed_orders(log: ChangeLog) -> None:
    for _ in range(REORDERS_KEPT + 1):
        log.reorder(np.array([1, 0], np.intp), 2)


def cut_nodes(log: ChangeLog) -> None:
    log.note_node(1)
    log.trim(0)


def cut_pods(log: ChangeLog) -> None:
    log.note_pods(1)
    log.trim(0)


@pytest.mark.parametrize("cut", [missed_orders, cut_nodes, cut_pods])
def test_what_the_log_no_longer_has_is_read_again(cut: Callable[[ChangeLog], None]) -> None:
    log = ChangeLog()
    follower = Recording(log)
    cut(log)
    assert follower.received() == [("rows_moved", None)]
    assert follower.received() == []


def test_what_is_derived_from_nodes_does_not_miss_a_cut_log_of_pods() -> None:
    log = ChangeLog()
    follower = Recording(log, Depends.NODE)
    cut_pods(log)
    assert follower.received() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.note_pods(0),
        lambda log: log.note_node(0),
        lambda log: log.reorder(np.array([1, 0], np.intp), 2),
        missed_orders,
    ],
)
def test_what_failed_is_called_again(change: Callable[[ChangeLog], None]) -> None:
    log = ChangeLog()
    follower, other = Recording(log), Recording(log)
    change(log)
    follower.fails = True
    with pytest.raises(ValueError, match=r"nodes|pods|rows_moved"):
        follower.catch_up()
    follower.fails = False
    assert follower.received() == other.received() != []


def test_rows_are_a_copy() -> None:
    log = ChangeLog()
    log.note_pods(0)
    seen = log.pods_since(0)
    log.note_pods(1)
    assert seen == array("q", [0])
