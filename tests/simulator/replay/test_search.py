"""Moves of several sorts, tried one after the other, and undone."""

from collections.abc import Callable
from functools import partial

from kubestow.simulator.replay.judging import Agreement, AgreementFinding
from kubestow.simulator.replay.search import KnowledgeSearch, Move, Sort

WRONG = AgreementFinding(Agreement.LOWER, 5, 1, 10, 10)
RIGHT = AgreementFinding(Agreement.TIE)


class Board:
    """Moves are letters that were made."""

    def __init__(self, is_right: Callable[[str], bool], *, tries_max: int = 100) -> None:
        self.made: list[str] = []
        self.seen: list[str] = []
        self._is_right = is_right
        self.search = KnowledgeSearch(self.test, tries_max)

    def test(self) -> AgreementFinding:
        now = "".join(self.made)
        self.seen.append(now)
        return RIGHT if self._is_right(now) else WRONG._replace(excess=len(now))

    def sort(self, name: str) -> Sort:
        return Sort(name, [self.move(letter) for letter in name])

    def move(self, letter: str) -> Move:
        def made() -> Callable[[], None]:
            self.made.append(letter)
            return lambda: self.made.remove(letter)

        return made


def test_moves_of_one_sort_keep_their_order_and_are_undone() -> None:
    board = Board(lambda now: now == "ab")
    assert board.search.run([board.sort("abc"), board.sort("xyz")]) == "abc"
    assert board.seen == ["", "a", "ab"]
    assert board.made == []


def test_a_later_move_is_not_made_without_an_earlier_one() -> None:
    board = Board(lambda now: now == "b")
    assert board.search.run([board.sort("abc")]) == ""
    assert not board.search.is_spent


def test_sorts_are_combined() -> None:
    board = Board(lambda now: now == "axy")
    assert board.search.run([board.sort("ab"), board.sort("q"), board.sort("xyz")]) == "ab or xyz"
    assert board.made == []


def test_the_search_has_a_limit() -> None:
    board = Board(lambda now: False, tries_max=50)
    assert board.search.run([board.sort("a" * 30), board.sort("x" * 30)]) == ""
    assert board.search.is_spent
    assert len(board.seen) <= 55


def test_where_there_are_many_only_those_that_matter_are_combined() -> None:
    made: list[str] = []

    def test() -> AgreementFinding:
        is_right = "".join(made) == "ax"
        return RIGHT if is_right else WRONG._replace(excess=len({"a", "x"} & {*made}))

    def moves(letters: str) -> list[Move]:
        def move(letter: str) -> Callable[[], None]:
            made.append(letter)
            return lambda: made.remove(letter)

        return [partial(move, letter) for letter in letters]

    search = KnowledgeSearch(test, 100)
    sorts = [Sort("many", moves("bcdefghijklmnopqrstuvwa")), Sort("few", moves("yx"))]
    assert search.run(sorts) == "many or few"
    assert not made


def test_a_sample_may_leave_out_what_is_better() -> None:
    left_out = AgreementFinding(Agreement.LOWER, 5, better=3, feasible=10, sampled=7)
    assert left_out.is_best_of_a_sample
    assert not left_out._replace(better=4).is_best_of_a_sample
    assert not left_out._replace(agreement=Agreement.MISFIT).is_best_of_a_sample
