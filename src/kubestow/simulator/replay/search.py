"""Looks for what another scheduler may have known, so that its decision was right.

Each move makes the cluster a little different: a change that the scheduler had not seen yet, a
decision that it made only later, or one that it had made before and that was written later. Moves
of one sort are made in an order: who has not seen a change has not seen later ones of its kind.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

from kubestow.simulator.replay.judging import AgreementFinding
from kubestow.simulator.replay.known import Undo

Move = Callable[[], Undo]


class Sort(NamedTuple):
    """Moves in the order in which they are made, and what they stand for."""

    text: str
    moves: Sequence[Move]


class KnowledgeSearch:
    """`test` compares the decision on the cluster as it is; it is called some `tries_max` times."""

    def __init__(self, test: Callable[[], AgreementFinding], tries_max: int) -> None:
        self._test = test
        self._tries_max = tries_max
        self._tries = 0

    @property
    def is_spent(self) -> bool:
        return self._tries >= self._tries_max

    def run(self, sorts: Sequence[Sort]) -> str:
        """What explains the decision, "" if nothing was found.

        Moves of one sort, then of two together, and so on. Where these are too many, only those
        count after which the decision compares otherwise, each by itself.
        """
        sorts = [sort for sort in sorts if sort.moves]
        mattering: list[Sort] | None = None
        for count in range(1, len(sorts) + 1):
            for some in combinations(range(len(sorts)), count):
                chosen = [sorts[index] for index in some]
                if count > 1 and prod(len(sort.moves) + 1 for sort in chosen) > self._share:
                    if mattering is None:
                        mattering = self._mattering(sorts)
                    chosen = [mattering[index] for index in some]
                if self._scan(*(sort.moves for sort in chosen)):
                    return _text(chosen)
        return ""

    @property
    def _share(self) -> float:
        """How many tries one combination of sorts may take."""
        return (self._tries_max - self._tries) / 2

    def _holds(self) -> bool:
        self._tries += 1
        finding = self._test()
        return finding.agrees or finding.is_best_of_a_sample

    def _mattering(self, sorts: Sequence[Sort]) -> list[Sort]:
        first = self._test()
        return [
            Sort(sort.text, [move for move in sort.moves if self._changes(move, first)])
            for sort in sorts
        ]

    def _changes(self, move: Move, first: AgreementFinding) -> bool:
        if self.is_spent:
            return False
        self._tries += 1
        undo = move()
        try:
            return self._test() != first
        finally:
            undo()

    def _scan(self, first: Sequence[Move], *rest: Sequence[Move]) -> bool:
        """Whether the test holds after some moves of the first sort, and then of the next."""
        undone: list[Undo] = []
        try:
            for move in (None, *first):
                if move is not None:
                    undone.append(move())
                if self._scan(*rest) if rest else self._holds():
                    return True
                if self.is_spent:
                    return False
        finally:
            for undo in reversed(undone):
                undo()
        return False


def _text(sorts: Iterable[Sort]) -> str:
    return " or ".join(sort.text for sort in sorts if sort.moves)
